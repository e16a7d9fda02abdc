"""Draw docs/_static/case-text.png: how few words would do, and where the model is wrong.

    python docs/reviews.py

The numbers are read from the tables of docs/case-text.md: the texts are not part of the package.
"""

from __future__ import annotations

import pathlib

import matplotlib.pyplot as plt

HERE = pathlib.Path(__file__).parent


def table(page: str, first: str) -> list[list[str]]:
    """The rows of the table whose heading begins with `first`."""
    lines = page.splitlines()
    start = next(k for k, line in enumerate(lines) if line.startswith(f"| {first}"))
    rows = []
    for line in lines[start + 2 :]:
        if not line.startswith("|"):
            break
        rows.append([cell.strip() for cell in line.strip("|").split("|")])
    return rows


def draw(page: pathlib.Path, file: pathlib.Path) -> None:
    """Write the picture of a page's tables."""
    text = page.read_text(encoding="utf-8")
    models, ratings = table(text, "model"), table(text, "mean rating")
    _, (left, right) = plt.subplots(1, 2, figsize=(9.5, 3.8), layout="constrained")
    marks = zip(models, "os^v<>", strict=True)
    for (name, words, wrong, _), mark in marks:
        count, share = int(words.replace(",", "")), float(wrong.rstrip(" %"))
        left.semilogx(count, share, mark, markersize=8, label=name.replace("`", ""))
    left.set(xlabel="words in use", ylabel="wrong, of 2652 sentences kept aside (%)", ylim=(0, 35))
    left.legend(fontsize=8, loc="lower left")
    names = [name for name, *_ in ratings]
    right.bar(names, [float(wrong.rstrip(" %")) for *_, wrong in ratings], color="#1d5fa3")
    right.axhline(50, color="#8a939c", linestyle="--", linewidth=1)
    right.annotate("guessing", (len(names) - 1, 50), (0, -12), textcoords="offset points",
                   ha="center", color="#57606a")  # fmt: skip
    right.set(xlabel="mean rating by people, without its sign", ylabel="wrong (%)")
    plt.savefig(file, dpi=110)


if __name__ == "__main__":
    draw(HERE / "case-text.md", HERE / "_static" / "case-text.png")
