"""The examples run, and show what they say."""

import pathlib
import runpy

import pytest

FOLDER = pathlib.Path(__file__).parents[1] / "examples"


def load(name):
    return runpy.run_path(str(FOLDER / name))


def test_the_hybrid_svm_lies_beside_the_1_norm_and_the_walk(capsys):
    example = load("hybrid_svm.py")
    found = example["compare"](n_repeats=1)
    error, features = found["2-norm"]
    assert features == 200
    for name in ("1-norm", "hybrid, g = 1", "hybrid, g = 2", "walk, 3 rounds"):
        assert found[name][0] < error
        assert found[name][1] < 100
    assert found["hybrid, g = 2"][1] <= found["1-norm"][1]
    example["show"](found)
    assert len(capsys.readouterr().out.splitlines()) == 1 + len(found)


def test_the_dictionaries_need_fewer_functions_than_a_kernel_svm(capsys):
    example = load("kernel_dictionary.py")
    found = example["compare"]()
    support = found["SVC (scikit-learn)"][1]
    for name in ("KernelDictionary + SparseSVC", "PolynomialDictionary + SparseSVC"):
        assert found[name][0] < 0.12
        assert found[name][1] < 0.5 * support
    example["show"](found)
    assert len(capsys.readouterr().out.splitlines()) == 1 + len(found)


def test_calibrated_probabilities_are_near_the_true_ones(capsys):
    example = load("calibrated_probabilities.py")
    found = example["compare"]()
    least, least_loss, _ = found["the true probabilities"]
    for name in ("SVC", "LeastNormSVC"):
        raw = found[f"{name}, logistic of the score"]
        brier, loss, distance = found[f"{name}, sigmoid"]
        assert least < brier < min(raw[0], 1.2 * least)
        assert least_loss < loss < min(raw[1], 1.2 * least_loss)
        assert distance < 0.11 < raw[2]
    example["show"](found)
    assert len(capsys.readouterr().out.splitlines()) == 1 + len(found)


def test_lasso_and_svm_solvers_solve_each_others_problems(capsys):
    example = load("lasso_and_svm.py")
    values = example["lasso_by_svm"]()
    assert max(values.values()) == pytest.approx(min(values.values()), rel=1e-6)
    table = example["digits"](sizes=(5, 10))
    for length, lost, *errors in table.values():
        assert length > 10
        assert 1 < lost < 4
        assert max(errors) < 1e-8
    example["show"](values, table)
    assert len(capsys.readouterr().out.splitlines()) == 3 + len(values) + len(table)


@pytest.mark.parametrize("script", sorted(FOLDER.glob("*.py")), ids=lambda path: path.name)
def test_every_example_is_tested_here(script):
    assert f'"{script.name}"' in pathlib.Path(__file__).read_text()
