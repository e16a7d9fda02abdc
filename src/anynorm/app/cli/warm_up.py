"""``anynorm warm-up``: everything compiled ahead of time."""

from __future__ import annotations

import time
import warnings

from anynorm.app.cli import arguments, output


def warm_up(quiet: arguments.Quiet = False) -> None:
    """Compile everything now, so that no fit has to wait for it: for images and shared installs.

    The first fit of a kind compiles what it needs, for some seconds. What is compiled is kept in a
    folder, which this command names; NUMBA_CACHE_DIR names another one.
    """
    with output.exit_codes(quiet=quiet):
        from anynorm.app.first_fits import first_fits
        from anynorm.app.job import Doing
        from anynorm.design.code_cache import cache_folder

        folder = cache_folder()
        if folder is None:
            raise ValueError(
                "nothing that is compiled can be kept: no folder can be written to, or "
                "ANYNORM_DISABLE_CACHE is set. Set NUMBA_CACHE_DIR to a folder that can be written."
            )
        began, found = time.monotonic(), list(first_fits())
        with output.progress_bar(hidden=quiet) as show, warnings.catch_warnings():
            warnings.simplefilter("ignore")  # only the code of the fits is of interest
            for index, one in enumerate(found):
                show(Doing(index / len(found), one.name))
                one.run()
        if not quiet:
            output.out().print(
                f"{len(found)} kinds of fits are compiled, in {time.monotonic() - began:.0f} s. "
                f"They are kept in\n  {output.escape(folder)}"
            )
