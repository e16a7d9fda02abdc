"""An attack on the certificates: random problems of all kinds, each claim checked by others.

data       rows, labels and weights, degenerate ones too, at all scales, stored in all ways
exact      objectives written out plainly, in extended precision
known      solutions of other solvers, evaluated by `exact`
judge      what a certificate claims, and what is wrong with it
families   what is fitted: a table of functions that draw a problem, fit it and state its claims
run        the loop, the counts and the reproducers

``python -m tests.adversarial --seconds 300 --seed 1`` draws new problems for five minutes.
"""
