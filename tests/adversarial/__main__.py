"""``python -m tests.adversarial``: see the package; exits with 1 where something is wrong."""

from __future__ import annotations

import argparse
import itertools
import sys
import time

import numpy as np

from tests.adversarial.run import Counts, attempt


def main() -> int:
    """Run until the time or the number of fits is over; returns the exit status."""
    parser = argparse.ArgumentParser(prog="python -m tests.adversarial")
    parser.add_argument("--seconds", type=float, default=300.0, help="how long (default 300)")
    parser.add_argument("--fits", type=int, default=None, help="how many at most")
    parser.add_argument("--seed", type=int, default=None, help="default: another one every time")
    parser.add_argument("--only", type=int, default=None, help="one problem, by its number")
    given = parser.parse_args()
    seed = np.random.SeedSequence().entropy % 10**6 if given.seed is None else given.seed
    print(f"seed {seed}", flush=True)
    if given.only is not None:
        return show(seed, given.only)
    counts, end = Counts(), time.monotonic() + given.seconds
    for index in itertools.count() if given.fits is None else range(given.fits):
        outcome = attempt(seed, index)
        counts.add(outcome)
        if outcome.wrong:
            print(f"{outcome.ended.upper()} {outcome.reproducer(seed)}", flush=True)
            print(f"    {'; '.join(outcome.wrong)}", flush=True)
        if time.monotonic() > end:
            break
    print(counts.table())
    for outcome in counts.slowest:
        print(f"{outcome.seconds:6.2f} s  {outcome.ended}  {outcome.reproducer(seed)}")
    return 1 if counts.total("false") + counts.total("failed") else 0


def show(seed: int, index: int) -> int:
    """Run one problem and say all about it."""
    outcome = attempt(seed, index)
    print(outcome.words)
    print(f"{outcome.ended}, {outcome.seconds:.2f} s")
    print("\n".join(outcome.wrong))
    return 1 if outcome.wrong else 0


if __name__ == "__main__":
    sys.exit(main())
