"""Methods of a family of solvers: what each needs of a problem, and the order they are tried in."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

from anynorm.norms.dual_sets import DualSet
from anynorm.problem import Problem


def always(*_: Any, **__: Any) -> bool:
    """Whether a method that suits every problem suits this one."""
    return True


@dataclass(frozen=True)
class Method:
    """One way to solve a problem.

    Attributes
    ----------
    name : str
        What it is called in messages.
    solve : callable
        Its arguments are the family's own.
    dual_sets : tuple of types
        The sets of dual variables that it can handle.
    needs_curve : bool
        Whether the loss must be smooth.
    suits : callable
        Whether it is worth trying, asked with the arguments of `solve`; what it needs is there.

    Examples
    --------
    >>> import numpy as np
    >>> from anynorm.losses import get_loss
    >>> from anynorm.norms.dual_sets import Box
    >>> from anynorm.problem import Problem
    >>> from anynorm.solvers.frame.methods import Method
    >>> newton = Method("Newton's method", print, needs_curve=True)
    >>> X, y = np.array([[1.0], [-1.0]]), np.array([1.0, -1.0])
    >>> newton.lacks(Problem(y=y, C=1.0, loss=get_loss("hinge"), X=X))
    "Newton's method needs a smooth loss (a curve)"
    """

    name: str
    solve: Callable[..., Any]
    dual_sets: tuple[type[DualSet], ...] = (DualSet,)
    needs_curve: bool = False
    suits: Callable[..., bool] = always

    def lacks(self, problem: Problem) -> str | None:
        """Return what the method needs and the problem's loss has not, in words."""
        if self.needs_curve and not problem.loss.smooth:
            return f"{self.name} needs a smooth loss (a curve)"
        if not isinstance(problem.dual_set, self.dual_sets):
            known = " or ".join(kind.__name__ for kind in self.dual_sets)
            return f"{self.name} needs a dual set of the kind {known}"
        return None


def methods_for(family: str, methods: Sequence[Method], problem: Problem) -> list[Method]:
    """Return the methods that can solve a problem, in their order.

    Raises
    ------
    ValueError
        Where there is none; the message says what the loss lacks.
    """
    lacks = [method.lacks(problem) for method in methods]
    able = [method for method, lack in zip(methods, lacks, strict=True) if lack is None]
    if not able:
        reasons = "; ".join(dict.fromkeys(lack for lack in lacks if lack is not None))
        raise ValueError(
            f"{family} cannot solve a problem with the loss {problem.loss.name!r}, whose dual set "
            f"is a {type(problem.dual_set).__name__}: {reasons}."
        )
    return able
