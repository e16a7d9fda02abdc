"""``anynorm doctor``: versions, threads, cache, and a self-test with certificates."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import typer

from anynorm.app.cli import arguments, output

if TYPE_CHECKING:
    from anynorm.app.selftest import Check


def doctor(quiet: arguments.Quiet = False, as_json: arguments.Json = False) -> None:
    """Say what is installed, and fit small problems whose answers are known.

    Each fit has its certificate checked and is compared with scikit-learn, HiGHS or a formula. The
    exit code is 3 where one is not as it should be. The first run compiles for half a minute.
    """
    with output.exit_codes(quiet=quiet):
        from anynorm.app import selftest

        parts = {
            "Versions": selftest.versions(),
            "Threads": selftest.threads(),
            "Cache": selftest.cache(),
        }
        loud = not quiet and not as_json
        if loud:
            width = max(len(name) for facts in parts.values() for name in facts)
            for title, facts in parts.items():
                output.out().print(f"[bold]{title}[/]")
                for name, value in facts.items():
                    output.out().print(f"  {output.escape(name):<{width}}  {output.escape(value)}")
            output.out().print("[bold]Self-test[/] (gap, difference from the reference, time)")
        checks = []
        for check in selftest.run_checks():
            checks.append(check)
            if loud:
                output.out().print(_line(check))
        failed = [check for check in checks if not check.ok]
        if as_json:
            values: dict[str, Any] = {name.lower(): facts for name, facts in parts.items()}
            output.print_json(values | {"checks": [vars(check) for check in checks]})
        elif loud and not failed:
            output.out().print(f"All {len(checks)} are certified and agree.")
        for check in failed:
            output.err().print(f"[bold red]{check.name}:[/] {output.escape(check.problem)}")
        if failed:
            raise typer.Exit(output.NOT_CONVERGED)


def _line(check: Check) -> str:
    mark = "[green]ok    [/]" if check.ok else "[bold red]FAILED[/]"
    return (
        f"  {mark} {check.name:<18} gap {check.gap:8.1e}   {check.difference:8.1e} from "
        f"{output.escape(check.against):<24} {check.seconds:6.2f} s"
    )
