"""The papers' data: generators, and a loader for the real sets.

Generators draw what the papers describe, so that their figures can be made again:

* `make_skin`: the orange and its skin (1-norm SVM paper, section 4.1);
* `make_relevant`: a given number of relevant features among many (walk paper, Figure 3);
* `make_two_gaussians`: two clouds with switched labels (least 1-norm paper, Figure 1).

`load_dataset` reads a named set from the folder in the environment variable ``ANYNORM_DATA``,
or fetches it from OpenML through scikit-learn, which keeps a copy on disk.
"""

import importlib.util
import math
import numbers
import os
import pathlib
import zipfile
import zlib
from collections.abc import Mapping
from typing import Any, Literal, NamedTuple, overload

import numpy as np
import scipy.sparse as sp
from numpy.typing import DTypeLike
from sklearn.datasets import fetch_openml
from sklearn.utils import Bunch, check_random_state

from anynorm.estimators.dictionaries import degree_two

__all__ = ["load_dataset", "make_relevant", "make_skin", "make_two_gaussians"]

RandomState = int | np.random.RandomState | None


class _OpenML(NamedTuple):
    """Where a set is on OpenML, and the shape by which a wrong one is recognised."""

    name: str
    shape: tuple[int, int]
    version: int = 1


_OPENML = {
    "arcene": _OpenML("arcene", (200, 10_000)),
    "ecoli": _OpenML("ecoli", (336, 7)),
    "glass": _OpenML("glass", (214, 9)),
    "heart_statlog": _OpenML("heart-statlog", (270, 13)),
    "ionosphere": _OpenML("ionosphere", (351, 34)),
    "iris": _OpenML("iris", (150, 4)),
    "leukemia_7129": _OpenML("leukemia", (72, 7129)),
    "madelon": _OpenML("madelon", (2600, 500)),
    "mnist": _OpenML("mnist_784", (70_000, 784)),
    "pima": _OpenML("diabetes", (768, 8)),
    "segment": _OpenML("segment", (2310, 19)),
    "sonar": _OpenML("sonar", (208, 60)),
    "vehicle": _OpenML("vehicle", (846, 18)),
    "wdbc": _OpenML("wdbc", (569, 30)),
    "wine": _OpenML("wine", (178, 13)),
    "wisconsin_original": _OpenML("breast-w", (683, 9)),
}

_ALIASES = {"dlbcl": "dlbcl_7129", "leukemia": "leukemia_7129", "prostate": "prostate_12600"}


def make_skin(
    n_samples: int = 100,
    *,
    n_noise: int = 0,
    dictionary: bool = False,
    random_state: RandomState = None,
) -> tuple[np.ndarray, np.ndarray]:
    """Draw the orange and its skin: a class that surrounds the other in two dimensions.

    The first class has two standard normal inputs; the second has the same, conditioned on
    ``4.5 <= x1**2 + x2**2 <= 8``.  Noise inputs are standard normal in both.  The Bayes error is
    0.0435 whatever the number of noise inputs.

    Parameters
    ----------
    n_samples : int, default=100
        Number of examples, half of each class (the first has one more if it is odd).
    n_noise : int, default=0
        Number of noise inputs after the two that matter.
    dictionary : bool, default=False
        Return the basis functions of the degree-2 polynomial kernel instead of the inputs:
        ``sqrt(2) x_j``, then ``sqrt(2) x_j x_k`` for j < k, then ``x_j**2``.
    random_state : int, RandomState instance or None, default=None
        Seed of the draw.

    Returns
    -------
    X : ndarray of shape (n_samples, p)
        p is ``q = 2 + n_noise``, or ``q + q (q - 1) / 2 + q`` with the dictionary.
    y : ndarray of shape (n_samples,)
        +1 for the first class (the orange), -1 for the second (the skin).

    References
    ----------
    J. Zhu, S. Rosset, T. Hastie, R. Tibshirani: 1-norm support vector machines, NIPS 2003.

    Examples
    --------
    >>> from anynorm.datasets import make_skin
    >>> X, y = make_skin(n_noise=2, dictionary=True, random_state=0)
    >>> X.shape
    (100, 14)
    """
    n_samples = _count("n_samples", n_samples, minimum=2)
    n_noise = _count("n_noise", n_noise, minimum=0)
    rng = check_random_state(random_state)
    y = _halves(n_samples)
    inputs = rng.standard_normal((n_samples, 2 + n_noise))
    skin = y < 0
    # The squared radius of two normals is exponential, so a uniform between exp(-8/2) and
    # exp(-4.5/2) gives the conditioned radius without rejection.
    radius = np.sqrt(-2 * np.log(rng.uniform(math.exp(-4), math.exp(-2.25), skin.sum())))
    angle = rng.uniform(0, 2 * math.pi, skin.sum())
    inputs[skin, :2] = (radius * np.array([np.cos(angle), np.sin(angle)])).T
    X = degree_two(inputs) if dictionary else inputs
    return _shuffled(X, y, rng)


