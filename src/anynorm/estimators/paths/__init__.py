"""Paths of solutions as objects: piecewise linear models and their accuracy along the way."""
