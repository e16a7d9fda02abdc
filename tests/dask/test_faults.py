"""What goes wrong on a cluster: lost workers, Ctrl-C, company, missing installations."""

import os
import signal
import threading
import time

import dask
import dask.array as da
import distributed
import numpy as np
import pytest
from sklearn.base import clone

from anynorm import BudgetSVC, LinearSVC, ReweightedSVC, ReweightedSVCCV, SparseSVC
from anynorm.design import dask_crew, watch
from anynorm.design.crew import Block
from anynorm.solvers.frame.rounds_apart.beside_rows import look, slopes
from tests.dask.conftest import local_cluster
from tests.dask.data import in_blocks, rows, sparse_rows


def chunks(seed=0, n=6000):
    X, y = rows(n=n, seed=seed)
    return X, y, da.from_array(X, chunks=(700, -1)), da.from_array(y, chunks=700)


def after_rounds(monkeypatch, count, act):
    """Have `act` called once, before a fit's round of this number."""
    plain, seen = dask_crew.DaskCrew._answers, []

    def counted(self, job, message):
        seen.append(job)
        if len(seen) == count:
            act()
        return plain(self, job, message)

    monkeypatch.setattr(dask_crew.DaskCrew, "_answers", counted)
    return seen


def empty_block(number):
    return Block(np.empty((0, 1)), np.empty(0), None, columns=1, number=number)


def looks_for_ever(seconds):
    while True:
        time.sleep(seconds)
        watch.look()


def running(dask_worker):
    """Whether a worker's threads are at work."""
    return dask_worker.state.executing_count > 0


def kill_one(client):
    """Kill the process of one worker, as the system does where memory is short."""
    os.kill(next(iter(client.run(os.getpid).values())), signal.SIGKILL)


@pytest.mark.parametrize(
    ("estimator", "loss"),
    [
        (LinearSVC, "hinge"),
        (LinearSVC, "squared_hinge"),
        (SparseSVC, "hinge"),
        (SparseSVC, "logistic"),
    ],
)
def test_a_killed_worker_costs_time_and_nothing_else(own_client, monkeypatch, estimator, loss):
    X, y, in_chunks, labels = chunks()
    seen = after_rounds(monkeypatch, 8, lambda: kill_one(own_client))
    model = estimator(C=0.1, loss=loss, tol=1e-5).fit(in_chunks, labels)
    assert len(seen) > 8
    assert model.certificate_.status == "optimal"
    whole = estimator(C=0.1, loss=loss, tol=1e-5).fit(X, y)
    assert model.certificate_.primal <= whole.certificate_.primal * (1 + 2e-5)


def test_a_killed_worker_does_not_change_where_a_walk_goes(own_client, monkeypatch):
    X, y, in_chunks, labels = chunks()
    model = ReweightedSVC(C=0.1, n_rounds=3, tol=1e-5, prune=False)
    seen = after_rounds(monkeypatch, 20, lambda: kill_one(own_client))
    model.fit(in_chunks, labels)
    assert len(seen) > 20
    assert model.certificate_.status == "optimal"
    ours = [record.objective for record in model.history_]
    whole = clone(model).fit(X, y)
    assert ours == pytest.approx([record.objective for record in whole.history_], rel=1e-3)


def test_a_killed_worker_does_not_change_the_choice_of_a_search(own_client, monkeypatch):
    _, _, in_chunks, labels = chunks(n=1500)
    search = ReweightedSVCCV(Cs=[0.001, 0.1], max_rounds=2, cv=3, tol=1e-4)
    seen = after_rounds(monkeypatch, 40, lambda: kill_one(own_client))
    search.fit(in_chunks, labels)
    monkeypatch.undo()
    assert len(seen) > 40
    undisturbed = clone(search).fit(in_chunks, labels)
    assert (search.C_, search.n_rounds_) == (undisturbed.C_, undisturbed.n_rounds_)
    found, other = (each.cv_results_["mean_test_score"] for each in (search, undisturbed))
    assert found == pytest.approx(other, abs=2.5 / 500)