def make_relevant(
    n_samples: int = 100,
    n_features: int = 200,
    *,
    n_relevant: int = 10,
    distance: float = 3.0,
    random_state: RandomState = None,
) -> tuple[np.ndarray, np.ndarray]:
    """Draw two unit-variance Gaussians that differ in the first `n_relevant` features.

    The means are ``+-distance / 2`` apart from the origin whatever the number of relevant
    features, so the Bayes error stays the same: each relevant feature has the mean
    ``y * distance / (2 * sqrt(n_relevant))``.

    Parameters
    ----------
    n_samples : int, default=100
        Number of examples, half of each class (the first has one more if it is odd).
    n_features : int, default=200
        Number of features.
    n_relevant : int, default=10
        Number of features with different means, the first ones.
    distance : float, default=3.0
        Euclidean distance of the two means.
    random_state : int, RandomState instance or None, default=None
        Seed of the draw.

    Returns
    -------
    X : ndarray of shape (n_samples, n_features)
        The examples, in random order.
    y : ndarray of shape (n_samples,)
        +1 and -1.

    References
    ----------
    J. Kujala, T. Aho, T. Elomaa: A walk from 2-norm SVM to 1-norm SVM, ICDM 2009.

    Examples
    --------
    >>> from anynorm.datasets import make_relevant
    >>> X, y = make_relevant(n_relevant=4, random_state=0)
    >>> X.shape, int(y.sum())
    ((100, 200), 0)
    """
    n_samples = _count("n_samples", n_samples, minimum=2)
    n_features = _count("n_features", n_features, minimum=1)
    n_relevant = _count("n_relevant", n_relevant, minimum=1)
    if n_relevant > n_features:
        raise ValueError(
            f"n_relevant must be at most n_features; got {n_relevant} > {n_features}. "
            "Raise n_features or lower n_relevant."
        )
    if not (isinstance(distance, numbers.Real) and 0 <= distance < math.inf):
        raise ValueError(f"distance must be a finite number of at least 0; got {distance!r}.")
    rng = check_random_state(random_state)
    y = _halves(n_samples)
    X = rng.standard_normal((n_samples, n_features))
    X[:, :n_relevant] += np.outer(y, np.full(n_relevant, distance / (2 * math.sqrt(n_relevant))))
    return _shuffled(X, y, rng)


