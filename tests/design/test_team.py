"""A team does every part of a loop once, whoever comes to help and whenever."""

import threading

import numpy as np
import pytest

from anynorm.design.compiled import loop
from anynorm.design.team import dismiss, help_team, new_team, share_out
from anynorm.design.threads import Threads, run, share


@loop
def count_up(first, last, counts, weight):
    for k in range(first, last):
        counts[k] += weight


@loop
def count_down(first, last, counts):
    for k in range(first, last):
        counts[k] -= 1


@pytest.mark.parametrize("count", [0, 1, 2, 1000, (1 << 20) + 5])
@pytest.mark.parametrize("n_jobs", [1, 2, 5])
def test_every_part_is_done_once(count, n_jobs):
    counts = np.zeros(count, np.int64)
    with Threads(n_jobs):
        for _ in range(3):
            share(count_up, count, counts, 2)
    assert (counts == 6).all()


@pytest.mark.parametrize("n_threads", [1, 3, 64, 200])
@pytest.mark.parametrize("count", [0, 1, 5, 1000])
def test_lanes_of_threads_that_are_not_there_are_done(n_threads, count):
    counts, state = np.zeros(count, np.int64), new_team()
    for threads in (n_threads, 2, n_threads):
        share_out(state, threads, count_up, count, counts, 1)
    assert (counts == 3).all()


def test_jobs_that_follow_each_other_do_not_mix():
    """A helper that is late must not take a part of the next job for one of the last."""
    counts = np.zeros(7, np.int64)
    with Threads(4):
        for _ in range(5000):
            share(count_up, 7, counts, 2)
            share(count_down, 7, counts)
    assert (counts == 5000).all()


def test_arrays_of_other_kinds_get_code_of_their_own():
    with Threads(2):
        for counts in (np.zeros(9), np.zeros(9, np.float32), np.zeros((9, 2))[:, 0]):
            share(count_up, 9, counts, 1.5)
            assert (counts == 1.5).all()


def test_threads_have_teams_of_their_own():
    counts = np.zeros((4, 300), np.int64)

    def several(k):
        with Threads(2):
            for _ in range(100):
                share(count_up, 300, counts[k], 1)

    threads = [threading.Thread(target=several, args=(k,)) for k in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert (counts == 100).all()


def test_tasks_of_a_run_share_what_they_may():
    counts = np.zeros((4, 50), np.int64)
    with Threads(4):
        share(count_up, 50, counts[0], 1)
        run(lambda k: share(count_up, 50, counts[k], 1), 2)
        run(lambda k: share(count_up, 50, counts[k], 1), 4)
    assert counts[:, 0].tolist() == [3, 2, 1, 1]
    assert (counts == counts[:, :1]).all()


def test_helpers_go_home_when_they_are_sent_or_have_nothing_to_do():
    state = new_team()
    helper = threading.Thread(target=help_team, args=(state,))
    helper.start()
    dismiss(state)
    helper.join(60)
    assert not helper.is_alive()
    state = new_team()
    help_team(state)  # which returns by itself
    counts = np.zeros(5, np.int64)
    share_out(state, 2, count_up, 5, counts, 1)  # and is not waited for
    assert (counts == 1).all()
