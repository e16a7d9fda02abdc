"""Write docs/api/messages.md: every error message of the source, by where a user meets it.

The page faq.md includes it; docs/conf.py writes it anew for each build.
"""

from __future__ import annotations

import ast
import pathlib
import re
from collections.abc import Iterator

SOURCE = pathlib.Path(__file__).parents[1] / "src" / "anynorm"
FILE = pathlib.Path(__file__).parent / "api" / "messages.md"

# What a user calls, by the folders and files of the source; solvers and problems are inside.
PARTS = {
    "Data, labels and parameters": ("estimators", "design/checks.py"),
    "Norms, losses and kernels": ("norms", "losses", "kernels"),
    "Reductions, screening, data sets, pictures": (
        "reductions.py",
        "screening.py",
        "datasets.py",
        "plotting",
    ),
    "Data files": ("app/tables",),
    "The command": ("app/job", "app/cli", "app/apart"),
    "Model files and ONNX": ("app/model_files", "app/onnx", "app/atomic.py"),
    "Reports": ("app/report",),
}
_FEWEST_WORDS = 3  # in a message that says something by itself


def texts(node: ast.expr) -> Iterator[str]:
    """What an expression of a message can be, with "…" for what is put into it."""
    if isinstance(node, ast.Constant):
        yield str(node.value)
    elif isinstance(node, ast.JoinedStr):
        found = [""]
        for part in node.values:
            found = [before + after for before in found for after in texts(part)]
        yield from found
    elif isinstance(node, ast.BinOp):
        yield from (a + b for a in texts(node.left) for b in texts(node.right))
    elif isinstance(node, ast.IfExp):
        yield from texts(node.body)
        yield from texts(node.orelse)
    else:
        yield "…"


def messages(file: pathlib.Path) -> Iterator[str]:
    """The messages of the errors that a file raises."""
    for node in ast.walk(ast.parse(file.read_text(encoding="utf-8"))):
        if not (isinstance(node, ast.Raise) and isinstance(node.exc, ast.Call) and node.exc.args):
            continue
        for text in texts(node.exc.args[0]):
            said = re.sub("…+", "…", text)
            if len(re.findall(r"[A-Za-z]{2,}", said)) >= _FEWEST_WORDS:
                yield " ".join(said.split())


def page() -> str:
    """The list of all messages, in MyST."""
    lines = []
    for title, places in PARTS.items():
        found: set[str] = set()
        for place in places:
            where = SOURCE / place
            files = [where] if where.is_file() else sorted(where.rglob("*.py"))
            found.update(text for file in files for text in messages(file))
        lines += ["", f"### {title}", ""]
        lines += [f"* {_literal(text)}" for text in sorted(found, key=str.casefold)]
    return "\n".join(lines[1:]) + "\n"


def _literal(text: str) -> str:
    """The text as code, whatever marks it has."""
    fence = "``" if "`" in text else "`"
    return f"{fence}{text}{fence}" if fence == "`" else f"{fence} {text} {fence}"


def write() -> None:
    """Write the list where faq.md includes it."""
    FILE.parent.mkdir(exist_ok=True)
    FILE.write_text(page(), encoding="utf-8")


if __name__ == "__main__":
    write()
