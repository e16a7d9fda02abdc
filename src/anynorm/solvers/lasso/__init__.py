"""The Lasso in a 1-norm ball: single fits and the exact path."""
