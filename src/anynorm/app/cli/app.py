"""The commands and how they fail: bad input, not converged, no better than guessing."""

from __future__ import annotations

from typing import Annotated

import typer

from anynorm.app.cli.card import card
from anynorm.app.cli.compare import compare
from anynorm.app.cli.doctor import doctor
from anynorm.app.cli.example import example
from anynorm.app.cli.fit import fit
from anynorm.app.cli.path import path
from anynorm.app.cli.predict import predict
from anynorm.app.cli.warm_up import warm_up

app = typer.Typer(
    name="anynorm",
    help="Support vector machines with a certificate: fit, judge, explore.",
    epilog="Exit codes: 0 fine, 2 bad input, 3 not converged, 4 a model no better than the most "
    "frequent class.",
    no_args_is_help=True,
    add_completion=False,
    pretty_exceptions_enable=False,
    context_settings={"help_option_names": ["-h", "--help"]},
)
app.command()(fit)
app.command()(compare)
app.command()(predict)
app.command()(card)
app.command()(path)
app.command()(example)
app.command()(doctor)
app.command()(warm_up)


def _version(asked: bool) -> None:
    if asked:
        from anynorm import __version__

        typer.echo(f"anynorm {__version__}")
        raise typer.Exit


@app.callback()
def _main(
    version: Annotated[
        bool, typer.Option("--version", callback=_version, is_eager=True, help="Show the version.")
    ] = False,
) -> None:
    pass
