"""The command ``anynorm``: the main job, predictions, paths and a self-test from the shell."""

from __future__ import annotations

import sys


def main() -> None:
    """Run the command; says what to install where the packages for it are missing."""
    try:
        from anynorm.app.cli.app import app
    except ModuleNotFoundError as error:
        if error.name is None or error.name.split(".")[0] == "anynorm":
            raise
        print(
            f"anynorm: the command needs the package {error.name!r}. Install what it needs with\n"
            "  pip install 'anynorm[cli]'",
            file=sys.stderr,
        )
        raise SystemExit(2) from None
    app()
