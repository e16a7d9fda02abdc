"""Threads: results in order, never more at work than allowed, and BLAS given back in any case."""

import contextlib
import multiprocessing
import subprocess
import sys
import threading
import time
import weakref

import joblib
import numpy as np
import pytest
import scipy.linalg  # noqa: F401  whose library the fixture below is to find
from threadpoolctl import threadpool_info, threadpool_limits

from anynorm.design.threads import Threads, allowed, each, entry_point, run
from anynorm.design.watch import look, watched


def blas_threads():
    """The numbers of threads of NumPy's and SciPy's linear algebra libraries."""
    pools = [pool for pool in threadpool_info() if pool["user_api"] == "blas"]
    own = [pool for pool in pools if "numpy" in pool["filepath"] or "scipy" in pool["filepath"]]
    return {pool["num_threads"] for pool in own or pools}  # a solver of others may bring its own


@pytest.fixture
def three_blas_threads():
    with threadpool_limits(3, "blas"):
        yield


# Our own threads


@pytest.mark.parametrize("n_jobs", [None, 1, 2, 3, 5])
def test_results_come_in_their_order(n_jobs):
    def task(k):
        time.sleep(0.01 if k % 3 == 0 else 0.0)
        return k

    with Threads(n_jobs):
        assert run(task, 20) == list(range(20))
        assert run(task, 0) == []


@pytest.mark.parametrize(("n_jobs", "most"), [(None, 1), (1, 1), (3, 64)])
def test_sums_of_long_parts_have_few_of_them_in_memory(n_jobs, most):
    made, seen = [], []

    def task(k):
        part = np.full(3, float(k))
        made.append(weakref.ref(part))
        return part

    total = np.zeros(3)
    with Threads(n_jobs):
        for part in each(task, 200):
            total += part
            seen.append(sum(one() is not None for one in made))
            del part
    assert np.array_equal(total, np.full(3, 199 * 100.0))
    assert max(seen) <= most


@pytest.mark.parametrize(("n_jobs", "counts"), [(2, (2, 3)), (4, (2, 3)), (5, (3, 4)), (3, (1, 9))])
def test_never_are_more_threads_at_work_than_allowed(n_jobs, counts):
    lock, at_work, most = threading.Lock(), [0], [0]
    two_at_work = threading.Event()

    def inner(_):
        with lock:
            at_work[0] += 1
            most[0] = max(most[0], at_work[0])
            if at_work[0] > 1:
                two_at_work.set()
        two_at_work.wait(20)  # for a second one, however busy the machine is
        time.sleep(0.005)
        with lock:
            at_work[0] -= 1

    with Threads(n_jobs):
        run(lambda _: run(inner, counts[1]), counts[0])
    assert 1 < most[0] <= n_jobs


def test_classes_get_the_threads_first_and_the_rest_goes_inside():
    with Threads(6):
        assert run(lambda _: allowed(), 3) == [2, 2, 2]
        assert run(lambda _: allowed(), 4) == [1, 1, 1, 1]
        assert run(lambda _: allowed(), 1) == [6]
        assert allowed() == 6
    assert allowed() == 1


def test_calls_inside_of_calls_share_the_threads_of_the_first():
    with Threads(4), Threads(None):
        assert allowed() == 4
        with Threads(-1):
            assert allowed() == 4
        with Threads(9):
            assert allowed() == 4
        with Threads(2):
            assert allowed() == 2


def test_the_first_error_is_raised_and_what_has_not_begun_is_left_out():
    begun = []

    def task(k):
        begun.append(k)
        if k == 1:
            raise ValueError("one")
        time.sleep(0.02)

    with Threads(2), pytest.raises(ValueError, match="one"):
        run(task, 100)
    assert len(begun) < 10
    with Threads(2):
        assert run(lambda k: k, 5) == [0, 1, 2, 3, 4]


def test_an_interrupt_tells_other_threads_to_stop():
    main, ended = threading.get_ident(), threading.Event()
    other_runs = threading.Event()

    def task(_):
        if threading.get_ident() == main:
            assert other_runs.wait(30)
            raise KeyboardInterrupt
        other_runs.set()
        try:
            while True:
                look()
                time.sleep(0.001)
        finally:
            ended.set()

    with Threads(2), pytest.raises(KeyboardInterrupt):
        run(task, 2)
    assert ended.wait(30)
    look()


def test_watches_go_along():
    """A time limit is heard in every thread."""
    looks = []
    with Threads(2), watched(lambda: looks.append(threading.get_ident())):
        run(lambda _: look(), 4)
    assert len(looks) >= 4


