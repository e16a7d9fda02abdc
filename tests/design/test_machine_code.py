"""Machine code does what the same functions do in Python; it is kept whole, or made again."""

import math
import os
import pathlib
import subprocess
import sys

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from anynorm.design import code_cache, machine_code
from anynorm.design.addresses import Vector, list_of
from tests.design import written_loops as written

FLOATS, PLACES = Vector(), Vector("int64")


def test_whole_numbers_and_while():
    code = machine_code.machine_code(written.collatz, int)
    assert [code(k) for k in range(1, 30)] == [written.collatz(k) for k in range(1, 30)]


@given(st.lists(st.floats(-3, 3) | st.just(math.nan) | st.just(math.inf), max_size=20))
def test_branches_and_what_comes_after_nan(values):
    code = machine_code.machine_code(written.above, FLOATS, int, float, FLOATS)
    values = np.array([*values, 0.0])
    found, expected = np.zeros((2, len(values)))
    count = code(values, len(values), 0.5, found)
    assert count == written.above(values, len(values), 0.5, expected)
    np.testing.assert_array_equal(found, expected)


@pytest.mark.parametrize("backwards", [None, "yes"])
def test_pairs_ranges_and_branches_that_are_known(backwards):
    code = machine_code.machine_code(written.spreads, FLOATS, int, backwards, FLOATS)
    values = np.random.default_rng(0).standard_normal(9)
    found, expected = np.zeros((2, 9))
    code(values, 9, found)
    written.spreads(values, 9, backwards, expected)
    np.testing.assert_array_equal(found, expected)


def test_tables_of_all_kinds_of_numbers():
    code = machine_code.machine_code(written.rows_of_tables, int, FLOATS)
    tables = [
        np.array([[-4.0, 1.0, 2.0], [-9.0, 0.0, 1.0]]),
        np.full((2, 3), 0.25, np.float32),
        np.full((2, 3), -7, np.int32),
        np.full((2, 3), 2**32 - 1, np.uint32),
    ]
    expected = tables[0] + (0.25 - 7 + 2**32 - 1)
    sizes = np.zeros(2)
    assert code(list_of(tables).ctypes.data, sizes) == 3
    np.testing.assert_array_equal(tables[0], expected)
    np.testing.assert_array_equal(sizes, [3.0, math.sqrt(expected[1, 0])])
    np.testing.assert_array_equal(tables[1], [[0.0, 0.5, 1.0]] * 2)
    np.testing.assert_array_equal(tables[2], [[0, -1, -2]] * 2)
    np.testing.assert_array_equal(tables[3], [[0, 1, 2], [1, 2, 3]])


def test_arrays_of_another_kind_are_refused():
    code = machine_code.machine_code(written.above, FLOATS, int, float, FLOATS)
    good = np.ones(4)
    for bad in (np.ones(4, np.float32), np.ones(8)[::2]):
        with pytest.raises(TypeError, match="argument 0 must be an array of float64 in C order"):
            code(bad, 4, 0.0, good)


@pytest.mark.parametrize(
    ("function", "why"),
    [
        (written.of_two_kinds, "of_two_kinds, line .*float.* where .*int.* is needed"),
        (written.of_another_sort, "of_another_sort, line .*'found' is something else already"),
        (written.with_a_list, "with_a_list, line .*ListComp is not a part of what is translated"),
    ],
)
def test_what_cannot_be_translated_says_where(function, why):
    with pytest.raises(TypeError, match=why):
        machine_code.machine_code(function, FLOATS)


KEPT = """
import sys
from anynorm.design.machine_code import machine_code
from tests.design import written_loops
code = machine_code(written_loops.collatz, int)
print(code(27), "anynorm.design.lowering" in sys.modules, "numba" in sys.modules)
"""


def in_a_process(folder):
    root = pathlib.Path(__file__).parents[2]
    path = os.pathsep.join([str(root / "src"), str(root)])
    variables = {**os.environ, "NUMBA_CACHE_DIR": str(folder), "PYTHONPATH": path}
    command = [sys.executable, "-c", KEPT]
    return subprocess.run(command, env=variables, capture_output=True, text=True, check=True).stdout


def test_code_is_kept_and_loaded_without_a_compiler(tmp_path):
    assert in_a_process(tmp_path) == "111 True False\n"
    assert in_a_process(tmp_path) == "111 False False\n"
    (kept,) = tmp_path.iterdir()
    # Others may read it, where files can be read by others.
    (tmp_path / "another").write_text("")
    assert kept.stat().st_mode == (tmp_path / "another").stat().st_mode
    # A file that was cut off is not loaded.
    kept.write_bytes(kept.read_bytes()[:-10])
    assert in_a_process(tmp_path) == "111 True False\n"


def test_another_constant_is_another_code(monkeypatch):
    def name():
        return machine_code._name(written.above, (FLOATS, int, float, FLOATS))

    before = name()
    assert name() == before
    monkeypatch.setattr(written, "FACTOR", 4)
    assert name() != before


def test_without_a_folder_code_is_made_all_the_same(monkeypatch):
    monkeypatch.setattr(machine_code, "cache_folder", lambda: None)
    code = machine_code.machine_code.__wrapped__(written.collatz, int)
    assert code(27) == 111


def test_the_users_caches(monkeypatch, tmp_path):
    monkeypatch.setattr(sys, "platform", "linux")
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    assert code_cache._user_caches() == tmp_path
    monkeypatch.setattr(sys, "platform", "win32")
    monkeypatch.setenv("LOCALAPPDATA", str(tmp_path))
    assert code_cache._user_caches() == tmp_path
    monkeypatch.setattr(sys, "platform", "darwin")
    assert code_cache._user_caches().name == "Caches"
