"""The folders mean what they say: imports go one way, names mean one thing, ideas have one home."""

import ast
import pathlib
import re
from collections import Counter, defaultdict

import pytest

import anynorm

SOURCE = pathlib.Path(anynorm.__file__).parent

# From the ground up: a module imports from its own line and from those above it in this list.
LAYERS = (
    ("design",),
    ("norms",),
    ("losses",),
    ("kernels",),
    ("problem",),
    ("screening",),
    ("solvers.frame",),
    ("solvers.linear", "solvers.one_norm", "solvers.lasso", "solvers.kernel", "solvers.simplex"),
    ("reductions",),
    ("estimators",),
    ("datasets",),
    ("plotting",),
    ("app",),
)
# A path shows itself, as a picture and in a notebook: it asks those above it when it is told to.
SHOWN = {"estimators.paths.solution_path": {"plotting.PathDisplay", "app.report.path_html"}}
LEVEL = {name: level for level, names in enumerate(LAYERS) for name in names}
FILES = sorted(SOURCE.rglob("*.py"))
# Modules of one name that mean the same thing: the methods of a family in their order, and the
# job, the command and the tables' parts of one verb.
SAME_MEANING = {"__init__", "solve", "fit", "predict", "path"}


def module_of(file):
    parts = file.relative_to(SOURCE).with_suffix("").parts
    return ".".join(part for part in parts if part != "__init__")


def layer_of(module):
    """The entry of LAYERS that a module belongs to, None for the package itself."""
    return max((n for n in LEVEL if (module + ".").startswith(n + ".")), key=len, default=None)


def imports(file):
    """The modules of anynorm that a file imports anywhere, for types alone or not."""
    for node in ast.walk(ast.parse(file.read_text())):
        if isinstance(node, ast.ImportFrom) and node.module and node.module.startswith("anynorm"):
            module = node.module.removeprefix("anynorm").lstrip(".")
            for alias in node.names:
                yield f"{module}.{alias.name}".lstrip(".")
        elif isinstance(node, ast.Import):
            for alias in node.names:
                if alias.name.startswith("anynorm."):
                    yield alias.name.removeprefix("anynorm.")


@pytest.mark.parametrize("file", FILES, ids=module_of)
def test_imports_go_down_and_never_sideways_between_families(file):
    own = layer_of(module_of(file))
    if own is None:  # the package itself: names that are loaded when they are used
        return
    wrong, allowed = [], SHOWN.get(module_of(file), set())
    for module in set(imports(file)) - allowed:
        other = layer_of(module)
        if other is not None and other != own and LEVEL[other] >= LEVEL[own]:
            wrong.append(module)
    assert wrong == []


def test_every_folder_has_its_layer():
    families = {f"solvers.{path.name}" for path in (SOURCE / "solvers").iterdir() if path.is_dir()}
    entries = {path.stem for path in SOURCE.iterdir()} - {"__init__", "__main__", "py", "solvers"}
    assert {name for name in entries | families if "__pycache__" not in name} == set(LEVEL)


def test_the_package_shows_a_dozen_entries_at_most():
    hidden = {"__init__.py", "__init__.pyi", "__main__.py", "py.typed", "__pycache__"}
    assert len({path.name for path in SOURCE.iterdir()} - hidden) <= 12


def test_modules_of_one_name_mean_one_thing():
    count = Counter(file.stem for file in FILES)
    assert {name for name, times in count.items() if times > 1} <= SAME_MEANING


def test_classes_of_one_name_mean_one_thing():
    homes = defaultdict(list)
    for file in FILES:
        for node in ast.parse(file.read_text()).body:
            if isinstance(node, ast.ClassDef):
                homes[node.name].append(module_of(file))
    assert {name: found for name, found in homes.items() if len(found) > 1} == {}


def names_called(file):
    for node in ast.walk(ast.parse(file.read_text())):
        if isinstance(node, ast.Call):
            target = node.func
            yield target.id if isinstance(target, ast.Name) else getattr(target, "attr", "")


def users_of(name):
    return {module_of(file) for file in FILES if name in names_called(file)}


def test_certificates_come_from_one_place():
    # A model file puts back together what it holds; it certifies nothing.
    assert users_of("Certificate") == {"problem.certificate", "app.model_files.kinds"}


def test_solvers_look_at_the_clock_in_one_place():
    clocks = {module for module in users_of("monotonic") if module.startswith("solvers")}
    assert clocks == {"solvers.frame.budget"}


@pytest.mark.parametrize("name", ["print", "warn"])
def test_solvers_neither_print_nor_warn(name):
    assert {module for module in users_of(name) if module.startswith("solvers")} == set()


def test_how_X_is_stored_is_asked_in_the_design_alone():
    asking = users_of("issparse")
    assert {m for m in asking if m.split(".")[0] in ("solvers", "problem", "screening")} == set()


def test_no_solver_asks_for_the_name_of_a_loss_or_the_class_of_a_norm():
    norms = {"L1", "L2", "LInf", "Lp", "SquaredL2", "TopK", "TopK2", "K12", "Mahalanobis"}
    for file in FILES:
        module = module_of(file)
        if not module.startswith(("solvers", "problem", "screening")):
            continue
        for node in ast.walk(ast.parse(file.read_text())):
            if isinstance(node, ast.Call) and getattr(node.func, "id", "") == "isinstance":
                asked = {n.id for n in ast.walk(node.args[1]) if isinstance(n, ast.Name)}
                assert not asked & norms, module
            if isinstance(node, ast.Compare):
                text = ast.unparse(node)
                assert "loss.name" not in text, module


def is_number(node):
    """Whether an expression is made of numbers, and of constants, alone."""
    if isinstance(node, ast.Constant):
        return isinstance(node.value, (int, float)) and not isinstance(node.value, bool)
    if isinstance(node, ast.Name):
        return node.id.isupper()
    if isinstance(node, ast.UnaryOp):
        return is_number(node.operand)
    if isinstance(node, ast.BinOp):
        return is_number(node.left) and is_number(node.right)
    return isinstance(node, ast.Tuple) and bool(node.elts) and all(map(is_number, node.elts))


def constants_without_a_word(source):
    """The module-level numbers with no comment on or above their line and no text below."""
    lines, body = source.splitlines(), ast.parse(source).body
    for node, after in zip(body, [*body[1:], None], strict=True):
        if not isinstance(node, (ast.Assign, ast.AnnAssign)) or not is_number(node.value):
            continue
        comment = re.search(r"# (?!fmt:|noqa|type:)\S", lines[node.end_lineno - 1])
        above = lines[node.lineno - 2].startswith("# ") if node.lineno > 1 else False
        below = isinstance(after, ast.Expr) and isinstance(after.value, ast.Constant)
        if not (comment or above or below):
            yield lines[node.lineno - 1]


@pytest.mark.parametrize("file", FILES, ids=module_of)
def test_every_number_has_its_word(file):
    assert list(constants_without_a_word(file.read_text())) == []


def test_numbers_without_a_word_are_found():
    bare = ["A = 3", "_B, C = 1e-3, -2", "D = 4 * A  # fmt: skip"]
    said = ["E = 5  # rows", "# of a block", "F = 1 << 4", "G = 1.0", '"""Of the scores."""']
    other = ["names = (1, x)", "H = True", "I = (1, 'two')"]
    assert list(constants_without_a_word("\n".join([*bare, *said, *other]))) == bare