def test_numpy_settings_go_along():
    with Threads(2), np.errstate(over="ignore"):
        settings = run(lambda _: (time.sleep(0.01), np.geterr()["over"])[1], 4)
    assert settings == ["ignore"] * 4


def test_a_process_ends_well_while_a_thread_is_still_at_work():
    """Ctrl-C during a fit of several classes ended in SIGABRT, 2 times of 20."""
    script = """
import threading, time
import numpy as np
from anynorm.design.threads import Threads, run
main = threading.main_thread().ident
def task(k):
    if threading.get_ident() == main:
        time.sleep(0.05)
        raise KeyboardInterrupt
    end = time.monotonic() + 1.0  # longer than the interrupted call waits for it
    while time.monotonic() < end:
        np.sort(np.arange(100_000.0)[::-1])
with Threads(2):
    run(task, 2)
"""
    ended = subprocess.run(
        [sys.executable, "-c", script], capture_output=True, text=True, timeout=60, check=False
    )
    assert "KeyboardInterrupt" in ended.stderr
    assert "terminate" not in ended.stderr
    assert ended.returncode in (1, 130, -2)


# Those who run us


def test_contexts_of_joblib_say_how_many_threads():
    with joblib.parallel_config(n_jobs=3), Threads(None):
        assert allowed() == 3
    with Threads(-1):
        assert allowed() == joblib.cpu_count()


@entry_point
def threads_of_a_call():
    with Threads(-1):
        return allowed()


class Estimator:
    """The parameter that counts."""

    n_jobs = 4

    def get_params(self):
        """As estimators have it."""

    @entry_point
    def fit(self):
        """The threads of a fit."""
        return allowed(), blas_threads()


@pytest.mark.parametrize("backend", ["threading", "loky"])
def test_workers_of_joblib_do_not_start_more_threads_than_cores(backend):
    counts = joblib.Parallel(n_jobs=2, backend=backend)(
        joblib.delayed(threads_of_a_call)() for _ in range(2)
    )
    assert all(1 <= count <= max(1, joblib.cpu_count() // 2) for count in counts)


def test_a_forked_process_has_threads_of_its_own(three_blas_threads):
    def child(connection):
        with Threads(2):
            connection.send((run(lambda k: k, 3), allowed(), blas_threads()))
        connection.close()

    context = multiprocessing.get_context("fork")
    with Threads(2):
        run(lambda _: None, 4)  # there are helpers, and BLAS is held
        here, there = context.Pipe()
        process = context.Process(target=child, args=(there,))
        process.start()
        assert here.poll(30)
        assert here.recv() == ([0, 1, 2], 2, {1})
        process.join()


# BLAS


@pytest.mark.usefixtures("three_blas_threads")
def test_blas_has_one_thread_inside_and_what_it_had_afterwards():
    assert Estimator().fit() == (4, {1})
    assert blas_threads() == {3}


@pytest.mark.usefixtures("three_blas_threads")
@pytest.mark.parametrize("error", [ValueError, KeyboardInterrupt, SystemExit])
def test_blas_is_given_back_after_an_error(error):
    @entry_point
    def fails():
        with Threads(2):
            run(lambda k: [][k], 3) if error is IndexError else None
            raise error

    with pytest.raises(error):
        fails()
    assert blas_threads() == {3}
    assert allowed() == 1


@pytest.mark.usefixtures("three_blas_threads")
def test_blas_is_given_back_by_the_last_of_several_threads():
    first_in, second_in, first_out = (threading.Event() for _ in range(3))
    seen = []

    def first():
        with Threads(1):
            first_in.set()
            second_in.wait(30)
        seen.append(blas_threads())
        first_out.set()

    def second():
        first_in.wait(30)
        with Threads(1):
            second_in.set()
            first_out.wait(30)
            seen.append(blas_threads())

    threads = [threading.Thread(target=target) for target in (first, second)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert seen == [{1}, {1}]
    assert blas_threads() == {3}


@pytest.mark.usefixtures("three_blas_threads")
def test_an_interrupt_on_the_way_in_or_out_leaves_nothing_behind(monkeypatch):
    from anynorm.design import threads

    def struck(*_):
        raise KeyboardInterrupt

    for place in ("_give_back", "_asked_for"):
        with monkeypatch.context() as patch:
            patch.setattr(threads, place, struck)
            with contextlib.suppress(KeyboardInterrupt), Threads(2):
                pass
    with Threads(2):
        assert blas_threads() == {1}
    assert blas_threads() == {3}
