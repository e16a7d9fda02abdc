"""The way of a fit: one binary problem per class, in threads, then everything stored at once.

A fit that is interrupted or fails leaves the estimator as it was before, because nothing is
written to it until all the solutions are there.
"""

from __future__ import annotations

import math
import threading
import time
import warnings
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from typing import Any, TypeVar

import numpy as np
import scipy.sparse as sp
from joblib import Parallel, delayed, effective_n_jobs
from sklearn.exceptions import ConvergenceWarning

from anynorm.estimators._parameters import intercept_kind, seed
from anynorm.estimators._state import keep
from anynorm.estimators._validation import Data
from anynorm.losses import get_loss
from anynorm.problem import Problem
from anynorm.problem.certificate import Certificate
from anynorm.problem.solution import Progress, Solution, Status

Report = Callable[[Progress], None]
Found = TypeVar("Found")

_TO_CALLER_OF_FIT = 5  # stack frames from a warning: itself, store, store_linear or its like, fit


def deadline(time_limit: float | None) -> float | None:
    """The moment on `time.monotonic`'s clock at which `time_limit` seconds from now are over."""
    return None if time_limit is None else time.monotonic() + float(time_limit)


def binary_problem(estimator: Any, data: Data, index: int, **regulariser: Any) -> Problem:
    """Binary problem `index` of `data`, with the estimator's C, loss and intercept."""
    return Problem(
        y=data.signs(index),
        C=float(estimator.C),
        loss=get_loss(estimator.loss),
        X=data.X,
        sample_weight=data.weights,
        intercept=intercept_kind(estimator.fit_intercept, estimator.intercept_scaling),
        **regulariser,
    )


def solve_classes(
    estimator: Any,
    data: Data,
    solve: Callable[..., Found],
    end: float | None,
    *,
    report: Callable[[int, Progress], None] | None,
    **regulariser: Any,
) -> list[Found]:
    """Solve the estimator's binary problems with one of the solvers.

    Parameters
    ----------
    estimator : estimator
        Its C, loss, intercept, tol, max_iter, random_state, n_jobs and warm start are used.
    data : Data
        What was validated.
    solve : callable
        ``solve(problem, tol=, max_iter=, deadline=, seed=, start=, progress=)``.
    end : float or None
        The deadline.
    report : callable or None
        As in `run_all`.
    **regulariser : dict
        The pieces of `Problem` that say what is penalised; none for the plain 2-norm.
    """
    starts, first = warm_starts(estimator, data), seed(estimator.random_state)

    def run(index: int, progress: Report | None) -> Found:
        return solve(
            binary_problem(estimator, data, index, **regulariser),
            tol=float(estimator.tol),
            max_iter=int(estimator.max_iter),
            deadline=end,
            seed=first,
            start=starts[index],
            progress=progress,
        )

    return run_all(data.n_problems, run, n_jobs=estimator.n_jobs, report=report)


def run_all(
    count: int,
    solve: Callable[[int, Report | None], Found],
    *,
    n_jobs: int | None,
    report: Callable[[int, Progress], None] | None,
) -> list[Found]:
    """Solve independent problems, `n_jobs` at a time.

    Parameters
    ----------
    count : int
        The number of problems.
    solve : callable
        ``solve(index, progress)`` solves problem `index`.  The problems share nothing that
        changes, so the result does not depend on `n_jobs`.
    n_jobs : int or None
        The number of threads, as in joblib.
    report : callable or None
        ``report(index, progress)`` is called with every progress report.

    Returns
    -------
    list
        What `solve` returned, in the order of the problems.
    """
    if count == 1 or effective_n_jobs(n_jobs) == 1:
        return [solve(k, _bound(report, k)) for k in range(count)]
    interrupted = threading.Event()

    def run(index: int) -> Found:
        inner = _bound(report, index)

        def progress(state: Progress) -> None:
            if interrupted.is_set():
                raise KeyboardInterrupt
            if inner is not None:
                inner(state)

        return solve(index, progress)

    try:
        tasks = (delayed(run)(k) for k in range(count))
        return list(Parallel(n_jobs=n_jobs, require="sharedmem")(tasks))
    except BaseException:
        interrupted.set()  # threads still at work stop at their next report
        raise


def of_any(report: Report | None) -> Callable[[int, Progress], None] | None:
    """A report for `run_all` that does not ask which problem it is about."""
    if report is None:
        return None
    return lambda _, state: report(state)


def _bound(report: Callable[[int, Progress], None] | None, index: int) -> Report | None:
    if report is None:
        return None
    return lambda state: report(index, state)


