"""Pictures of fitted estimators, in scikit-learn's Display style; they need Matplotlib."""

from anynorm.plotting.cv_curve_display import CVCurveDisplay
from anynorm.plotting.path_display import PathDisplay
from anynorm.plotting.reliability_display import ReliabilityDisplay
from anynorm.plotting.walk_display import WalkDisplay

__all__ = ["CVCurveDisplay", "PathDisplay", "ReliabilityDisplay", "WalkDisplay"]
