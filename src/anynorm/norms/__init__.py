"""Slack norms: what a vector of slacks costs, and the dual norms that bound the multipliers.

Every norm N has its value N(v), its dual value ``N*(a) = max a'v over N(v) <= 1`` and the
maximiser of that problem.  With sample weights w (``norm.weighted(w)``) a row of weight 2
counts as the row written twice, and a row of weight 0 as no row at all:

    norm        value                                          dual value
    L1          sum w|v|                                       max |a|/w
    L2          sqrt(sum w v^2)                                sqrt(sum a^2/w)
    Lp(p)       (sum w|v|^p)^(1/p)                             (sum |a|^q w^(1-q))^(1/q)
    LInf        max |v| over w > 0                             sum |a|
    TopK(k)     the k largest |v|, weights counted             max(max |a|/w, sum |a| / k)
    TopK2(k)    min_z sqrt(sum w(|v|-z)_+^2) + sqrt(k) z        max(sqrt(sum a^2/w), sum|a|/sqrt(k))
    K12(r)      min_z sum w(|v|-z)_+                           max(max |a|/w, sqrt(sum a^2/w / r))
                      + sqrt(r sum w min(|v|, z)^2)
    Mahalanobis sqrt(v'Mv)                                     sqrt(a'M^-1 a)

TopK, TopK2 and K12 are Peetre's K(1,inf,k), K(2,inf,sqrt k) and K(1,2,sqrt r) norms of
Dekel and Singer, "Support Vector Machines on a Budget".
"""

from __future__ import annotations

from anynorm.norms.interpolated import K12, TopK, TopK2
from anynorm.norms.mahalanobis import Mahalanobis
from anynorm.norms.norm import Norm
from anynorm.norms.p_norms import L1, L2, LInf, Lp, SquaredL2

__all__ = [
    "K12",
    "L1",
    "L2",
    "LInf",
    "Lp",
    "Mahalanobis",
    "Norm",
    "SquaredL2",
    "TopK",
    "TopK2",
    "get_norm",
]

NAMED_NORMS: dict[str, type[Norm] | type[SquaredL2]] = {
    "l1": L1,
    "l2": L2,
    "linf": LInf,
    "squared_l2": SquaredL2,
}
"""The norms that have no parameters, by the names that estimators take."""


def get_norm(slack: str | Norm | SquaredL2) -> Norm | SquaredL2:
    """Return the slack norm of a name, or the norm given.

    Examples
    --------
    >>> from anynorm.norms import get_norm
    >>> get_norm("linf")
    LInf()
    """
    if isinstance(slack, Norm | SquaredL2):
        return slack
    if slack not in NAMED_NORMS:
        raise ValueError(
            f"slack must be one of {sorted(NAMED_NORMS)} or a norm of anynorm.norms; got {slack!r}"
        )
    return NAMED_NORMS[slack]()
