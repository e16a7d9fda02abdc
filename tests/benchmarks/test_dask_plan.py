"""The plan for more workers: the simulation is the formula where nothing goes wrong."""

from dataclasses import replace

import numpy as np
import pytest

from benchmarks.dask_plan import PAGE, Assumptions, planned, simulated, table

CALM = replace(Assumptions(), spread=0.0, stragglers=0.0, lost_per_hour=0.0)


@pytest.mark.parametrize("workers", [1, 10, 1000])
def test_without_trouble_the_simulation_is_the_formula(workers):
    seconds, lost = simulated(workers, CALM, np.random.default_rng(0))
    assert seconds == pytest.approx(planned(workers, CALM))
    assert lost == 0


def test_a_straggler_in_every_round_makes_all_others_wait():
    all_slow = replace(CALM, stragglers=1.0, slowness=5.0, latency=0.0, bandwidth=1e30)
    seconds, _ = simulated(10, all_slow, np.random.default_rng(0))
    assert seconds == pytest.approx(5 * all_slow.rows * all_slow.seconds_per_row / 10)


def test_a_lost_worker_costs_its_notice_its_rows_and_some_rounds():
    often = replace(CALM, lost_per_hour=1.0, rounds_again=0)
    seconds, lost = simulated(10, often, np.random.default_rng(0))
    assert lost > 0
    assert seconds - planned(10, often) >= often.notice
    again = replace(often, rounds_again=2)
    assert simulated(10, again, np.random.default_rng(0))[0] > seconds


def test_the_page_has_the_table_of_the_simulation():
    assert table(Assumptions()) in PAGE.read_text()