@pytest.mark.parametrize("cache_size", [500, 0.01], ids=["features kept", "made anew"])
def test_a_killed_worker_does_not_change_the_span_of_a_budget(own_client, monkeypatch, cache_size):
    """Features are made again from rows that are read again."""
    _, _, in_chunks, labels = chunks()
    model = BudgetSVC(8, C=0.1, strict=True, tol=1e-5, cache_size=cache_size)
    seen = after_rounds(monkeypatch, 10, lambda: kill_one(own_client))
    model.fit(in_chunks, labels)
    monkeypatch.undo()
    assert len(seen) > 10
    assert seen[9] in (look, slopes)  # the span was chosen before
    undisturbed = clone(model).fit(in_chunks, labels)
    assert model.certificate_.status == "optimal"
    assert model.support_.tolist() == undisturbed.support_.tolist()
    primal = undisturbed.certificate_.primal
    assert model.certificate_.primal == pytest.approx(primal, rel=2e-5)


def test_a_worker_killed_in_the_choice_of_rows_does_not_change_it(own_client, monkeypatch):
    """The searches of a budget run on the workers; one that is lost is begun again elsewhere."""
    _, _, in_chunks, labels = chunks()
    model, begun = BudgetSVC(8, C=0.1, strict=True, tol=1e-5), []
    plain = dask_crew.DaskCrew._on

    def counted(self, address, function, *given):
        task = plain(self, address, function, *given)
        if function is dask_crew._called:
            begun.append(task)
            if len(begun) == 3:
                kill_one(own_client)
        return task

    monkeypatch.setattr(dask_crew.DaskCrew, "_on", counted)
    model.fit(in_chunks, labels)
    monkeypatch.undo()
    assert len(begun) >= 3
    assert model.support_.tolist() == clone(model).fit(in_chunks, labels).support_.tolist()


def test_a_call_that_nobody_waits_for_ends(client):
    """Ctrl-C while workers choose rows leaves them to others."""
    crew = dask_crew.DaskCrew(client, [client.submit(empty_block, k) for k in range(2)])
    deadline = time.monotonic() + 30

    def interrupted():
        with crew.elsewhere(0.01) as begin:
            answers = [begin(looks_for_ever) for _ in crew._parts]
            while not any(client.run(running).values()) and time.monotonic() < deadline:
                time.sleep(0.05)
            assert any(client.run(running).values())
            assert answers
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt) as kept:
        interrupted()
    assert kept.tb is not None  # a debugger, or IPython, holds it, and with it the answers
    while any(client.run(running).values()) and time.monotonic() < deadline:
        time.sleep(0.05)
    assert not any(client.run(running).values())
    crew.close()


def test_a_worker_killed_in_the_descent_costs_its_duals_alone(own_client, monkeypatch):
    X, y = sparse_rows()
    seen = after_rounds(monkeypatch, 6, lambda: kill_one(own_client))
    model = LinearSVC(C=0.1, tol=1e-3).fit(in_blocks(X, [500] * 3), da.from_array(y, chunks=500))
    assert len(seen) > 6
    assert model.certificate_.status == "optimal"


def test_a_cluster_without_workers_ends_in_an_error_after_the_time_out(monkeypatch):
    _, _, in_chunks, labels = chunks()
    with local_cluster() as cluster, distributed.Client(cluster):
        after_rounds(monkeypatch, 5, lambda: cluster.scale(0))
        with (
            dask.config.set({"anynorm.worker-timeout": "2s"}),
            pytest.raises(RuntimeError, match=r"has had no worker for 2 s.*worker-timeout"),
        ):
            LinearSVC(tol=1e-6).fit(in_chunks, labels)


