"""The papers' tables and figures, made again with anynorm."""
