"""Support vector machines that are sparse, robust or small, with certificates.

Names are loaded when they are first used (PEP 562), so ``import anynorm`` is as cheap as an
empty module: neither scikit-learn nor Numba is imported before an estimator is asked for.  The
names and their homes stand in ``__init__.pyi``, where type checkers look for them too.

Examples
--------
>>> from anynorm import LinearSVC
>>> from anynorm.datasets import make_relevant
>>> X, y = make_relevant(n_relevant=4, random_state=0)
>>> model = LinearSVC(C=0.1).fit(X, y)
>>> print(model.certificate_)
optimal: primal 0.1832..., dual 0.1832..., relative gap ... (tol 1e-04)
"""

import importlib
import pkgutil
import re
from typing import Any

__version__ = "0.1.0.dev0"

_LIST = (pkgutil.get_data(__name__, "__init__.pyi") or b"").decode()
_HOME = {
    name: home for home, name in re.findall(r"^from (\S+) import (\w+)", _LIST, flags=re.MULTILINE)
}

__all__ = sorted([*_HOME, "__version__"])


def __getattr__(name: str) -> Any:
    """Import a public name at its first use and keep it."""
    if name not in _HOME:
        raise AttributeError(f"module 'anynorm' has no attribute {name!r}; it has {__all__}")
    home = _HOME[name]
    # `from anynorm.app import report` imports a module, the others a member of one.
    is_module = home in ("anynorm", "anynorm.app")
    value = (
        importlib.import_module(f"{home}.{name}")
        if is_module
        else getattr(importlib.import_module(home), name)
    )
    globals()[name] = value
    return value


def __dir__() -> list[str]:
    return sorted({*globals(), *__all__})