def test_ctrl_c_leaves_the_cluster_usable_and_the_estimator_as_it_was(client, monkeypatch):
    _, _, in_chunks, labels = chunks()
    model = LinearSVC(tol=1e-3).fit(in_chunks, labels)

    def interrupt():
        threading.Timer(0.05, os.kill, (os.getpid(), signal.SIGINT)).start()

    after_rounds(monkeypatch, 4, interrupt)
    before = []

    def fit_on_and_on():
        while True:
            before.append(model.coef_)
            model.fit(in_chunks, labels)

    with pytest.raises(KeyboardInterrupt):
        fit_on_and_on()
    assert model.coef_ is before[-1]
    monkeypatch.undo()
    began = time.monotonic()
    assert model.fit(in_chunks, labels).certificate_.status == "optimal"
    assert time.monotonic() - began < 60
    deadline = time.monotonic() + 30
    while client.who_has() and time.monotonic() < deadline:
        time.sleep(0.1)  # released results are forgotten a moment later
    assert not client.who_has()


@pytest.mark.parametrize(
    "model",
    [
        SparseSVC(C=0.1, loss="logistic", tol=1e-5),
        ReweightedSVC(C=0.1, n_rounds=2, prune=False, tol=1e-5),
        BudgetSVC(8, C=0.1, strict=True, tol=1e-5),
    ],
    ids=lambda model: type(model).__name__,
)
def test_fits_of_two_estimators_at_once_have_their_own_solutions(client, model):
    both = [clone(model), LinearSVC(C=0.1, tol=1e-5)]
    _, _, in_chunks, labels = chunks()

    def fit(one):
        with client.as_current():
            one.fit(in_chunks, labels)

    threads = [threading.Thread(target=fit, args=(one,)) for one in both]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    for one in both:
        alone = clone(one).fit(in_chunks, labels)
        assert one.certificate_.status == "optimal"
        assert one.certificate_.primal == pytest.approx(alone.certificate_.primal, rel=5e-5)


def test_two_fits_at_once_do_not_see_each_other(client):
    found = {}

    def fit(seed):
        _, _, in_chunks, labels = chunks(seed)
        with client.as_current():
            found[seed] = LinearSVC(C=0.1, tol=1e-5).fit(in_chunks, labels).certificate_

    both = [threading.Thread(target=fit, args=(seed,)) for seed in (1, 2)]
    for thread in both:
        thread.start()
    for thread in both:
        thread.join()
    for seed in (1, 2):
        _, _, in_chunks, labels = chunks(seed)
        alone = LinearSVC(C=0.1, tol=1e-5).fit(in_chunks, labels)
        # Where blocks lie decides the order of the sums, and which rows make the first sample.
        assert found[seed].status == "optimal"
        assert found[seed].primal == pytest.approx(alone.certificate_.primal, rel=2e-5)


def test_a_cluster_without_the_package_says_so(tmp_path, monkeypatch):
    hide = "import sys\nsys.modules['anynorm'] = None\n"
    (tmp_path / "sitecustomize.py").write_text(hide)
    monkeypatch.setenv("PYTHONPATH", str(tmp_path))
    _, _, in_chunks, labels = chunks()
    with (
        local_cluster(env={"PYTHONPATH": str(tmp_path)}) as cluster,
        distributed.Client(cluster),
    ):
        for model in (
            LinearSVC(), ReweightedSVC(), ReweightedSVCCV(), SparseSVC(), BudgetSVC(8, strict=True)
        ):  # fmt: skip
            words = "anynorm is not installed on 2 of the cluster's 2"
            with pytest.raises(ModuleNotFoundError, match=words):
                model.fit(in_chunks, labels)


def test_workers_that_the_client_forgets_for_a_moment_are_asked_for_again(client, monkeypatch):
    """It looks at the scheduler without them every other second, and keeps what it saw last."""
    asked, seen = client.scheduler_info, []

    def forgetful(n_workers):
        seen.append(n_workers)
        return {"workers": {}} if len(seen) < 3 else asked(n_workers=n_workers)

    monkeypatch.setattr(client, "scheduler_info", forgetful)
    assert len(dask_crew.memory_left_of(client)) == 2
    assert seen == [-1, -1, -1]
