"""Block SMO: the kernel duals with bounds and a budget, a small block of variables at a time.

    minimise over v    1/2 beta'(K + D) beta - gain'v ,    beta_i = sum of sign_k v_k over row_k = i
    where              lower <= v <= upper ,   sum(beta) = 0 ,   sum(v) <= budget

The blocks are those of Joachims (1999), chosen by how much their pairs violate optimality; within
a block pairs are chosen to second order (Fan, Chen, Lin 2005).  Rows of K are needed for a block
only, and so come from products of matrices.  Steps along what the last blocks did together need no
row at all, as K times it is known: they shorten the tail where many variables are free, and Newton
steps for the free variables end it.  Rows that have settled at their bounds, if they are most of
them, are left out for a while.

Rows may be float32.  Whenever the gap seems small enough, K beta is computed anew in float64, and
what was lost to rounding is there to be mended.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from anynorm.design.limits import ROUNDING
from anynorm.kernels.rows import KernelRows, distinct
from anynorm.problem.certificate import Values, relative_gap
from anynorm.solvers.frame.budget import Budget
from anynorm.solvers.frame.patience import Patience
from anynorm.solvers.kernel.block_loops import block_solver
from anynorm.solvers.kernel.candidates import BoxProgram, candidates_of
from anynorm.solvers.kernel.conjugate_steps import ROUGHLY, ConjugateSteps
from anynorm.solvers.kernel.free_steps import Face, FreeSteps, less_the_prices

Array = NDArray[np.float64]
Index = NDArray[np.intp]
Matters = Callable[[Array, Array, float], NDArray[np.bool_]]
ValuesAt = Callable[[Array, Array, float], Values]

_BLOCK = 256  # variables: their square, 512 kB, stays in the nearest caches
_LARGE_BLOCK, _MANY_ROWS = 512, 8000  # rows whose part in a block is worth more than its own steps
_STEPS_PER_VARIABLE = 20  # of a block at the most: the next blocks change its solution again
_INNER = 0.1  # of the violation: how well a block is solved
_LOOK_EVERY = 5  # blocks between two looks at the gap
_LEAP_EVERY, _LEAPS = 10, 5  # blocks between two leaps, and how many directions one combines
_EARLY = 0.7  # of tol: the gap by float32 rows at which the exact one is computed
_PROGRESS, _PATIENCE = 0.9, 200  # looks at the gap without such progress
_SINGULAR = 1e-6  # of the largest singular value: below it is the rounding of float32 rows
_NEWTON_FROM, _NEWTON_AGAIN = 0.1, 5  # gap, blocks in between
_MANY_FREE, _CHANGING = 1000, 0.125  # where so many have come or gone, others will soon
_FACTOR_SPEED = 210  # k^3 per entry of a row added to the scores, in the same time
_STAYED, _ALL = 20, 0.998  # blocks after which such a part that is still free will stay so
_NEWTON_STEPS, _NEWTON_PROGRESS = 4, 0.5  # one after the other, while they lower the gap by that
_PULLING = 1e-3  # of the largest violation: what takes a variable along that is at its bound
_FEW_ROWS = 2000  # whose products with a vector, 0.4 ms, cost less than a block
_SEEN, _NEARLY_ALL = 2, 0.88  # blocks in which so many must be free for most of the others to be
_MOSTLY = 0.8  # of the rows: where so many are free, conjugate gradients go on as they began
_CLOSER, _FINEST = 0.3, 1e-6  # what such a step leaves: of tol / gap, and what float32 can tell
_SHRINK_AFTER, _SHRINK_AGAIN = 100, 15  # blocks with all rows before those not settled go on alone
_MOST_KEPT, _SHRUNK_BLOCKS, _SHRUNK_GOAL = 0.4, 1000, 0.25  # of rows, in number, of violation
_LEAP_UNTIL = 1e-5  # gap: later on leaps disturb more than they gain


class BoxResult(NamedTuple):
    """beta, K beta and which of it was computed in float64, the bias, and the relative gap."""

    beta: Array
    scores: Array
    exact: NDArray[np.bool_]
    intercept: float
    gap: float


def minimise_box(
    rows: KernelRows,
    box: BoxProgram,
    *,
    values: ValuesAt,
    tol: float,
    budget: Budget,
    start: Array | None = None,
    start_scores: Array | None = None,
    steps: FreeSteps | None = None,
    matters: Matters | None = None,
    report: Callable[[Values], None] | None = None,
    rough: bool = False,
) -> BoxResult:
    """Minimise over the box until the relative gap of `values` is at most `tol`.

    Parameters
    ----------
    rows : KernelRows
        The kernel.
    box : BoxProgram
        The bounds and the linear term.
    values : callable
        ``values(beta, scores, intercept) -> Values`` at beta, K beta and the bias that follows
        from the optimality conditions.
    tol : float
        The relative gap to reach, with scores in float64.
    budget : Budget
        Of steps of pairs.
    start : ndarray of shape (n,), optional
        A beta to start from; it is brought into the bounds.
    start_scores : ndarray of shape (n,), optional
        K times it by these rows, where that is known.
    steps : FreeSteps, optional
        Whose factor a problem with the same rows has left; it is used and made anew here.
    matters : callable, optional
        ``matters(beta, scores, intercept)`` says which rows' scores have a part in the values;
        the others need not be computed in float64.
    report : callable, optional
        Called with the values at every look at the gap.
    rough : bool
        Whether to stop where the rows, in float32, say that the gap is reached, or say no more:
        for those who compute the scores of many problems anew, at once.

    Returns
    -------
    BoxResult
        Whose scores are float64 wherever they matter, unless they are `rough`.
    """
    search = _BlockSearch(rows, box, start, matters, budget, start_scores, steps)
    patience, stalled = Patience(_PATIENCE, _PROGRESS), False

    def look() -> float:
        nonlocal stalled
        found = values(search.beta, search.scores, search.intercept())
        gap = relative_gap(found.primal, found.dual)
        stalled = patience.is_over(gap)
        if report is not None:
            report(found)
        return gap

    def steps_from(gap: float) -> float:
        """Newton steps, one after the other while there are any; the gap after them."""
        for again in range(_NEWTON_STEPS):
            if gap <= _EARLY * tol or not search.newton(gap, tol, bool(again)):
                break
            before, gap = gap, look()
            if gap > _NEWTON_PROGRESS * before:
                break
        return gap

    # What is near enough needs no block.
    near = start is not None and look() <= _EARLY * tol
    while True:
        over = not budget.goes_on() or not search.leaves_time()
        moved = not over and not near and search.next_block()
        near = False
        if moved and search.n_blocks >= search.next_shrink:
            search.solve_unsettled()
        anew = moved and start is None and search.n_blocks == _SEEN and search.starts_anew()
        if moved and search.n_blocks % _LOOK_EVERY and not anew:
            continue
        gap = look()
        search.leaping = gap > _LEAP_UNTIL
        if moved:
            gap = steps_from(gap)
        # Without a move at exact scores there is nothing left to do, but for more accurate rows.
        stuck = stalled or (not moved and search.exact)
        if rough and (over or stuck or not moved or gap <= _EARLY * tol):
            search.precise[:] = search.exact
            return BoxResult(search.beta, search.scores, search.precise, search.intercept(), gap)
        if stuck and not over and search.take_float64_rows():
            patience.forget()
            continue
        over = over or stuck
        if over or not moved or gap <= _EARLY * tol:
            search.refresh()
            gap = look()
            # Few, as there is no block between them, and each has to show at exact scores.
            for _ in range(0 if over else _NEWTON_STEPS):
                if gap <= tol or not search.newton(gap, tol):
                    break
                search.refresh()
                before, gap = gap, look()
                if gap > _NEWTON_PROGRESS * before:
                    break
        if over or (gap <= tol and search.exact):
            return BoxResult(search.beta, search.scores, search.precise, search.intercept(), gap)


class _BlockSearch:
    """Where the search is: the variables, beta and K beta."""

    def __init__(
        self,
        rows: KernelRows,
        box: BoxProgram,
        start: Array | None,
        matters: Matters | None,
        budget: Budget,
        start_scores: Array | None = None,
        steps: FreeSteps | None = None,
    ) -> None:
        self.rows, self.box, self.matters, self.budget = rows, box, matters, budget
        self.solve_block = block_solver()
        self.candidates = candidates_of(box)
        self.diagonal = self.candidates.diagonal
        self.pull, self.keys = self.candidates.pull, self.candidates.keys
        self.n_blocks, self.size = 0, _BLOCK if rows.n < _MANY_ROWS else _LARGE_BLOCK
        self.next_shrink = _SHRINK_AFTER
        self.next_newton, self.newton_wait, self.work = 0, _NEWTON_AGAIN, 0.0
        self.steps = FreeSteps(rows, self.diagonal, len(box.sign)) if steps is None else steps
        self.conjugate: ConjugateSteps | None = None
        m = len(box.sign)
        self.chosen = np.zeros(m, dtype=bool)
        self.violation = self.left = np.inf
        self.block: Index = np.empty(0, np.intp)
        self.known, self.place = self.block, np.full(m, -1, np.intp)
        self.square = np.empty((0, 0))
        self.value = np.zeros(m) if start is None else _allowed(box, start)
        self._set_beta()
        self.n_free = len(self._free())
        self.scores, self.exact = np.zeros(rows.n), True
        self.precise = np.ones(rows.n, dtype=bool)
        missing = self.beta
        if start is not None and start_scores is not None:
            self.scores, missing = start_scores.copy(), self.beta - start
        if self.beta.any():
            used = np.flatnonzero(missing)
            rows.add_any(self.scores, used, missing[used])  # which are likely to be needed again
            self.exact = False
        self.leaps, self.leaping = _Leaps(self.beta, self.scores), True

    def _set_beta(self) -> None:
        """Beta from the variables, to the last bit: one at zero leaves no dust."""
        if len(self.value) == self.rows.n:
            self.beta = self.box.sign * self.value
        else:
            self.beta = np.bincount(self.box.row, self.box.sign * self.value, self.rows.n).astype(
                np.float64
            )

    def leaves_time(self) -> bool:
        """Whether there is time for K beta in float64, the last thing that is done, and more."""
        if not np.isfinite(self.budget.deadline):
            return True
        cost = self.rows.gram.cost(self.rows.n, int(np.count_nonzero(self.beta)))
        return self.budget.leaves(cost)

    def refresh(self) -> None:
        """K beta anew, in float64, wherever it matters."""
        if self.exact:
            return
        self.precise = np.ones(self.rows.n, dtype=bool)
        if self.matters is not None:
            self.precise = self.matters(self.beta, self.scores, self.intercept())
        self.scores[self.precise] = self.rows.exact_scores(self.beta, np.flatnonzero(self.precise))
        self.exact = True
        self.next_newton = self.n_blocks
        self.leaps = _Leaps(self.beta, self.scores)

    def newton(self, gap: float, tol: float, again: bool = False) -> bool:
        """Take the free variables to their optimum, if that pays; whether it was done.

        Pulls must be those of the scores, as they are after a look at the gap.

        A factor is made when the blocks since the last one have cost as much.  After such a step
        those that pull away from their bounds come along, as their pulls are true, with the same
        factor.
        """
        if self.n_blocks < self.next_newton and not again:
            return False
        free = self._free()
        if self.conjugate is not None and len(free) > _MOSTLY * self.rows.n:
            steps = self.conjugate
            done = self._conjugate_step(steps, max(_FINEST, _CLOSER * tol / gap))
            self.conjugate = steps if done and steps.reached else None
            return done
        all_free = self.n_blocks >= _STAYED and len(free) > _ALL * self.rows.n
        if not (gap < _NEWTON_FROM or all_free):
            return False
        if again:
            free = np.concatenate([free, self._pulling(free)])
            if not self.steps.knows(free):
                return False
        k, before, self.n_free = len(free), self.n_free, len(free)
        if k <= 2:
            return False
        if not self.steps.knows(free):
            n_bytes = 5 * k * k  # a float32 factor and a fourth of it for changes
            changing = k > _MANY_FREE and abs(k - before) > _CHANGING * k
            paid = all_free or self.work >= k**3 / _FACTOR_SPEED
            if changing or not paid or not self.rows.room_for(n_bytes):
                return False
            self.work = 0.0
            if not self.steps.prepare(self._face(), free):
                self.newton_wait *= 4
                self.next_newton = self.n_blocks + self.newton_wait
                return False
        found = self.steps.step(self._face(), free, self.left <= 0)
        done = found is not None and self._go(*found)
        self.newton_wait = max(_NEWTON_AGAIN, k // self.size) if done else 2 * self.newton_wait
        self.next_newton = self.n_blocks + self.newton_wait
        return done

    def _pulling(self, free: Index) -> Index:
        """The variables at a bound that they want to leave, for the prices of those free."""
        if len(self.box.row) != self.rows.n:
            return free[:0]
        face = less_the_prices(self._face(), free, self.left <= 0)
        least = _PULLING * abs(self.violation)
        pulling = ((face.low < 0) & (face.pull < -least)) | ((face.high > 0) & (face.pull > least))
        pulling[free] = False
        return np.flatnonzero(pulling)

    def _face(self) -> Face:
        """The variables, and how far they can go."""
        box = self.box
        below, above = box.lower - self.value, box.upper - self.value
        up = box.sign > 0
        return Face(
            box.row, box.sign, self.pull, np.where(up, below, -above), np.where(up, above, -below)
        )

    def starts_anew(self) -> bool:
        """Find out at once which variables are free, where all seen so far are; whether so.

        That is from zero: a block alone may have used up a budget that is for all of them.
        """
        n, block, box = self.rows.n, self.block, self.box
        # Where all are free at zero, all rows are needed, however many they are.
        few = n <= _FEW_ROWS or (not self.rows.in_turn and bool((box.lower < 0).all()))
        if not few or n <= 2 * _BLOCK or len(self.value) != n or not ConjugateSteps.fit(self.rows):
            return False
        value = self.value[block]
        inside = (value > box.lower[block]) & (value < box.upper[block]) & (value != 0)
        if np.count_nonzero(inside) < _NEARLY_ALL * len(block):
            return False
        self.value[:], self.scores[:], self.exact = 0.0, 0.0, True
        self._set_beta()
        self.leaps = _Leaps(self.beta, self.scores)
        self._look_round()
        steps = ConjugateSteps(self.rows, self.diagonal)
        if not self._conjugate_step(steps, ROUGHLY):
            return False
        if n > _FEW_ROWS and steps.reached:  # a factor of all is dear: more such steps end it
            self.conjugate = steps
            self.refresh()  # the last time that duals change much: what comes now keeps its digits
        return True

    def _conjugate_step(self, steps: ConjugateSteps, accuracy: float) -> bool:
        """Go where conjugate gradients lead; whether that is any way."""
        before = steps.n_products
        found = steps.step(self._face(), self._free(), self.left <= 0, min(accuracy, ROUGHLY))
        self.budget.book(steps.n_products - before)
        self.work += (steps.n_products - before) * self.rows.n**2
        return found is not None and self._go(*found)

    def _free(self) -> Index:
        """The variables between their bounds, one for each row."""
        box = self.box
        free = np.flatnonzero((self.value > box.lower) & (self.value < box.upper))
        if len(box.row) == self.rows.n:
            return free
        return free[np.sort(np.unique(box.row[free], return_index=True)[1])]

    def _go(self, variables: Index, change: Array) -> bool:
        """Go along a change of beta as far as is best; whether that is any way."""
        box = self.box
        moving = np.flatnonzero(change)
        variables, change = variables[moving], change[moving]
        image = np.zeros(self.rows.n)
        self.rows.add_any(image, box.row[variables], change)
        own = box.row[variables]
        bend = float(change @ image[own])
        if self.diagonal.size:
            bend += float(self.diagonal[own] @ change**2)
        gain = float(self.pull[variables] @ change)
        if not gain > 0:
            return False
        step = min(1.0, gain / bend) if bend > 0 else 1.0
        total = float(box.sign[variables] @ change)
        if self.left > 0 and step * total > self.left:  # with nothing left the total is zero
            step = self.left / total
        self.value[variables] = np.clip(
            self.value[variables] + step * box.sign[variables] * change,
            box.lower[variables],
            box.upper[variables],
        )
        self.scores += step * image
        self._set_beta()
        self.exact = False
        self.leaps = _Leaps(self.beta, self.scores)
        return True

    def solve_unsettled(self) -> None:
        """Go on with the rows that are not settled at a bound alone, then catch up on the others.

        Whether the others were rightly left out is seen when all violations are looked at again.
        """
        kept = self._unsettled()
        self.next_shrink = self.n_blocks + _SHRINK_AFTER
        if not len(kept) or len(kept) > _MOST_KEPT * self.rows.n:
            return
        self.next_shrink = self.n_blocks + _SHRINK_AGAIN
        part, goal = self._part(kept), _SHRUNK_GOAL * self.violation
        while part.n_blocks < _SHRUNK_BLOCKS and part.violation > goal:
            if not self.budget.goes_on() or not part.next_block():
                break
        way = np.zeros(self.rows.n)
        way[kept] = part.beta - self.beta[kept]
        self.value[kept], self.scores[kept] = part.value, part.scores
        self.beta[kept] = part.beta
        others = np.delete(np.arange(self.rows.n), kept)
        self.scores[others] += self.rows.exact_scores(way, others)
        self.exact = False
        self.leaps = _Leaps(self.beta, self.scores)

    def _unsettled(self) -> Index:
        """The rows whose variables are free, or at a bound that they may leave soon."""
        box = self.box
        if np.isfinite(box.budget) or not self.rows.can_shrink():
            return self.block[:0]
        low, high = self._look_round()
        wide = abs(self.violation)
        low, high = min(low, high) - wide, max(low, high) + wide
        rises, falls = np.isfinite(self.keys)
        settled = (~falls & (self.pull < low)) | (~rises & (self.pull > high))
        return np.flatnonzero(~settled)

    def _part(self, kept: Index) -> _BlockSearch:
        """The same search over some rows alone; the pull of the others is in their scores."""
        box, n = self.box, len(kept)
        diagonal = None if box.diagonal is None else box.diagonal[kept]
        part_box = BoxProgram(
            box.sign[kept], np.arange(n), box.lower[kept], box.upper[kept], box.gain[kept], diagonal
        )
        part = _BlockSearch(self.rows.shrunk(kept), part_box, None, None, self.budget)
        part.value, part.beta = self.value[kept], self.beta[kept]
        part.scores = self.scores[kept]
        part.leaps, part.leaping = _Leaps(part.beta, part.scores), self.leaping
        self.known, self.block, self.conjugate = self.known[:0], self.block[:0], None
        self.place[:] = -1
        return part

    def take_float64_rows(self) -> bool:
        """Go on with float64 rows; False where they are already."""
        if self.rows.are_exact:
            return False
        self.rows = self.rows.in_float64()
        self.steps = FreeSteps(self.rows, self.diagonal, len(self.box.sign))
        self.conjugate = None
        self.place[:] = -1  # what is known of the block comes from float32 rows
        self.exact = False
        self.refresh()
        return True

    def next_block(self) -> bool:
        """Choose a block and solve it; whether anything changed."""
        if self.leaping and self.n_blocks % _LEAP_EVERY == 0:
            self._leap()
        box, block = self.box, self._choose()
        self.n_blocks += 1
        if not len(block):
            return False
        index = box.row[block]
        slots = self.rows.load(index)
        try:
            value, sign, q = self.value[block], box.sign[block], len(block)
            steps = self.solve_block(
                q,
                self._square(slots, block),
                self.pull[block],
                value,
                sign,
                box.lower[block],
                box.upper[block],
                *np.empty((4, q)),
                self.left,
                _INNER * self.violation,
                min(self.budget.left, _STEPS_PER_VARIABLE * q),
            )
            change = sign * (value - self.value[block])
            moved = change != 0
            self.rows.add(self.scores, slots[moved], change[moved])
            self.work += len(block) * self.rows.n / self.rows.speed
        finally:
            self.rows.release(slots)
        self.value[block] = value
        if len(self.value) == self.rows.n:
            self.beta[block] = sign * value
        else:
            self._set_beta()
        self.budget.book(max(int(steps), 1))
        self.exact = self.exact and not moved.any()
        # Those that are free are likely to move again.
        free = (value > box.lower[block]) & (value < box.upper[block])
        self.block = np.concatenate([block[free], block[~free]])
        return bool(moved.any())

    def _look_round(self) -> tuple[float, float]:
        """Pulls and the largest violation; the ends of the interval of the bias."""
        self.left = _budget_left(self.box, self.value)
        ends = self.candidates.look(self.scores, self.beta, self.value)
        up, up_negative, down, down_negative = ends
        if self.left <= 0:
            # No pair may raise both of its variables, and each sign has an interval of its own:
            # the budget's multiplier moves one up as far as the other down.
            self.violation = max(up_negative + max(down, down_negative), up + down)
            return 0.5 * (up + up_negative), -0.5 * (down + down_negative)
        high, low = max(up, up_negative), -max(down, down_negative)
        self.violation = high - low
        return high, low

    def intercept(self) -> float:
        """The middle of the interval of the bias, or its finite end."""
        low, high = self._look_round()
        if np.isfinite(low) and np.isfinite(high):
            return 0.5 * (low + high)
        return low if np.isfinite(low) else high if np.isfinite(high) else 0.0

    def _choose(self) -> Index:
        """The variables of the pairs that violate most, and some of the last block."""
        box = self.box
        self._look_round()
        if not self.violation > 0:
            return self.block[:0]
        size = min(self.size, self.rows.block_rows)
        # Where the budget is used up, pairs of one sign are needed: both signs get their share.
        signs = (1.0, -1.0) if np.isfinite(box.budget) else (0.0,)
        n_each = max(1, size // (4 * len(signs)))
        new = distinct(np.concatenate([self.candidates.largest(n_each, among) for among in signs]))
        self.chosen[new] = True
        kept = self.block[~self.chosen[self.block]]
        self.chosen[new] = False
        return np.concatenate([new, kept])[:size]

    def _square(self, slots: Index, block: Index) -> Array:
        """K + D for the block, whose variables may share rows."""
        index = self.box.row[block]
        square = self.rows.square(slots, index, self.square, self.place[block])
        self.place[self.known] = -1
        self.place[block] = np.arange(len(block))
        self.square, self.known = square, block
        if not self.diagonal.size:
            return square
        return square + self.diagonal[index] * (index[:, None] == index[None, :])

    def _leap(self) -> None:
        """Step along the best combination of what the last blocks did together."""
        box = self.box
        if len(box.sign) != self.rows.n:
            return
        if not self.leaps.learn(self.beta, self.scores, self.diagonal):
            return
        self.candidates.find_pulls(self.scores, self.beta)
        way, image = self.leaps.best(self.pull)
        change = box.sign * way
        room = np.where(change > 0, box.upper, box.lower) - self.value
        steps = np.divide(room, change, out=np.ones(len(room)), where=change != 0)
        step = min(1.0, float(steps.min(initial=1.0)))
        total = float(change.sum())
        if total > 0:
            step = min(step, _budget_left(box, self.value) / total)
        bend = float(way @ image) + (float(self.diagonal @ way**2) if self.diagonal.size else 0.0)
        if step > 0 and float(way @ self.pull) > 0.5 * step * bend > 0:
            self.value = np.clip(self.value + step * change, box.lower, box.upper)
            self.beta = box.sign * self.value
            self.scores = self.scores + step * image
            self.exact = False
            self.leaps.start(self.beta, self.scores)


class _Leaps:
    """What several blocks did together: directions d with K d, which needs no row of K."""

    def __init__(self, beta: Array, scores: Array) -> None:
        self.count = 0
        self.start(beta, scores)

    def start(self, beta: Array, scores: Array) -> None:
        """Count from here."""
        self.beta, self.scores = beta.copy(), scores.copy()

    def learn(self, beta: Array, scores: Array, diagonal: Array) -> bool:
        """Keep the way made since the start, in the place of the oldest; whether there is any."""
        way = beta - self.beta
        length = float(np.linalg.norm(way))  # of unit length, so that the small system is balanced
        if not length > 0:
            return False
        if not self.count:
            self.ways, self.images = np.zeros((2, _LEAPS, len(beta)))
            self.bends = np.zeros((_LEAPS, _LEAPS))
        place = self.count % _LEAPS
        self.count += 1
        np.divide(way, length, out=self.ways[place])
        np.divide(scores - self.scores, length, out=self.images[place])
        known = slice(min(self.count, _LEAPS))
        image = self.images[place]
        if diagonal.size:
            image = image + diagonal * self.ways[place]
        self.bends[known, place] = self.bends[place, known] = self.ways[known] @ image
        self.start(beta, scores)
        return True

    def best(self, pull: Array) -> tuple[Array, Array]:
        """The combination that minimises along these ways, and K times it."""
        known = slice(min(self.count, _LEAPS))
        ways, bends = self.ways[known], self.bends[known, known]
        weights = np.linalg.lstsq(bends, ways @ pull, rcond=_SINGULAR)[0]
        return weights @ ways, weights @ self.images[known]


def _budget_left(box: BoxProgram, value: Array) -> float:
    """What is left of the budget, 0 where it is rounding."""
    if not np.isfinite(box.budget):
        return np.inf
    left = box.budget - float(value.sum())
    return left if left > 1e-14 * box.budget else 0.0  # less is rounding


def _allowed(box: BoxProgram, beta: Array) -> Array:
    """The variables of a beta brought into its bounds: clipped, balanced, within the budget.

    What rounding has left of a balance is taken off the variable that is farthest from its bounds,
    so that others stay there: one that leaves its bound by a last digit moves the bias.
    """
    value = np.clip(box.sign * beta[box.row], box.lower, box.upper)
    up = box.sign * value > 0
    above, below = float(np.abs(value[up]).sum()), float(np.abs(value[~up]).sum())
    if 0 < abs(above - below) <= ROUNDING * above:
        side = np.flatnonzero(up if above > below else ~up)
        room = np.minimum(value - box.lower, box.upper - value)[side]
        freest = side[room.argmax()]
        value[freest] -= np.sign(value[freest]) * abs(above - below)
    elif above > below:
        value[up] *= below / above
    elif below > above:
        value[~up] *= above / below
    total = float(np.abs(value).sum())
    return value if total <= box.budget else value * (box.budget / total)
