"""The main job without the shell: a table in; a model, its honest error and a report out."""

from anynorm.app.job.fit import Fitted, run_fit
from anynorm.app.job.joints import follow
from anynorm.app.job.options import FitOptions, OptionError
from anynorm.app.job.results import summary
from anynorm.app.job.schedule import Doing
from anynorm.app.job.writing import write_results

__all__ = [
    "Doing",
    "FitOptions",
    "Fitted",
    "OptionError",
    "follow",
    "run_fit",
    "summary",
    "write_results",
]
