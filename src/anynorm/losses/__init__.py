"""What the residuals r = 1 - margin cost, and the conjugates the duals need.

    loss            slack        constraints    g(r)
    hinge           L1           inequality     C sum w r_+
    squared_hinge   SquaredL2    inequality     C sum w r_+^2
    absolute        L1           equality       C sum w |r|
    squared         SquaredL2    equality       C sum w r^2
    logistic        none         none           C sum w log(1 + exp(r - 1))

and, for any norm, ``C N_w(r_+)`` (inequality) or ``C N_w(r)`` (equality).  The dual of
``R(w) + g(1 - y(Xw + b))`` is ``sum a - R*(X'(y a)) - g*(a)`` with y'a = 0 for a free b.

A loss says what it can do: its value, its dual gain, the set its duals are in, the repair of
duals, its best biases, and its derivatives where it has them.  Solvers ask for these, never for a
name.
"""

from __future__ import annotations

from anynorm.losses.logistic import LogisticLoss
from anynorm.losses.loss import Loss
from anynorm.losses.slack import NormLoss, SquaredLoss
from anynorm.norms import L1, SquaredL2

__all__ = ["LOSSES", "Loss", "get_loss"]

LOSSES: dict[str, Loss] = {
    loss.name: loss
    for loss in (
        NormLoss("hinge", L1(), "inequality"),
        SquaredLoss("squared_hinge", SquaredL2(), "inequality"),
        NormLoss("absolute", L1(), "equality"),
        SquaredLoss("squared", SquaredL2(), "equality"),
        LogisticLoss(),
    )
}
"""The losses that have names, by the names that estimators take."""


def get_loss(loss: str | Loss) -> Loss:
    """Return the loss of a name, or the loss given.

    Examples
    --------
    >>> from anynorm.losses import get_loss
    >>> get_loss("absolute").constraints
    'equality'
    """
    if isinstance(loss, Loss):
        return loss
    if loss not in LOSSES:
        raise ValueError(f"loss must be one of {sorted(LOSSES)}; got {loss!r}")
    return LOSSES[loss]
