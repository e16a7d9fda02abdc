"""docs/architecture.md says what the code is: its files, its methods, the ways of its calls."""

import importlib
import pathlib
import re
import runpy
import sys
import types

import numpy as np
import pytest

import anynorm
from anynorm.design.machine_code import machine_code
from anynorm.norms import TopK
from anynorm.solvers.kernel import solve as kernel
from anynorm.solvers.linear import solve as linear
from anynorm.solvers.one_norm import solve as one_norm

ROOT = pathlib.Path(__file__).parents[2]
SOURCE = pathlib.Path(anynorm.__file__).parent
PAGE = (ROOT / "docs" / "architecture.md").read_text()
FLOW = runpy.run_path(str(ROOT / "docs" / "flow.py"))
_TREE = re.search(r"```text\n(src/anynorm/\n.*?)```", PAGE, re.DOTALL)
_PATH = re.compile(r"[\w./]*\w(?:/|\.pyi?|\.md|\.svg)")


def tree():
    """The paths of the list of folders: the first of each line, and files among its words."""
    folders = {}
    for line in _TREE[1].splitlines():
        depth = (len(line) - len(line.lstrip())) // 2
        first, *words = line.split()
        parent = folders.get(depth - 1, ROOT)
        yield parent / first
        folders[depth] = parent / first
        where = parent / first if first.endswith("/") else parent
        yield from (where / name for name in re.findall(r"\b\w+\.pyi?\b", " ".join(words)))


def test_every_path_in_the_list_of_folders_exists():
    paths = list(tree())
    assert len(paths) > 80
    assert [path for path in paths if not path.exists()] == []


def test_the_list_of_folders_has_every_entry_of_the_package():
    hidden = {"__main__.py", "py.typed", "__pycache__", "__init__.pyi"}
    assert {path.name for path in SOURCE.iterdir()} - hidden <= {path.name for path in tree()}


@pytest.mark.parametrize("folder", ["norms", "losses", "design", "kernels", "problem"])
def test_the_list_of_folders_has_every_module_below_the_solvers(folder):
    assert {*(SOURCE / folder).glob("[!_]*.py")} <= {*tree()}


def test_every_path_in_the_text_exists():
    named = {text for text in re.findall(r"`([^`\n]+)`", PAGE) if _PATH.fullmatch(text)}
    assert len(named) > 60
    known = [path.as_posix() + "/" * path.is_dir() for path in SOURCE.rglob("*")]
    for name in named:
        assert (ROOT / name).exists() or any(path.endswith("/" + name) for path in known), name


@pytest.mark.parametrize(
    "file", sorted((SOURCE / "solvers").rglob("*.py")), ids=lambda file: file.stem
)
def test_every_module_of_the_solvers_is_named(file):
    if file.stem != "__init__":
        name = file.name if file.stem != "solve" else file.relative_to(SOURCE).as_posix()
        assert f"`{name}`" in PAGE


def methods_of(heading, number):
    """The second column of a table in a section."""
    section = PAGE.split(f"\n## {heading}\n")[1].split("\n## ")[0]
    table = re.findall(r"(?:^\|.*\n)+", section, re.MULTILINE)[number]
    rows = [[cell.strip() for cell in line.split("|")[1:-1]] for line in table.splitlines()]
    assert [row[:2] for row in rows[:1]] == [["problem", "method"]]
    return [row[1] for row in rows[2:]]


@pytest.mark.parametrize(
    ("heading", "number", "methods"),
    [
        ("How the linear problems are solved", 0, linear.METHODS),
        ("How the linear problems are solved", 1, linear.NEWTON_METHODS),
        ("How the 1-norm problems are solved", 0, one_norm.METHODS),
        ("How the kernel problems are solved", 0, kernel.METHODS),
    ],
)
def test_tables_of_methods_are_those_of_the_code_in_their_order(heading, number, methods):
    assert methods_of(heading, number) == [method.name for method in methods]


def test_the_ways_of_the_calls_are_drawn():
    assert FLOW["FILE"].read_text() == FLOW["drawing"](), "run python docs/flow.py"


def _replace(old, new, monkeypatch):
    """Something else under the names that something has in our modules."""
    for module in [m for n, m in sys.modules.items() if n.startswith("anynorm.")]:
        for key, value in list(vars(module).items()):
            if value is old:
                monkeypatch.setattr(module, key, new)


class Follower:
    """Notes when the functions of a way are called, and which of them are then at work."""

    def __init__(self, way, monkeypatch):
        self.codes, self.first, self.last, self.below, self.time = {}, {}, {}, {}, 0
        for hop in way:
            module = importlib.import_module(
                "anynorm." + hop.file.removesuffix(".py").replace("/", ".")
            )
            for name in hop.functions:
                found = module
                for part in name.split("."):
                    found = getattr(found, part)
                if isinstance(found, types.FunctionType):
                    self.codes[found.__code__] = name
                else:
                    self._watch_loop(name, found, monkeypatch)

        def watched(function, *given):
            return self._entered(self.codes.get(function.__code__), machine_code(function, *given))

        _replace(machine_code, watched, monkeypatch)

    def _watch_loop(self, name, loop, monkeypatch):
        """Compiled code is no function to a profiler: stand in for it wherever it is called."""
        _replace(loop, self._entered(name, loop), monkeypatch)

    def _entered(self, name, loop):
        def entered(*given):
            self.note(name, sys._getframe(1))
            return loop(*given)

        return entered

    def note(self, name, frame):
        self.time += 1
        if name not in self.first:
            self.first[name], self.below[name] = self.time, set()
            while frame is not None:
                self.below[name].add(self.codes.get(frame.f_code))
                frame = frame.f_back
        self.last[name] = self.time

    def __call__(self, frame, event, argument):
        if event == "call" and frame.f_code in self.codes:
            self.note(self.codes[frame.f_code], frame.f_back)


@pytest.mark.parametrize("number", range(4), ids=FLOW["CALLS"])
def test_the_calls_go_the_ways_that_are_drawn(number, monkeypatch):
    rng = np.random.default_rng(0)
    y = np.where(np.arange(40) % 2, 1.0, -1.0)
    X = rng.normal(size=(40, 3)) + 0.7 * y[:, None]
    names = {name: getattr(anynorm, name) for name in ("LinearSVC", "SparseSVC", "SVC")}
    names |= {"min_norm_point": anynorm.min_norm_point, "TopK": TopK, "X": X, "y": y, "A": X.T + 2}
    call = FLOW["CALLS"][number]
    eval(call, names)  # compiled before anybody looks
    there, back = (FLOW["ways"](FLOW[part])[number] for part in ("THERE", "BACK"))
    follower = Follower([*there, *back], monkeypatch)
    sys.setprofile(follower)
    try:
        eval(call, names)
    finally:
        sys.setprofile(None)

    names_there = [name for hop in there for name in hop.functions]
    names_back = [name for hop in back for name in hop.functions]
    inner = names_there[-1]
    firsts = [follower.first[name] for name in names_there]
    lasts = [follower.last[name] for name in [inner, *names_back]]
    assert firsts == sorted(firsts)  # in this order there
    assert lasts == sorted(lasts)  # and in this order back
    family = next(
        hop for hop in there if hop.functions[0].startswith("solve_") and "solvers" in hop.file
    )
    spine = [names_there[0], *names_there[names_there.index(family.functions[0]) : -1]]
    assert set(spine) - {"methods_for"} <= follower.below[inner]
