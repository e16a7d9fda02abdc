"""Ours against peers at equal certified accuracy: one command, ratios out."""
