"""What holds for all tests.

Ctrl-C works even where the shell that started them ignores it (background jobs).  Hypothesis draws
the same examples every time, so that a run says something about the code and not about luck;
``HYPOTHESIS_PROFILE=explore`` draws new ones.  How long an example takes is no failure: the machine
may be busy with other things.
"""

import contextlib
import os
import signal

from hypothesis import HealthCheck, settings

with contextlib.suppress(ValueError):  # only the main thread may
    signal.signal(signal.SIGINT, signal.default_int_handler)

patient = settings(deadline=None, suppress_health_check=[HealthCheck.too_slow])
settings.register_profile("fixed", patient, derandomize=True)
settings.register_profile("explore", patient, derandomize=False)
settings.load_profile(os.environ.get("HYPOTHESIS_PROFILE", "fixed"))
