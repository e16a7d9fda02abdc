"""LinearSVC on Dask collections: the solution of one machine, with its certificate."""

import dask
import dask.array as da
import dask.dataframe as dd
import numpy as np
import pandas as pd
import pytest
import scipy.sparse as sp
from sklearn.base import clone

from anynorm import SVC, BudgetSVC, LinearSVC, ReweightedSVC, ReweightedSVCCV, SparseSVC
from anynorm.losses import Loss
from anynorm.norms import TopK
from tests.dask.data import LOSSES, in_blocks, rows, same_optimum, sparse_rows

TOL = 1e-5


def fitted(X, y, of, weights=None, whole_weights=None, **options):
    """The same estimator on a collection and on what it is made of."""
    options = {"C": 0.3, "tol": TOL} | options
    apart = LinearSVC(**options).fit(*of, sample_weight=weights)
    whole = LinearSVC(**options).fit(X, y, sample_weight=whole_weights)
    same_optimum(apart, whole, TOL)
    return apart, whole


@pytest.mark.parametrize("bias", [{}, {"fit_intercept": False}, {"intercept_scaling": 2.0}])
@pytest.mark.parametrize("loss", LOSSES)
def test_every_loss_has_the_solution_of_one_machine(client, loss, bias):
    X, y = rows()
    chunks = da.from_array(X, chunks=(500, 4)), da.from_array(y, chunks=700)
    apart, whole = fitted(X, y, chunks, loss=loss, **bias)
    assert np.abs(apart.coef_ - whole.coef_).max() < 0.02
    assert (apart.predict(X) == whole.predict(X)).mean() > 0.99


@pytest.mark.parametrize("loss", ["hinge", "squared_hinge"])
def test_three_classes_with_weights_are_those_of_one_machine(client, loss):
    X, y = rows(n_classes=3)
    weights = np.random.default_rng(0).integers(0, 4, len(y)).astype(float)
    options = {"class_weight": "balanced", "loss": loss}
    chunks = da.from_array(X, chunks=(400, -1)), da.from_array(y, chunks=400)
    of_rows = da.from_array(weights, chunks=1200)
    apart, _ = fitted(X, y, chunks, of_rows, weights, **options)
    assert apart.classes_.tolist() == ["low", "mid", "top"]
    assert len(apart.certificate_.per_class) == 3


def test_a_frame_gives_names_and_partitions_of_unknown_length(client):
    X, y = rows()
    frame = pd.DataFrame(X, columns=[f"column {j}" for j in range(X.shape[1])]).assign(label=y)
    parts = dd.from_pandas(frame, npartitions=3)
    features = parts.drop(columns="label")
    apart, _ = fitted(X, y, (features, parts["label"]), loss="logistic")
    assert apart.feature_names_in_.tolist() == list(frame.columns[:-1])
    lazy = apart.predict_proba(features)
    assert isinstance(lazy, da.Array)
    np.testing.assert_allclose(lazy.compute(), apart.predict_proba(frame[frame.columns[:-1]]))


@pytest.mark.parametrize("loss", LOSSES)
def test_sparse_blocks_of_many_columns_need_no_matrix(client, loss):
    X, y = sparse_rows()
    options = {"C": 0.1, "loss": loss, "tol": 1e-3}
    apart = LinearSVC(**options).fit(in_blocks(X, [700, 300, 500]), da.from_array(y, chunks=500))
    whole = LinearSVC(**options | {"tol": 1e-6}).fit(X, y)
    assert apart.certificate_.status == "optimal"
    assert whole.certificate_.dual <= apart.certificate_.primal
    assert apart.certificate_.primal <= 1.001 * whole.certificate_.primal


@pytest.mark.parametrize("kind", ["dense", "sparse"])
def test_uneven_empty_and_one_class_blocks_are_blocks_like_others(client, kind):
    X, y = rows()
    order = np.argsort(y, kind="stable")  # all blocks but one have a single class
    X, y, sizes = X[order], y[order], [1, 0, 899, 0, 17, 283]
    stored = sp.csr_matrix(X) if kind == "sparse" else X
    fitted(X, y, (in_blocks(stored, sizes), da.from_array(y, chunks=1200)), loss="hinge")


