"""Solvers: plain functions on arrays that return a `Solution`, one folder per family."""
