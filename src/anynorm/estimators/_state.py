"""How fitted attributes come to an estimator: all in one step."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np


def keep(estimator: Any, fitted: Mapping[str, Any], names: np.ndarray | None) -> None:
    """Give `estimator` what was fitted, in one step; an error before leaves the old state.

    `names` are those of the features, None where X had none.
    """
    state = {k: v for k, v in vars(estimator).items() if k != "_duals" and not k.endswith("_")}
    named = {} if names is None else {"feature_names_in_": names}
    estimator.__dict__ = state | named | dict(fitted)
