"""Blocks: every row once, in order, and never too many values at once."""

import pytest

from anynorm.design import blocks, limits


@pytest.mark.parametrize("stop", [0, 1, 7, 8])
@pytest.mark.parametrize("step", [1, 3, 8, 100])
def test_ranges_are_the_whole_in_order(stop, step):
    places = range(stop)
    found = [place for part in blocks.ranges(stop, step) for place in places[part]]
    assert found == list(places)


def test_rows_are_as_many_as_there_is_room_for(monkeypatch):
    monkeypatch.setattr(limits, "VALUES_AT_ONCE", 20)
    assert [part.stop - part.start for part in blocks.row_ranges(10, 5)] == [4, 4, 2]
    assert len(list(blocks.row_ranges(3, 1000))) == 3
    assert list(blocks.row_ranges(3, 0)) == [slice(0, 3)]
