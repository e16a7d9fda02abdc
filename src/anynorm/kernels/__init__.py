"""Mercer kernels as block evaluators, rows of kernel matrices, and sums of kernel values."""
