"""The examples run, and show what they say."""

import pathlib
import runpy

import matplotlib.pyplot as plt
import numpy as np
import pytest

FOLDER = pathlib.Path(__file__).parents[2] / "examples"


def load(name):
    return runpy.run_path(str(FOLDER / name))


def test_the_hybrid_svm_lies_beside_the_1_norm_and_the_walk(capsys):
    example = load("hybrid_svm.py")
    found = example["compare"](n_repeats=1, Cs=example["CS"][:5:2])
    error, features = found["2-norm"]
    assert features == 200
    for name in ("1-norm", "hybrid, g = 1", "hybrid, g = 2", "walk, 3 rounds"):
        assert found[name][0] < error
        assert found[name][1] < 100
    assert found["hybrid, g = 2"][1] <= found["1-norm"][1]
    example["show"](found)
    assert len(capsys.readouterr().out.splitlines()) == 1 + len(found)
    assert pictures(example["draw"], found) == 1


def test_the_dictionaries_need_fewer_functions_than_a_kernel_svm(capsys):
    example = load("kernel_dictionary.py")
    found = example["compare"]()
    support = found["SVC (scikit-learn)"][1]
    for name in ("KernelDictionary + SparseSVC", "PolynomialDictionary + SparseSVC"):
        assert found[name][0] < 0.12
        assert found[name][1] < 0.5 * support
    example["show"](found)
    assert len(capsys.readouterr().out.splitlines()) == 1 + len(found)
    assert pictures(example["draw"]) == 1


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
    assert pictures(example["draw"]) == 1


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
    assert pictures(example["draw"], table) == 1


def pictures(draw, *arguments):
    """How many pictures a function draws."""
    plt.close("all")
    draw(*arguments)
    count = len(plt.get_fignums())
    plt.close("all")
    return count


def run(name):
    """What a script of cells leaves behind; its pictures are closed."""
    try:
        return runpy.run_path(str(FOLDER / name), run_name="__main__")
    finally:
        plt.close("all")


def test_the_exact_path_finds_what_matters():
    found = run("exact_path.py")
    assert found["path"].gaps.max() < 1e-9
    assert set(range(4)) <= set(found["used"])  # four of the five that matter
    assert len(found["used"]) <= 6  # of 500
    assert found["error"] < 0.25


def test_the_walk_lowers_the_objective_and_is_best_on_the_way():
    found = run("walk_rounds.py")
    objectives = [record.objective for record in found["model"].history_]
    assert objectives == sorted(objectives, reverse=True)
    assert found["last"].l1_certificate.dual <= objectives[-1]
    assert min(found["errors"][1:]) < found["errors"][0]
    assert found["model"].history_[-1].n_nonzero < 60 < found["whole"].history_[-1].n_nonzero


def test_features_that_matter_come_back():
    frequency = run("stable_signature.py")["frequency"]
    assert frequency[11, :6].min() > 0.6 > frequency[11, 6:].max()


def test_norms_bound_the_weight_of_wrong_labels():
    models = run("slack_norms.py")["models"]
    for model in models.values():
        assert model.certificate_.gap <= model.tol
    for name in ("hinge: SVC", "both sides: LeastNormSVC"):
        assert np.abs(models[name].dual_coef_).max() <= 5.0 * (1 + 1e-9)
    assert np.abs(models["squared hinge"].dual_coef_).max() > 5.0


def test_a_few_kernel_values_are_as_good_as_all_support_vectors():
    found = run("budget_and_dictionary.py")
    for name in ("dictionaries", "budgets"):
        small = [error for size, error in found[name] if size <= 25]
        assert min(small) < found["plain_error"] + 0.01
    assert max(size for size, _ in found["budgets"]) <= 60 < found["plain_size"]
    assert 0 <= found["cost"] < 0.1


def test_the_gap_bounds_the_true_distance():
    found = run("what_the_gap_promises.py")
    gaps, distance = np.array(found["gaps"]), np.array(found["distance"])
    assert np.all(gaps <= found["tolerances"])
    assert np.all(distance <= np.maximum(2 * gaps, 1e-6))
    assert np.any(np.diff(gaps) < 0)


def test_bounded_losses_bear_wrong_labels():
    errors = run("losses.py")["errors"]
    for loss in ("hinge", "absolute"):
        assert errors[loss][2] < errors["squared_hinge"][2] < 0.15
    assert max(found[0] for found in errors.values()) < 0.08


def test_the_default_price_takes_too_many_features():
    found = run("features_and_error.py")
    chosen = np.count_nonzero(found["rules"]["best"].coef_)
    assert chosen < 10 < 40 < found["features"][-1]
    assert found["error"][-1] > 1.3 * min(found["error"])


def test_the_kernel_search_chooses_inside_its_table():
    found = run("kernel_search.py")
    model = found["model"]
    assert found["Cs"][0] < model.C_ < found["Cs"][-1]
    assert found["gammas"][0] < model.gamma_ < found["gammas"][-1]
    assert np.nanmin(found["error"]) == pytest.approx(1 - model.best_score_)
    assert model.score(found["test"], found["truth"]) > 0.9


def test_leaving_one_out_is_what_folds_of_one_row_say():
    from sklearn.model_selection import LeaveOneOut, cross_val_score

    from anynorm import LeastSquaresSVC

    found = run("leave_one_out.py")
    X, y, C = found["X"], found["y"], found["Cs"][6]
    folds = cross_val_score(LeastSquaresSVC(C=C, gamma=1.0), X, y, cv=LeaveOneOut())
    assert found["found"][1.0][6][0] == pytest.approx(1 - folds.mean())


@pytest.mark.parametrize("script", sorted(FOLDER.glob("*.py")), ids=lambda path: path.name)
def test_every_example_is_tested_here(script):
    assert f'"{script.name}"' in pathlib.Path(__file__).read_text()
