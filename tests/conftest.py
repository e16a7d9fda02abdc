"""Ctrl-C works in the tests even where the shell that started them ignores it (background jobs)."""

import contextlib
import signal

with contextlib.suppress(ValueError):  # only the main thread may
    signal.signal(signal.SIGINT, signal.default_int_handler)
