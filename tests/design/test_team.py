"""A team does every task once, whoever comes to help and whenever."""

import threading

import numpy as np
import pytest

from anynorm.design.compiled import inner_loop, loop
from anynorm.design.team import dismiss, help_team, in_parallel, new_team
from anynorm.design.threads import Threads, run, team


@inner_loop
def count_one(k, counts, weight):
    counts[k] += weight


@loop
def count_all(team, counts, weight):
    in_parallel(team, count_one, counts.size, (counts, weight))


@inner_loop
def count_back(k, counts):
    counts[k] -= 1


@loop
def count_to_and_fro(team, counts, rounds):
    """Jobs that follow each other at once, of two functions in turn."""
    for _ in range(rounds):
        in_parallel(team, count_one, counts.size, (counts, 2))
        in_parallel(team, count_back, counts.size, (counts,))


@pytest.mark.parametrize("count", [0, 1, 2, 1000, (1 << 20) + 5])
@pytest.mark.parametrize("n_jobs", [1, 2, 5])
def test_every_task_is_done_once(count, n_jobs):
    counts = np.zeros(count, np.int64)
    with Threads(n_jobs):
        assert (team().size > 0) == (n_jobs > 1)
        for _ in range(3):
            count_all(team(), counts, 2)
    assert (counts == 6).all()


def test_jobs_that_follow_each_other_do_not_mix():
    """A helper that is late must not take a task of the next job for one of the last."""
    counts = np.zeros(7, np.int64)
    with Threads(4):
        for _ in range(200):
            count_to_and_fro(team(), counts, 50)
    assert (counts == 200 * 50).all()


def test_threads_have_teams_of_their_own():
    counts = np.zeros((4, 300), np.int64)

    def several(k):
        with Threads(2):
            for _ in range(100):
                count_all(team(), counts[k], 1)

    threads = [threading.Thread(target=several, args=(k,)) for k in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert (counts == 100).all()


def test_tasks_of_a_run_have_their_share_of_a_team():
    with Threads(4):
        count_all(team(), np.zeros(3, np.int64), 1)
        assert run(lambda k: team().size > 0, 2) == [True, True]
        assert run(lambda k: team().size > 0, 4) == [False] * 4


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
    count_all(state, counts, 1)  # and is not waited for
    assert (counts == 1).all()
