"""The main job without the shell: a table in; a model, its honest error and a report out."""

from anynorm.job.fit import Fitted, run_fit
from anynorm.job.joints import follow
from anynorm.job.options import FitOptions, OptionError
from anynorm.job.results import summary
from anynorm.job.writing import write_results

__all__ = ["FitOptions", "Fitted", "OptionError", "follow", "run_fit", "summary", "write_results"]