@pytest.mark.parametrize(
    "model",
    [
        LinearSVC(C=0.1, tol=TOL),
        SparseSVC(C=0.1, tol=TOL),
        ReweightedSVC(C=0.1, n_rounds=2, tol=TOL, prune=False),
        BudgetSVC(8, C=0.1, strict=True, tol=TOL),
    ],
    ids=lambda model: type(model).__name__,
)
def test_blocks_whose_rows_weigh_nothing_are_blocks_like_others(model):
    """The losses refused weights that were all zero, and every such fit failed."""
    X, y = rows(n=600)
    weights = np.repeat([1.0, 0.0, 2.0], 200)
    apart = clone(model).fit(in_blocks(X, [200] * 3), y, sample_weight=weights)
    whole = clone(model).fit(X, y, sample_weight=weights)
    assert apart.certificate_.status == "optimal"
    assert apart.certificate_.primal == pytest.approx(whole.certificate_.primal, rel=1e-3)


def test_a_class_of_weight_zero_has_no_part_in_a_fit():
    """Its rows counted with the weight of the class that comes after it."""
    X, y = rows(n=600, n_classes=3)
    options = {"C": 0.1, "tol": TOL, "class_weight": {"low": 0.0, "mid": 2.0}}
    apart = LinearSVC(**options).fit(in_blocks(X, [200] * 3), y)
    whole = LinearSVC(**options).fit(X, y)
    assert apart.classes_.tolist() == whole.classes_.tolist() == ["mid", "top"]
    same_optimum(apart, whole, TOL)


def test_float32_stays_float32(client):
    X, y = rows()
    narrow = X.astype(np.float32)
    fitted(narrow, y, (da.from_array(narrow, chunks=(500, -1)), y), loss="squared_hinge")


@pytest.mark.parametrize("method", ["predict", "decision_function", "predict_proba"])
@pytest.mark.parametrize("n_classes", [2, 3])
def test_predictions_are_lazy_and_those_of_the_blocks(method, n_classes):
    X, y = rows(n_classes=n_classes)
    model = LinearSVC(loss="logistic").fit(X, y)
    lazy = getattr(model, method)(da.from_array(X, chunks=(500, 2)))
    now = getattr(model, method)(X)
    assert isinstance(lazy, da.Array)
    assert (lazy.shape, lazy.dtype) == (now.shape, now.dtype)
    np.testing.assert_array_equal(lazy.compute(scheduler="synchronous"), now)


def test_partitions_and_blocks_without_rows_have_no_predictions():
    """A filter leaves such partitions: they were refused as tables of too few rows."""
    X, y = rows(n=300)
    frame = pd.DataFrame(X, columns=[f"c{j}" for j in range(X.shape[1])])
    model = LinearSVC(loss="logistic").fit(frame, y)
    parts = frame[:200], frame[:0], frame[200:]
    lazy = dd.from_delayed([dask.delayed(part) for part in parts], meta=frame[:0])
    for method in ("predict", "decision_function", "predict_proba"):
        found = getattr(model, method)(lazy).compute(scheduler="synchronous")
        ours = [getattr(model, method)(part) for part in (parts[0], parts[2])]
        np.testing.assert_array_equal(found, np.concatenate(ours))
    unknown = da.from_array(X, chunks=(100, -1))
    unknown = unknown[da.from_array(np.arange(300) < 150, chunks=100)]
    found = LinearSVC().fit(X, y).predict(unknown)
    assert found.compute(scheduler="synchronous").shape == (150,)


def test_a_kernel_classifier_predicts_block_by_block():
    X, y = rows(n=200)
    model = SVC().fit(X, y)
    lazy = model.predict(da.from_array(X, chunks=(70, -1)))
    np.testing.assert_array_equal(lazy.compute(scheduler="synchronous"), model.predict(X))


def test_a_warm_start_begins_at_the_last_solution():
    X, y = rows()
    chunks = da.from_array(X, chunks=(500, -1)), da.from_array(y, chunks=500)
    model = LinearSVC(loss="logistic", tol=1e-6, warm_start=True).fit(*chunks)
    first = model.n_iter_
    assert model.fit(*chunks).n_iter_ < first


def refused(X, y, match, error=ValueError, model=None, **given):
    with pytest.raises(error, match=match):
        (model or LinearSVC()).fit(X, y, **given)


EVERY = pytest.mark.parametrize(
    "model",
    [LinearSVC(), ReweightedSVC(), ReweightedSVCCV(), SparseSVC(), BudgetSVC(8, strict=True)],
    ids=lambda model: type(model).__name__,
)


@EVERY
def test_unknown_chunk_sizes_say_what_to_call(model):
    X, y = (da.from_array(part, chunks=500) for part in rows())
    words = r"X has chunks of unknown size. Call X.compute_chunk_sizes\(\)"
    refused(X[X[:, 0] > 2], y, words, model=model)
    refused(X, y[X[:, 0] > 2], r"Call y.compute_chunk_sizes\(\)", model=model)