def printer(estimator: Any, data: Data) -> Callable[[int, Progress], None] | None:
    """What prints the progress of a fit for `estimator.verbose`, or None for silence."""
    if not estimator.verbose:
        return None
    name = type(estimator).__name__
    if estimator.verbose >= 2:
        storage = data.X.format.upper() if sp.issparse(data.X) else "dense"
        print(
            f"{name}: {data.X.shape[0]} rows, {data.X.shape[1]} features ({storage}, "
            f"{data.X.dtype}), {len(data.classes)} classes, {_settings(estimator)}",
            flush=True,
        )

    def show(index: int, state: Progress) -> None:
        # With its end in one piece: threads must not write into each other's lines.
        print(
            f"{_title(name, data, index)}: iteration {state.iteration}, "
            f"primal {state.primal:.8g}, dual {state.dual:.8g}, gap {state.gap:.2e}, "
            f"{state.seconds:.2f} s\n",
            end="",
            flush=True,
        )

    return show


def _settings(estimator: Any) -> str:
    """What is solved, as ``name=value`` for the parameters that say so."""
    given = estimator.get_params(deep=False)
    shown = [
        f"{name}={given[name]!r}"
        for name in ("budget", "loss", "slack", "constraints", "kernel")
        if name in given
    ]
    return ", ".join([*shown, *(f"{name}={float(given[name]):g}" for name in ("C", "tol"))])


def _title(name: str, data: Data, index: int) -> str:
    label = data.classes.tolist()[data.positive(index)]
    return f"{name}, class {label!r} against the rest" if data.n_problems > 1 else name


def store_linear(
    estimator: Any,
    data: Data,
    solutions: Sequence[Solution],
    more: Mapping[str, Any] | None = None,
) -> Any:
    """Give a linear `estimator` its fitted attributes, in one step; see `store`.

    `more` has attributes beyond those that follow from the solutions, or instead of them.
    """
    coef = np.array([solution.coef for solution in solutions], dtype=np.float64)
    return store(estimator, data, solutions, {"coef_": coef} | dict(more or {}))


def store(
    estimator: Any, data: Data, solutions: Sequence[Solution], special: Mapping[str, Any]
) -> Any:
    """Give `estimator` its fitted attributes, in one step, and warn where tol was not reached.

    `special` has those of its family, and those that are to be others than the solutions'.
    """
    certificate = joint_certificate(solutions)
    fitted = {
        "intercept_": np.array([solution.intercept for solution in solutions], dtype=np.float64),
        "classes_": data.classes,
        "n_iter_": max(solution.n_iter for solution in solutions),
        "certificate_": certificate,
        "n_features_in_": data.X.shape[1],
    }
    if getattr(estimator, "warm_start", False):
        fitted["_duals"] = [solution.dual for solution in solutions]
    fitted.update(special)
    keep(estimator, fitted, data.feature_names)
    if estimator.verbose >= 2:
        for index, part in enumerate(certificate.per_class):
            print(f"{_title(type(estimator).__name__, data, index)}: {part}", flush=True)
    most = getattr(estimator, "max_iter", math.inf)
    warn_if_not_converged(certificate, fitted["n_iter_"], most)
    return estimator


def joint_certificate(solutions: Sequence[Solution]) -> Certificate:
    """One certificate for the binary problems, with the parts in ``per_class``."""
    parts = tuple(solution.certificate for solution in solutions)
    return replace(Certificate.combine(parts), per_class=parts)


def warm_starts(estimator: Any, data: Data) -> Sequence[np.ndarray | None]:
    """The duals of the previous fit where `warm_start` asks for them and their shapes fit."""
    duals = getattr(estimator, "_duals", None) if estimator.warm_start else None
    shape = (data.n_problems, data.X.shape[0])
    if duals is None or (len(duals), len(duals[0])) != shape:
        return [None] * data.n_problems
    return duals


def warn_if_not_converged(certificate: Certificate, n_iter: int, max_iter: float) -> None:
    """Warn with the gap that was reached, and say what to do about it."""
    if certificate.status is Status.OPTIMAL:
        return
    if certificate.status is Status.UNCERTIFIED:
        warnings.warn(
            "the kernel is not positive semidefinite: there is no duality gap to say how good this "
            "model is. Check the kernel, or add to its diagonal.",
            ConvergenceWarning,
            stacklevel=_TO_CALLER_OF_FIT,
        )
        return
    short = [c for c in certificate.per_class if c.status is not Status.OPTIMAL]
    worst = max(short, key=lambda c: c.gap)
    where = f" in {len(short)} of {len(certificate.per_class)} classes"
    if certificate.status is Status.TIME_LIMIT:
        remedy = "raise time_limit"
    elif n_iter >= max_iter:
        remedy = "raise max_iter"
    else:
        remedy = (
            "float64 allows no smaller gap here: raise tol, or bring the features to one scale, "
            "e.g. with sklearn.preprocessing.StandardScaler"
        )
    warnings.warn(
        f"stopped at a relative gap of {worst.gap:.1e} after {n_iter} iterations "
        f"(tol={worst.tol:.0e}){where if len(certificate.per_class) > 1 else ''}. The model is "
        f"usable and its certificate says how far it is from optimal; {remedy}.",
        ConvergenceWarning,
        stacklevel=_TO_CALLER_OF_FIT,
    )