def make_two_gaussians(
    n_samples: int = 40, *, n_switched: int = 2, random_state: RandomState = None
) -> tuple[np.ndarray, np.ndarray]:
    """Draw two unit Gaussians in the plane, with some labels switched to make outliers.

    The positive class has its mean at (0, 0), the negative class at (5, 2).

    Parameters
    ----------
    n_samples : int, default=40
        Number of examples, half of each class (the positive has one more if it is odd).
    n_switched : int, default=2
        Number of labels that are switched, taken from the two classes in turn.  0 leaves the
        classes (almost surely) linearly separable.
    random_state : int, RandomState instance or None, default=None
        Seed of the draw.  The points do not depend on `n_switched`.

    Returns
    -------
    X : ndarray of shape (n_samples, 2)
        The points, those drawn around (0, 0) first.
    y : ndarray of shape (n_samples,)
        +1 and -1, with `n_switched` of them switched.

    References
    ----------
    J. López, J. R. Dorronsoro: Least 1-norm SVMs: a new SVM variant between standard and
    LS-SVMs, ESANN 2010.

    Examples
    --------
    >>> from anynorm.datasets import make_two_gaussians
    >>> X, y = make_two_gaussians(random_state=0)
    >>> X.shape, int((y[:20] < 0).sum()), int((y[20:] > 0).sum())
    ((40, 2), 1, 1)
    """
    n_samples = _count("n_samples", n_samples, minimum=2)
    n_switched = _count("n_switched", n_switched, minimum=0)
    smaller = n_samples // 2
    if n_switched > 2 * smaller:
        raise ValueError(
            f"n_switched must be at most {2 * smaller}, the number of labels that can be switched "
            f"in turn among n_samples={n_samples}; got {n_switched}."
        )
    rng = check_random_state(random_state)
    y = _halves(n_samples)
    X = rng.standard_normal((n_samples, 2)) + np.outer(y < 0, [5.0, 2.0])
    positive, negative = rng.permutation(n_samples - smaller), rng.permutation(smaller)
    y[positive[: (n_switched + 1) // 2]] *= -1
    y[n_samples - smaller + negative[: n_switched // 2]] *= -1
    return X, y


@overload
def load_dataset(
    name: str,
    *,
    dtype: DTypeLike | None = ...,
    data_home: str | os.PathLike[str] | None = ...,
    return_X_y: Literal[False] = ...,
) -> Bunch: ...
@overload
def load_dataset(
    name: str,
    *,
    dtype: DTypeLike | None = ...,
    data_home: str | os.PathLike[str] | None = ...,
    return_X_y: Literal[True],
) -> tuple[Any, np.ndarray]: ...
def load_dataset(
    name: str,
    *,
    dtype: DTypeLike | None = None,
    data_home: str | os.PathLike[str] | None = None,
    return_X_y: bool = False,
) -> Bunch | tuple[Any, np.ndarray]:
    """Load a real data set by its name.

    The folder named by the environment variable ``ANYNORM_DATA`` is looked in first, for
    ``<name>.npz``.  What is not there is fetched from OpenML, once, where OpenML has it.

    Parameters
    ----------
    name : str
        Name of the set, e.g. "sonar", "ionosphere" or "leukemia".
    dtype : numpy dtype or None, default=None
        float32 or float64 for the data.  None turns integers into float64 and leaves
        floating-point numbers as they are stored.
    data_home : path or None, default=None
        Folder for scikit-learn's copies of what OpenML sent; None is scikit-learn's own.
    return_X_y : bool, default=False
        Return ``(data, target)`` alone.

    Returns
    -------
    dataset : :class:`sklearn.utils.Bunch`
        ``data`` (an array, or a CSR array), ``target`` (integers), ``feature_names`` (list or
        None), ``target_names`` (list or None: what the integers 0, 1, ... stand for; without it
        the integers are the source's own, e.g. -1 and +1), ``splits`` (a list of
        ``(train, test)`` index arrays, empty where the source has none; it can be given to
        scikit-learn as ``cv=``), ``name``, ``source`` ("file" or "openml").

    Raises
    ------
    ValueError
        The name is unknown, or the file is damaged.
    FileNotFoundError
        ``ANYNORM_DATA`` names a folder that does not exist.
    OSError
        OpenML cannot be reached.

    Notes
    -----
    A file holds ``X`` (dense) or ``data``, ``indices``, ``indptr`` and ``shape`` (CSR), with
    ``y`` and optionally ``class_names``, ``feature_names``, and either ``train_idx`` and
    ``test_idx`` (one row per split where there are several) or ``n_train`` (the first rows are
    the training part).  It is read without pickle.  From OpenML, rows with a missing value are
    left out.

    Examples
    --------
    >>> from anynorm.datasets import load_dataset
    >>> sonar = load_dataset("sonar")                                      # doctest: +SKIP
    >>> sonar.data.shape, sonar.target_names                               # doctest: +SKIP
    ((208, 60), ['M', 'R'])
    """
    if not isinstance(name, str) or not name or set(name) & set("/\\:"):
        raise ValueError(f"name must be the plain name of a data set, e.g. 'sonar'; got {name!r}.")
    if dtype is not None and np.dtype(dtype) not in (np.float32, np.float64):
        raise ValueError(f"dtype must be float32, float64 or None; got {dtype!r}.")
    known = _ALIASES.get(name, name)
    folder = _data_folder()
    path = None if folder is None else folder / f"{known}.npz"
    if path is not None and path.is_file():
        dataset = _read_file(path)
    elif known in _OPENML:
        dataset = _fetch_openml(_OPENML[known], data_home)
    else:
        raise ValueError(_unknown_name(name, folder))
    dataset.name = known
    if dtype is None:
        dtype = dataset.data.dtype if dataset.data.dtype.kind == "f" else np.float64
    dataset.data = dataset.data.astype(dtype, copy=False)
    return (dataset.data, dataset.target) if return_X_y else dataset


def _count(name: str, value: int, minimum: int) -> int:
    if not isinstance(value, numbers.Integral) or isinstance(value, bool) or value < minimum:
        raise ValueError(f"{name} must be an integer of at least {minimum}; got {value!r}.")
    return int(value)


def _halves(n_samples: int) -> np.ndarray:
    """Labels: the first half (rounded up) +1, the others -1."""
    return np.where(np.arange(n_samples) < (n_samples + 1) // 2, 1.0, -1.0)


def _shuffled(
    X: np.ndarray, y: np.ndarray, rng: np.random.RandomState
) -> tuple[np.ndarray, np.ndarray]:
    order = rng.permutation(len(y))
    return X[order], y[order]


def _data_folder() -> pathlib.Path | None:
    named = os.environ.get("ANYNORM_DATA")
    if not named:
        return None
    folder = pathlib.Path(named).expanduser()
    if not folder.is_dir():
        raise FileNotFoundError(
            f"ANYNORM_DATA is {named!r}, which is not a folder. Set it to the folder that holds "
            "the .npz files, or unset it to use OpenML."
        )
    return folder


def _unknown_name(name: str, folder: pathlib.Path | None) -> str:
    if folder is None:
        here = "ANYNORM_DATA is not set"
    else:
        files = sorted(path.stem for path in folder.glob("*.npz"))
        here = f"the folder in ANYNORM_DATA has {', '.join(files) or 'no .npz file'}"
    return (
        f"name={name!r} is not a known data set: {here}, and OpenML is asked for "
        f"{', '.join(sorted(_OPENML))}. To load your own, put {name}.npz into a folder and set "
        "ANYNORM_DATA to it (the format is described in the notes of load_dataset)."
    )


def _read_file(path: pathlib.Path) -> Bunch:
    """Read a file, and say which one it was when anything in it is not as it should be."""
    try:
        with np.load(path, allow_pickle=False) as archive:
            parts = {key: archive[key] for key in archive.files}
        return _from_parts(parts)
    except (KeyError, ValueError, OSError, EOFError, zipfile.BadZipFile, zlib.error) as error:
        reason = f"it has no {error}" if isinstance(error, KeyError) else error
        raise ValueError(
            f"the data set file {path} is damaged or not in the expected format ({reason}). "
            "Get it anew; the format is described in the notes of anynorm.datasets.load_dataset."
        ) from error


def _from_parts(parts: Mapping[str, np.ndarray]) -> Bunch:
    data: Any
    if "X" in parts:
        data = parts["X"]
        if data.ndim != 2:
            raise ValueError(f"X has {data.ndim} dimensions")
    else:
        pieces = (parts["data"], parts["indices"].astype(np.int32), parts["indptr"])
        data = sp.csr_array(pieces, shape=tuple(parts["shape"].tolist()))
        data.check_format(full_check=True)
    target = parts["y"].astype(np.int64)
    n_samples, n_features = data.shape
    if target.shape != (n_samples,):
        raise ValueError(f"y has shape {target.shape} for {n_samples} examples")
    names = _strings(parts.get("feature_names"))
    if names is not None and len(names) != n_features:
        raise ValueError(f"there are {len(names)} feature names for {n_features} features")
    return Bunch(
        data=data,
        target=target,
        feature_names=names,
        target_names=_strings(parts.get("class_names")),
        splits=_splits(parts, n_samples),
        source="file",
    )


def _strings(array: np.ndarray | None) -> list[str] | None:
    return None if array is None else [str(entry) for entry in array.tolist()]


def _splits(parts: Mapping[str, np.ndarray], n_samples: int) -> list[tuple[np.ndarray, np.ndarray]]:
    """Return the (train, test) pairs, each checked to be a partition of the rows."""
    if "n_train" in parts:
        first = int(parts["n_train"])
        pairs = [(np.arange(first), np.arange(first, n_samples))]
    elif "train_idx" in parts:
        train, test = (
            np.atleast_2d(parts[key]).astype(np.int64) for key in ("train_idx", "test_idx")
        )
        pairs = list(zip(train, test, strict=True))
    else:
        pairs = []
    for train, test in pairs:
        if not np.array_equal(np.sort(np.concatenate([train, test])), np.arange(n_samples)):
            raise ValueError("a train/test split is not a partition of the rows")
    return pairs


def _fetch_openml(where: _OpenML, data_home: str | os.PathLike[str] | None) -> Bunch:
    # Reading with pandas is faster, but pandas is not a dependency.
    parser = "auto" if importlib.util.find_spec("pandas") else "liac-arff"
    try:
        fetched = fetch_openml(
            where.name,
            version=where.version,
            data_home=data_home,
            as_frame=False,
            parser=parser,
        )
    except OSError as error:
        raise OSError(
            f"OpenML cannot be reached for the data set {where.name!r} ({error}). Check the "
            "network, or put the .npz file into a folder and set ANYNORM_DATA to it."
        ) from error
    data = fetched.data
    if sp.issparse(data):
        complete = np.ones(data.shape[0], dtype=bool)
    else:
        complete = ~np.isnan(data).any(axis=1)
        data = data[complete]
    classes, target = np.unique(fetched.target[complete], return_inverse=True)
    if data.shape != where.shape:
        raise ValueError(
            f"OpenML's {where.name!r} version {where.version} has shape {data.shape} where "
            f"{where.shape} was expected: it is not the set that this name stands for. "
            "Put the right one into a folder as .npz and set ANYNORM_DATA to it."
        )
    return Bunch(
        data=sp.csr_array(data) if sp.issparse(data) else data,
        target=target.astype(np.int64),
        feature_names=list(fetched.feature_names),
        target_names=[str(entry) for entry in classes],
        splits=[],
        source="openml",
    )