@EVERY
def test_lengths_that_differ_are_named(model):
    X, y = (da.from_array(part, chunks=500) for part in rows())
    refused(X, y[:-1], "y has 1199 entries but X has 1200 rows", model=model)
    words = "sample_weight has 2 entries but X has 1200 rows"
    refused(X, y, words, model=model, sample_weight=np.ones(2))


@EVERY
def test_one_class_in_all_blocks_is_refused(model):
    X, _ = rows()
    refused(da.from_array(X, chunks=500), np.zeros(1200), "y has only one class", model=model)


def test_partitions_that_differ_are_named():
    frame = dd.from_pandas(pd.DataFrame({"a": range(9), "b": [0, 1, 1] * 3}), npartitions=3)
    other = dd.from_pandas(pd.Series([0, 1, 1] * 3), npartitions=2)
    refused(frame.clear_divisions(), other.clear_divisions(), "Take them from one frame")
    refused(frame, np.zeros(9), "must be Dask collections where X is a data frame", TypeError)
    refused(frame, frame.assign(b=1), "y must have one column; got a data frame with 2")


def test_rows_of_a_frame_that_have_no_label_are_named():
    """Of two frames with known divisions Dask puts the rows together, and NA where one has none."""
    frame = dd.from_pandas(pd.DataFrame({"a": range(9)}, dtype=float), npartitions=3)
    labels = dd.from_pandas(pd.Series(["no", "yes", "yes"] * 2), npartitions=2)
    refused(frame, labels, r"in block 3 of X.* y has NaN or None \(first at row 0\)")


def test_a_frame_of_one_column_has_labels_or_weights():
    X, y = rows()
    table = pd.DataFrame(X).assign(label=y, weight=np.linspace(0.5, 1.5, len(y)))
    frame = dd.from_pandas(table, npartitions=3)
    found = [
        LinearSVC(C=0.3, tol=TOL).fit(frame[list(range(6))], labels, sample_weight=weights)
        for labels, weights in (
            (frame["label"], frame["weight"]),
            (frame[["label"]], frame[["weight"]]),
        )
    ]
    np.testing.assert_allclose(found[0].coef_, found[1].coef_, rtol=1e-5)


def test_errors_of_a_block_name_it(client):
    X, y = rows()
    X[700, 3] = np.nan
    refused(
        da.from_array(X, chunks=(500, -1)), y, r"in block 1 .* NaN in column 3 \(first at row 200"
    )


def test_a_loss_over_all_rows_together_is_refused():
    X, y = rows()
    model = LinearSVC(loss=Loss.from_slack(TopK(5)))
    refused(da.from_array(X, chunks=500), y, "is not a sum over the rows", model=model)


def test_an_estimator_that_needs_all_rows_in_memory_says_so():
    X, y = rows()
    refused(da.from_array(X, chunks=500), y, r"call X.compute\(\)", TypeError, model=SVC())


def test_blocks_are_not_gathered(client, monkeypatch):
    """What comes back in a round is as long as the coefficients, whatever the rows."""
    from anynorm.design import dask_crew

    sizes = []
    plain = dask_crew.DaskCrew._answers

    def measured(self, job, message):
        answers = plain(self, job, message)
        for answer in answers:
            values = vars(answer).values()
            parts = [
                part for value in values for part in (value if isinstance(value, list) else [value])
            ]
            sizes.append(sum(np.size(getattr(part, "matrix", part)) for part in parts))
        return answers

    monkeypatch.setattr(dask_crew.DaskCrew, "_answers", measured)
    X, y = rows(n=20_000, p=10)
    LinearSVC(tol=1e-3).fit(da.from_array(X, chunks=(3000, -1)), da.from_array(y, chunks=3000))
    assert max(sizes) <= 4 * 10**2


def test_dask_is_not_imported_for_other_data():
    import subprocess
    import sys

    code = (
        "import sys, numpy as np; from anynorm import LinearSVC; "
        "LinearSVC().fit(np.eye(4), [0, 1, 0, 1]).predict(np.eye(4)); print('dask' in sys.modules)"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "False"


def test_without_a_cluster_blocks_are_read_one_after_the_other():
    X, y = rows()
    with dask.config.set(scheduler="synchronous"):
        fitted(X, y, (da.from_array(X, chunks=(500, -1)), da.from_array(y, chunks=500)))
