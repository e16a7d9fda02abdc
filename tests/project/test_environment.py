"""What a person sees when the machine lacks something that the set-up needs."""

import os
import pathlib
import re
import shutil
import subprocess
import sys

import pytest

ROOT = pathlib.Path(__file__).parents[2]
NEEDED = ("sh", "dirname", "cksum", "sed", "cut", "tr", "rm", "mkdir", "cat", "cp", "env")

pytestmark = pytest.mark.skipif(
    os.name != "posix" or any(shutil.which(tool) is None for tool in NEEDED),
    reason="the set-up script is for POSIX systems",
)

OLD = """#!/bin/sh
case "$*" in *print*) echo 3.9 ;; *) exit 1 ;; esac
"""
WITHOUT_VENV = f"""#!/bin/sh
case "$*" in *ensurepip*) exit 1 ;; *) exec {sys.executable} "$@" ;; esac
"""
FAILING_PIP = """#!/bin/sh
case "$*" in
    *print*) echo 3.11 ;;
    *pip\\ install*) echo "no route to the index" >&2; exit 1 ;;
esac
"""


@pytest.fixture
def checkout(tmp_path):
    """The script and the metadata, and an empty folder for the programs on the path."""
    (tmp_path / "tools").mkdir()
    for tool in ("environment.sh", "lower_bounds.py"):
        shutil.copy(ROOT / "tools" / tool, tmp_path / "tools")
    shutil.copy(ROOT / "pyproject.toml", tmp_path)
    (tmp_path / "bin").mkdir()
    for tool in NEEDED:
        (tmp_path / "bin" / tool).symlink_to(shutil.which(tool))
    return tmp_path


def executable(path, content):
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(content)
    path.chmod(0o755)
    return str(path)


def set_up(checkout, *more, **variables):
    return subprocess.run(
        ["sh", "tools/environment.sh", "plot", *more],
        cwd=checkout,
        env={"PATH": str(checkout / "bin"), **variables},
        capture_output=True,
        text=True,
    )


def test_no_python_at_all(checkout):
    done = set_up(checkout)
    assert done.returncode == 1
    assert "no Python was found" in done.stderr
    assert "apt install python3 python3-venv" in done.stderr


def test_only_an_old_python(checkout):
    executable(checkout / "bin" / "python3", OLD)
    done = set_up(checkout)
    assert done.returncode == 1
    assert "no Python of 3.11 or newer was found (python3 is 3.9)" in done.stderr
    assert "make PYTHON=" in done.stderr


def test_named_python_that_does_not_run(checkout):
    done = set_up(checkout, PYTHON="/nonexistent")
    assert done.returncode == 1
    assert "PYTHON=/nonexistent is not a Python that runs" in done.stderr


def test_named_python_that_is_too_old(checkout):
    done = set_up(checkout, PYTHON=executable(checkout / "old", OLD))
    assert done.returncode == 1
    assert "is Python 3.9, too old" in done.stderr


def test_python_without_venv(checkout):
    executable(checkout / "bin" / "python3", WITHOUT_VENV)
    done = set_up(checkout)
    assert done.returncode == 1
    assert "has no venv or no ensurepip" in done.stderr
    assert "-venv" in done.stderr
    assert not (checkout / ".venv").exists()


def test_a_newer_python_is_found_behind_an_old_one(checkout):
    executable(checkout / "bin" / "python3", OLD)
    executable(checkout / "bin" / "python3.12", WITHOUT_VENV)
    assert "(python3.12) has no venv" in set_up(checkout).stderr


def test_failed_installation_says_what_to_do_and_leaves_no_stamp(checkout):
    executable(checkout / ".venv" / "bin" / "python", FAILING_PIP)
    done = set_up(checkout)
    assert done.returncode == 1
    assert "no route to the index" in done.stderr
    assert "HTTPS_PROXY" in done.stderr
    assert sorted(path.name for path in (checkout / ".venv").iterdir()) == ["bin"]


def test_a_finished_installation_is_not_repeated_and_an_interrupted_one_is_made_anew(checkout):
    executable(checkout / ".venv" / "bin" / "python", FAILING_PIP.replace("exit 1", "exit 0"))
    assert "Installing anynorm[plot]" in set_up(checkout).stdout
    assert set_up(checkout).stdout == ""
    with (checkout / "pyproject.toml").open("a") as metadata:
        metadata.write("\n# changed\n")
    assert "Installing anynorm[plot]" in set_up(checkout).stdout
    (checkout / ".venv" / ".installing").touch()
    assert "no Python was found" in set_up(checkout).stderr


def test_the_oldest_versions_are_those_of_the_metadata(checkout):
    """`make test-oldest`: an environment of its own, with every lower bound as a constraint."""
    executable(checkout / "bin" / "python3", FAILING_PIP)
    assert "no python3.11 was found, the oldest" in set_up(checkout, "oldest").stderr
    pip = """#!/bin/sh
    case "$*" in
        *pip\\ install*) cp "$PIP_CONSTRAINT" constraints ;;
        *lower_bounds*) exec %s "$@" ;;
        *print*) echo 3.11 ;;
    esac
    """
    executable(checkout / ".venv-oldest" / "bin" / "python", pip % sys.executable)
    assert "into .venv-oldest" in set_up(checkout, "oldest").stdout
    metadata = (checkout / "pyproject.toml").read_text()
    lines = (checkout / "constraints").read_text().splitlines()
    assert {"numpy", "scipy", "scikit-learn", "numba", "pytest"} < {x.split("==")[0] for x in lines}
    assert all(f'"{line.replace("==", ">=")}' in metadata for line in lines)


def test_modules_that_the_tools_run_exist():
    """A moved one was taken for a machine without a browser."""
    files = [ROOT / "Makefile", *(ROOT / "tools").glob("*.sh")]
    named = {
        name for file in files for name in re.findall(r"-m ([a-z]\w*\.[\w.]+)", file.read_text())
    }
    assert "tests.app.browser.launch" in named
    for name in named - {"benchmarks."}:
        path = ROOT.joinpath(*name.rstrip(".").split("."))
        assert path.with_suffix(".py").exists() or path.is_dir(), name
