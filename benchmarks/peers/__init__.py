"""One small function per peer: the same problem in, coefficients out.

A peer is never believed: objective and gap are computed by the benchmark from what it returns.
"""
