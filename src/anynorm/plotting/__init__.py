"""Pictures of fitted estimators, in scikit-learn's Display style; they need Matplotlib."""

from anynorm.plotting.walk_display import WalkDisplay

__all__ = ["WalkDisplay"]
