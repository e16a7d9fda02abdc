"""When a search that goes on to ever larger C has nothing more to win.

Along C, from where the first feature enters, the folds' scores rise, stay level for a while, and
fall where the models follow the noise.  With more rows than features the level part has most of a
path's joints, and no fall may ever come.  Two signs end the search, both about the last factor of
ten in C, which is far longer than the ups and downs of a curve by chance:

- fallen: every score there is more than one standard error below the best;
- level: the best score there is above the best before by less than a quarter of its standard
  error, which no choice between them would rest on.

While the best is not one standard error above the score of the model without features, nothing has
been learnt yet, and no sign counts.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from anynorm.estimators._cross_validation import standard_error

LAST = 10.0  # the factor in C that is looked at
_LEVEL = 0.25  # of a standard error: a gain that is none


class Stop(NamedTuple):
    """Where and why a search ended before all was tried.

    Attributes
    ----------
    C : float
        The largest C that was tried.
    reason : str
        "fallen" or "level".
    """

    C: float
    reason: str

    def __str__(self) -> str:
        """In words, for a report."""
        why = {
            "fallen": "from a tenth of that C on no score comes within one standard error of the "
            "best",
            "level": "the last factor of ten in C raised the best score by less than a quarter of "
            "its standard error",
        }
        return f"cross-validation ended at C = {self.C:.3g}: {why[self.reason]}"


def stop_at(prices: np.ndarray, scores: np.ndarray) -> Stop | None:
    """Say whether to stop at the last of some values of C.

    Parameters
    ----------
    prices : ndarray of shape (m,)
        The values of C, ascending; the first gives the model without features, the second is about
        where features enter.
    scores : ndarray of shape (m, folds)
        The folds' scores there.

    Returns
    -------
    Stop or None
        None where going on may pay.

    Examples
    --------
    >>> import numpy as np
    >>> from anynorm.estimators._stopping import stop_at
    >>> prices = np.array([0.5, 1.0, 3.0, 10.0, 30.0])
    >>> mean = np.array([0.5, 0.7, 0.9, 0.9, 0.8])
    >>> spread = np.array([-0.01, 0.0, 0.01])
    >>> stop_at(prices, mean[:, None] + spread).reason
    'level'
    >>> stop_at(prices[:4], mean[:4, None] + spread) is None
    True
    """
    last = float(prices[-1])
    late = prices > last / LAST * (1 + 1e-9)
    if late[1]:
        return None
    mean = scores.mean(axis=1)
    top = int(mean.argmax())
    error = standard_error(scores[top])
    if not mean[top] > mean[0] + error:
        return None
    if mean[late].max() < mean[top] - error:
        return Stop(last, "fallen")
    if mean[late].max() <= mean[~late].max() + _LEVEL * error:
        return Stop(last, "level")
    return None
