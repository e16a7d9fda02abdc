"""How many joints a path has: the paper's own procedure, and other readings of its experiment.

The procedure (section 3.3) goes from vertex to vertex.  At a vertex the set E of points with
margin 1 has one more member than the set V of bases in use.  Either a basis joins V or a point
leaves E; the move with the steepest fall of the loss per unit of s is taken, until a point reaches
margin 1 or a coefficient reaches zero.

Its formula (12) for a point that leaves E sums over the points that had a loss before.  If the
point leaves to the side where it has a loss, that loss is missing.  `complete=True` adds it.
"""

from typing import NamedTuple

import numpy as np

from anynorm import sparse_svm_path
from anynorm.datasets import make_skin
from anynorm.estimators.paths.solution_path import SolutionPath

_SMALL = 1e-12


class Move(NamedTuple):
    """A direction of (b, w) of unit growth in s, and what changes: a point or a basis."""

    slope: float
    bias: float
    coef: np.ndarray
    point: int | None = None
    basis: int | None = None


class Vertex:
    """A point of the path at which E and V determine it."""

    def __init__(self, X: np.ndarray, y: np.ndarray, coef: np.ndarray, bias: float) -> None:
        self.X, self.y, self.coef, self.bias = X, y, coef.copy(), bias
        residual = 1 - y * (X @ coef + bias)
        self.E: list[int] = np.flatnonzero(np.abs(residual) < 1e-8).tolist()
        self.V: list[int] = np.flatnonzero(coef).tolist()
        self.lossy = residual >= 1e-8

    def moves(self, *, complete: bool) -> list[Move]:
        """All moves that lower the loss."""
        X, y, E, V = self.X, self.y, self.E, self.V
        system = np.column_stack([np.ones(len(E)), X[np.ix_(E, V)]])
        inverse = np.linalg.inv(system)
        growth = np.append(0.0, np.sign(self.coef[V])) @ inverse
        pull = (self.lossy * y) @ np.column_stack([np.ones(len(y)), X[:, V]])
        moves = []
        for k, point in enumerate(E):
            if abs(growth[k]) < _SMALL:
                continue
            change = 1 / growth[k]
            slope = -float(pull @ inverse[:, k]) * change
            if complete:
                slope += max(-y[point] * change, 0.0)
            moves.append(self._move(slope, inverse[:, k] * change, point=point))
        image = inverse @ X[E]
        gain = (self.lossy * y) @ X - pull @ image
        for basis in np.setdiff1d(np.arange(X.shape[1]), V).tolist():
            for sign in (1.0, -1.0):
                length = 1 - sign * float(growth @ X[E, basis])
                if length > _SMALL:
                    step = sign / length
                    direction = -image[:, basis] * step
                    moves.append(self._move(-gain[basis] * step, direction, basis, step))
        return [move for move in moves if move.slope < -1e-10]

    def _move(
        self, slope: float, direction: np.ndarray, basis: int | None = None, step: float = 0.0,
        point: int | None = None,
    ) -> Move:  # fmt: skip
        coef = np.zeros(self.X.shape[1])
        coef[self.V] = direction[1:]
        if basis is not None:
            coef[basis] = step
        return Move(float(slope), float(direction[0]), coef, point, basis)

    def go(self, move: Move) -> None:
        """Make a move, up to the next event."""
        rate = self.y * (self.X @ move.coef + move.bias)
        residual = 1 - self.y * (self.X @ self.coef + self.bias)
        if move.point is not None:
            self.E.remove(move.point)
            self.lossy[move.point] = rate[move.point] < 0
            residual[move.point] = 0.0
        elif move.basis is not None:
            self.V.append(move.basis)
        until = np.full(len(rate), np.inf)
        np.divide(residual, rate, out=until, where=np.abs(rate) > _SMALL)
        until[self.E] = np.inf
        until[until <= _SMALL] = np.inf
        zero = np.full(len(self.coef), np.inf)
        np.divide(-self.coef, move.coef, out=zero, where=self.coef * move.coef < 0)
        step = float(min(until.min(), zero.min()))
        self.coef += step * move.coef
        self.bias += step * move.bias
        if zero.min() < until.min():
            gone = int(zero.argmin())
            self.V.remove(gone)
            self.coef[gone] = 0.0
        else:
            hit = int(until.argmin())
            self.E.append(hit)
            self.lossy[hit] = False


def procedure_events(
    path: SolutionPath, X: np.ndarray, y: np.ndarray, *, complete: bool, most: int = 600
) -> int:
    """The number of events of the paper's procedure, from the first vertex of a path on."""
    coefs = path.coefs.toarray()
    for k in range(1, path.n_joints):
        vertex = Vertex(X, y, coefs[k], path.intercepts[k])
        if len(vertex.E) == len(vertex.V) + 1:
            break
    count = k + 1
    while count < most and (moves := vertex.moves(complete=complete)):
        vertex.go(min(moves))
        count += 1
    return count


def _dictionary(Z: np.ndarray, factor: float) -> np.ndarray:
    rows, columns = np.triu_indices(Z.shape[1], 1)
    return np.hstack([factor * Z, factor * Z[:, rows] * Z[:, columns], Z**2])


def readings(noise: int, seed: int) -> dict[str, int]:
    """The joints of other readings of the experiment, and the events of the procedure."""
    X, y = make_skin(100, n_noise=noise, dictionary=True, random_state=seed)
    Z, _ = make_skin(100, n_noise=noise, random_state=seed)
    more = {n: make_skin(n, n_noise=noise, dictionary=True, random_state=seed) for n in (140, 200)}
    flipped = np.random.default_rng(seed).permutation(len(y)) < 20
    wide = Z * np.where(np.arange(Z.shape[1]) < 2, 1.0, 3.0)
    path = sparse_svm_path(X, y)
    return {
        "as the paper says": path.n_joints,
        "events of the paper's procedure": procedure_events(path, X, y, complete=True),
        "the same with its formula (12) as printed": procedure_events(path, X, y, complete=False),
        "standardised bases": sparse_svm_path(X / X.std(axis=0), y).n_joints,
        "bases without the factor √2": sparse_svm_path(_dictionary(Z, 1.0), y).n_joints,
        "no bias": sparse_svm_path(X, y, fit_intercept=False).n_joints,
        "noise inputs three times as wide": sparse_svm_path(
            _dictionary(wide, np.sqrt(2)), y
        ).n_joints,
        "20 labels flipped": sparse_svm_path(X, np.where(flipped, -y, y)).n_joints,
        "140 training points": sparse_svm_path(*more[140]).n_joints,
        "200 training points": sparse_svm_path(*more[200]).n_joints,
    }
