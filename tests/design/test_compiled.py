"""What is compiled for a fit, when a wait for it is told, and where the result is kept."""

import gc
import os
import pathlib
import subprocess
import sys
import time

import numpy as np
import pytest

from anynorm.design import code_cache, compiled, waiting

COUNT = """
import sys
import numpy as np
from numba.core import event
from anynorm.design import machine_code

functions, translated = [], []
compile = machine_code._compiled
machine_code._compiled = lambda *given: translated.append(given[0]) or compile(*given)

class Compiled(event.Listener):
    def on_start(self, event):
        functions.append(event.data["dispatcher"].py_func)

    def on_end(self, event):
        pass

event.register("numba:compile", Compiled())
rng = np.random.default_rng(0)
X = rng.standard_normal((60, 5))
y = np.where(X[:, 0] + rng.standard_normal(60) > 0, 1, -1)
import anynorm
{fit}
own = [function for function in functions if str(function.__module__).startswith("anynorm")]
print(len(set(own)), len(own), len(functions), len(translated))
"""


def compiled_by(fit, folder):
    """What a fit in a fresh process compiles.

    Our functions by Numba, their specialisations, all there; and those that are translated.
    """
    source = pathlib.Path(compiled.__file__).parents[2]
    variables = {**os.environ, "NUMBA_CACHE_DIR": str(folder), "PYTHONPATH": str(source)}
    command = [sys.executable, "-c", COUNT.format(fit=fit)]
    result = subprocess.run(command, env=variables, capture_output=True, text=True, check=True)
    return tuple(map(int, result.stdout.split()))


def test_a_first_sparse_fit_compiles_one_function_without_numba_and_the_next_process_none(tmp_path):
    fit = "anynorm.SparseSVC().fit(X, y)"
    assert compiled_by(fit, tmp_path) == (0, 0, 0, 1)
    assert compiled_by(fit, tmp_path) == (0, 0, 0, 0)


def test_what_numba_has_compiled_for_a_kernel_fit_is_loaded_by_the_next_process(tmp_path):
    fit = "anynorm.SVC().fit(np.repeat(X, 11, axis=0), np.repeat(y, 11))"  # more than 600 rows
    assert compiled_by(fit, tmp_path)[0] >= 1
    assert compiled_by(fit, tmp_path) == (0, 0, 0, 0)


def test_a_dense_linear_fit_compiles_nothing(tmp_path):
    assert compiled_by("anynorm.LinearSVC().fit(X, y)", tmp_path) == (0, 0, 0, 0)


def test_a_kernel_fit_of_few_rows_needs_no_numba(tmp_path):
    assert compiled_by("anynorm.SVC().fit(X, y)", tmp_path)[:3] == (0, 0, 0)


def test_a_sparse_fit_needs_no_numba():
    source = pathlib.Path(compiled.__file__).parents[2]
    fits = "SparseSVC().fit(X, y)", "sparse_svm_path(X, y)", "SparseSVCCV(cv=2).fit(X, y)"
    code = "import sys, numpy as np, anynorm; X = np.eye(8) + 0.1; y = np.arange(8) % 2\n"
    code += "".join(f"anynorm.{fit}\n" for fit in fits) + "assert 'numba' not in sys.modules"
    variables = {**os.environ, "PYTHONPATH": str(source)}
    subprocess.run([sys.executable, "-W", "ignore", "-c", code], env=variables, check=True)


@pytest.fixture
def said(monkeypatch):
    """Lines that a listener has heard, who is told of waits of a hundredth of a second."""
    monkeypatch.setattr(waiting, "_LONG", 0.01)
    monkeypatch.setattr(waiting, "_spent", 0.0)
    return []


class Owner:
    """Somebody who waits."""


def wait_until(condition):
    end = time.monotonic() + 30
    while not condition() and time.monotonic() < end:
        time.sleep(0.001)


def test_a_long_wait_is_told_once(said):
    owner = Owner()
    waiting.tell_of_compiling(owner, said.append)
    with waiting.compiling("kept somewhere"), waiting.compiling("kept inside"):
        wait_until(lambda: said)
    with waiting.compiling("kept again"):
        time.sleep(0.05)
    assert said == ["Compiling what this kind of fit needs, for some seconds; kept somewhere."]


def test_nobody_is_told_who_does_not_wait_any_more(said):
    owner = Owner()
    waiting.tell_of_compiling(owner, said.append)
    del owner
    gc.collect()
    with waiting.compiling("kept somewhere"):
        time.sleep(0.05)
    assert not said


def test_verbose_estimators_say_that_they_compile(said, capsys):
    from anynorm.estimators._messages import progress_printer

    printer = progress_printer("SparseSVC", 1)
    with waiting.compiling("kept somewhere"):
        wait_until(lambda: not waiting._listeners)
        time.sleep(0.05)
    assert printer is not None
    assert capsys.readouterr().out.startswith("SparseSVC: Compiling what this kind of fit needs")


def test_the_cache_is_where_the_user_says_or_named_by_the_versions(monkeypatch, tmp_path):
    import numba

    import anynorm

    find = code_cache.cache_folder.__wrapped__
    monkeypatch.delenv("ANYNORM_DISABLE_CACHE", raising=False)
    monkeypatch.setenv("NUMBA_CACHE_DIR", str(tmp_path))
    assert find() == str(tmp_path)
    monkeypatch.delenv("NUMBA_CACHE_DIR")
    name = f"anynorm-{anynorm.__version__}-numba-{numba.__version__}"
    assert pathlib.Path(find()).name == name
    # A file in the place of a folder: nothing can be written there, by root either.
    blocked = tmp_path / "file"
    blocked.write_text("")
    monkeypatch.setenv("NUMBA_CACHE_DIR", str(blocked))
    assert find() is None
    monkeypatch.setenv("ANYNORM_DISABLE_CACHE", "1")
    assert find() is None


def test_without_a_folder_loops_are_compiled_all_the_same(monkeypatch):
    monkeypatch.setattr(compiled, "cache_folder", lambda: None)

    @compiled.loop
    def twice(values):
        return 2.0 * values[0]

    assert twice(np.array([3.0])) == 6.0
    monkeypatch.setattr(code_cache, "cache_folder", lambda: None)
    assert "every process does so" in code_cache.fate()


def test_garbage_is_collected_again_after_compiling():
    @compiled.loop
    def paused(values):
        return values[0]

    assert gc.isenabled()
    assert paused(np.ones(1)) == 1.0
    assert gc.isenabled()
