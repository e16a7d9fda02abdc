"""What a user is told beside the result: progress, certificates, warnings.

Everything that estimators and the functions beside them print or warn of goes through `say` and
`warn`; solvers are silent.
"""

from __future__ import annotations

import sys
import warnings
from typing import TYPE_CHECKING, Any, TypeVar

from sklearn.exceptions import ConvergenceWarning

from anynorm.design.waiting import tell_of_compiling
from anynorm.problem.certificate import Certificate
from anynorm.problem.solution import Progress, Status

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from types import FrameType

    from anynorm.estimators.checks.labels import Labelled

Printer = TypeVar("Printer")

_RESCALE = "bring the features to one scale, e.g. with sklearn.preprocessing.StandardScaler"
_WRAPPING = ("anynorm", "sklearn", "joblib")  # packages whose lines are not the user's
_WORKERS = ("threading", "multiprocessing", "concurrent")  # where a stack without the user begins


def warn(message: str, category: type[Warning] = ConvergenceWarning) -> None:
    """Warn of something, at the line of the user that led to it.

    That is the first one outside of this package, and of those whose pipelines and searches may lie
    between; in a thread or process that such a search has started, where there is none, the line
    that called us.
    """
    packages = list(_packages(sys._getframe(1)))
    place = _first_outside(packages, _WRAPPING)
    if packages[place] in _WORKERS:
        place = _first_outside(packages, ("anynorm",))
    warnings.warn(message, category, stacklevel=place + 2)


def _packages(frame: FrameType | None) -> Iterator[str]:
    """The packages that the lines on the stack belong to, from the innermost."""
    while frame is not None:
        yield str(frame.f_globals.get("__name__", "")).partition(".")[0]
        frame = frame.f_back


def _first_outside(packages: list[str], known: tuple[str, ...]) -> int:
    places = (place for place, package in enumerate(packages) if package not in known)
    return next(places, len(packages) - 1)


def say(line: str) -> None:
    """Print a line, with its end in one piece: threads must not write into each other's."""
    print(f"{line}\n", end="", flush=True)


def progress_printer(
    title: str, verbose: int, *, unit: str = "iteration"
) -> Callable[[Progress], None] | None:
    """What prints a line per progress report, or None for silence; `unit` is what is counted."""
    if not verbose:
        return None
    return _printer(title, lambda state: _show(title, unit, state))


def _printer(title: str, show: Printer) -> Printer:
    """The printer, which also says so, as long as it lives, where a fit waits for the compiler."""
    tell_of_compiling(show, lambda line: say(f"{title}: {line}"))
    return show


def _show(title: str, unit: str, state: Progress) -> None:
    say(
        f"{title}: {unit} {state.iteration}, primal {state.primal:.8g}, dual {state.dual:.8g}, "
        f"gap {state.gap:.2e}, {state.seconds:.2f} s"
    )


def classes_printer(estimator: Any, data: Labelled) -> Callable[[int, Progress], None] | None:
    """The same for the binary problems of a classifier; verbose=2 describes the data first."""
    if not estimator.verbose:
        return None
    name = type(estimator).__name__
    if estimator.verbose >= 2:
        say(
            f"{name}: {data.X.shape[0]} rows, {data.X.shape[1]} features ({data.storage}), "
            f"{len(data.classes)} classes, {_settings(estimator)}"
        )
    return _printer(name, lambda index, state: _show(_title(name, data, index), "iteration", state))


def _settings(estimator: Any) -> str:
    """What is solved, as ``name=value`` for the parameters that say so."""
    given = estimator.get_params(deep=False)
    shown = [
        f"{name}={given[name]!r}"
        for name in ("budget", "loss", "slack", "constraints", "kernel")
        if name in given
    ]
    return ", ".join([*shown, *(f"{name}={float(given[name]):g}" for name in ("C", "tol"))])


def _title(name: str, data: Labelled, index: int) -> str:
    label = data.classes.tolist()[data.positive(index)]
    return f"{name}, class {label!r} against the rest" if data.n_problems > 1 else name


def say_certificates(estimator: Any, data: Labelled, certificate: Certificate) -> None:
    """Print the certificates of a classifier's binary problems where verbose=2 asks for them."""
    if estimator.verbose >= 2:
        for index, part in enumerate(certificate.per_class):
            say(f"{_title(type(estimator).__name__, data, index)}: {part}")


def warn_if_not_converged(
    certificate: Certificate,
    n_iter: int,
    max_iter: float,
    *,
    found: str = "model",
    rescale: str = _RESCALE,
    may_vanish: bool = False,
) -> None:
    """Warn with the gap that was reached, and say what to do about it.

    `found` is what was looked for, `rescale` what brings a smaller gap within reach, and
    `may_vanish` says that an optimum of 0 is an answer like others: a residual, a distance.
    """
    if certificate.status is Status.OPTIMAL:
        return
    if certificate.status is Status.NEGLIGIBLE and may_vanish:
        return
    if certificate.status is Status.UNCERTIFIED:
        warn(
            "the kernel is not positive semidefinite, or could not be shown to be: there is no "
            f"duality gap to say how good this {found} is. Check the kernel, or add to its "
            "diagonal."
        )
        return
    parts = certificate.per_class or (certificate,)
    short = [part for part in parts if part.status is not Status.OPTIMAL]
    worst = max(short, key=lambda part: part.gap)
    where = f" in {len(short)} of {len(parts)} classes" if len(parts) > 1 else ""
    if certificate.status is Status.TIME_LIMIT:
        remedy = "raise time_limit"
    elif certificate.status is Status.NEGLIGIBLE:
        remedy = f"float64 cannot tell what is left from rounding: raise tol, or {rescale}"
    elif n_iter >= max_iter:
        remedy = "raise max_iter"
    else:
        remedy = f"no method came closer: raise tol, or {rescale}"
    warn(
        f"stopped at a relative gap of {worst.gap:.1e} after {n_iter} iterations "
        f"(tol={worst.tol:.0e}){where}. The {found} is usable and its certificate says how far it "
        f"is from optimal; {remedy}."
    )


def warn_of_a_hasty_choice() -> None:
    """Warn that support vectors were chosen in less time than it takes."""
    warn(
        "time_limit ended the choice of the support vectors. The certificate holds for those that "
        "were found by then, perhaps fewer than the budget allows; raise time_limit for better "
        "ones."
    )
