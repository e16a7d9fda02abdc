# Every target makes the virtual environment it needs (.venv) and can be run again at any time.
#
#   make demo          anynorm fit on data that come with scikit-learn; leaves demo/report.html to open
#   make test          the test suite
#   make test-oldest   the test suite with the oldest versions of everything that pyproject.toml allows
#   make test-adversarial  certificates of random problems against other solvers (five minutes; ARGS="--seed 1")
#   make test-browser  the reports in a real browser (Chromium, which it installs where it is missing)
#   make test-dask     Dask collections on a cluster of processes, and data larger than memory (two minutes)
#   make test-gpu      the tests of devices, with PyTorch and CuPy on CUDA (whichever is installed in .venv)
#   make lint          ruff and mypy
#   make docs          the documentation, into docs/_build/html
#   make picture       the pictures in docs/_static of the report of make demo
#   make dist          wheel and sdist into dist/, checked, and the wheel tried in an empty environment
#   make bench-linear  LinearSVC against its peers at equal certified accuracy (ten minutes)
#   make bench-walk    the walk to the 1-norm against liblinear and against one fit (three minutes)
#   make bench-sparse  the 1-norm SVM, paths and single fits, against LP solvers and liblinear (fifteen minutes)
#   make bench-kernel  SVC, BudgetSVC, LeastNormSVC and LeastSquaresSVC against libsvm, oneDAL and scipy (twenty minutes)
#   make bench-search  SVCCV against a grid search with scikit-learn's SVC (fifteen minutes)
#   make bench-small   BudgetSVC(strict=True) against other ways to B support vectors (an hour)
#   make bench-bridge  min_norm_point and ConstrainedLasso against their peers (five minutes)
#   make bench-cores   all cores against one and against oneDAL, and BLAS left alone (ten minutes)
#   make bench-threads every row of the above with BLAS left alone and with one thread, ours only (half an hour)
#   make bench-dask    rows on two Dask workers against one process and dask-ml (five minutes)
#   make bench-gpu     kernel machines on a GPU against scikit-learn, memory and TorchKM (ARGS="--quick --device cpu" without one)
#   make bench-start   first fits in fresh processes, nothing compiled and all of it, beside skglm (twenty minutes)
#   make bench-size    time and memory of every estimator by the number of rows (twenty minutes)
#   make bench-job     anynorm fit against a nested grid of LinearSVC(penalty="l1") on eleven tables (half an hour)
#   make papers-walk   the walk paper's table and figures; does what is not recorded yet (hours from nothing)
#   make papers-path   the 1-norm SVM paper's tables and figures, likewise (half an hour from nothing)
#   make papers-kernel the Least 1-norm and the budget paper's tables and figures, likewise (an hour from nothing)
#   make papers-bridge the equivalence of the Lasso and the SVM in four pictures, likewise (two minutes from nothing)
#   make clean         remove everything that the targets above made
#
# make PYTHON=/path/to/python3.12 demo    uses that interpreter for a new environment

BENCHMARKS := bench-linear bench-walk bench-sparse bench-kernel bench-search bench-small bench-bridge bench-cores bench-start bench-size bench-job
PAPERS := papers-walk papers-path papers-kernel papers-bridge

.DEFAULT_GOAL := help
.NOTPARALLEL:
.PHONY: help demo test test-oldest test-adversarial test-browser test-dask test-gpu lint docs picture dist bench-threads bench-dask bench-gpu clean $(BENCHMARKS) $(PAPERS)

BIN := .venv/bin
ROOT := $(CURDIR)

# Numba's cache does not see changes in functions of other files: one folder per state of src/.
SOURCES := $(shell find src -name '*.py' -exec cksum {} + | LC_ALL=C sort | cksum | cut -d' ' -f1)
export NUMBA_CACHE_DIR ?= $(ROOT)/.cache/numba-$(SOURCES)
export MPLCONFIGDIR ?= $(ROOT)/.cache/matplotlib
export MPLBACKEND ?= Agg
export PYTHON

# The papers' data sets, where they lie beside the checkout.
ifneq ($(wildcard ../shared/data),)
export ANYNORM_DATA ?= $(abspath ../shared/data)
endif

help:
	@sed -n 's/^#   \(make .*\)/\1/p' Makefile

demo:
	@sh tools/environment.sh cli
	@$(BIN)/anynorm example demo/breast_cancer.csv >/dev/null
	@echo "The first run compiles for some seconds."
	$(BIN)/anynorm fit demo/breast_cancer.csv --target diagnosis --id sample --positive malignant --rule one_se -o demo
	@echo "Open demo/report.html in a browser."

test:
	@sh tools/environment.sh test
	@find .cache -maxdepth 1 -name 'numba-*' ! -name 'numba-$(SOURCES)' -mtime +2 -exec rm -rf {} + 2>/dev/null || true
	OMP_NUM_THREADS=1 $(BIN)/python -m pytest -n 2 $(ARGS)

test-oldest: export NUMBA_CACHE_DIR := $(ROOT)/.cache/numba-oldest-$(SOURCES)
test-oldest:
	@sh tools/environment.sh test oldest
	OMP_NUM_THREADS=1 .venv-oldest/bin/python -m pytest -n 2 $(ARGS)

test-adversarial:
	@sh tools/environment.sh test
	OMP_NUM_THREADS=1 $(BIN)/python -m tests.adversarial $(ARGS)

test-browser:
	@sh tools/environment.sh test,browser
	@sh tools/browser.sh
	OMP_NUM_THREADS=1 $(BIN)/python -m pytest -n 0 tests/app/browser $(ARGS)

test-dask:
	@sh tools/environment.sh test,dask,stores
	OMP_NUM_THREADS=1 $(BIN)/python -m pytest -n 0 tests/dask $(ARGS)

test-gpu: export ANYNORM_DEVICES := torch:cuda cupy
test-gpu:
	@sh tools/environment.sh test
	$(BIN)/python -m pytest -n 0 tests/devices $(ARGS)

lint:
	@sh tools/environment.sh lint
	$(BIN)/python -m ruff check .
	$(BIN)/python -m ruff format --check .
	$(BIN)/python -m mypy

docs:
	@sh tools/environment.sh docs
	$(BIN)/python -m sphinx -W --keep-going -b html docs docs/_build/html

picture: demo
	@sh tools/environment.sh test,browser
	@sh tools/browser.sh
	$(BIN)/python docs/picture.py

dist:
	@sh tools/environment.sh lint
	@mkdir -p .cache/dist
	sh tools/dist.sh

$(BENCHMARKS): bench-%:
	@sh tools/environment.sh bench
	$(BIN)/python -m benchmarks.$* $(ARGS)
	@$(BIN)/python -m benchmarks.report

bench-threads:
	@sh tools/environment.sh bench
	$(BIN)/python -m benchmarks.threads $(ARGS)
	@$(BIN)/python -m benchmarks.report

bench-dask:
	@sh tools/environment.sh bench,dask
	$(BIN)/python -m benchmarks.dask $(ARGS)
	@$(BIN)/python -m benchmarks.report

bench-gpu:
	@sh tools/environment.sh bench,gpu
	$(BIN)/python -m benchmarks.gpu $(ARGS)

$(PAPERS): papers-%:
	@sh tools/environment.sh test
	OMP_NUM_THREADS=1 $(BIN)/python -m benchmarks.papers.$* $(ARGS)

clean:
	rm -rf .venv .venv-oldest .cache .pytest_cache .mypy_cache .ruff_cache .hypothesis build dist docs/_build docs/api docs/auto_examples demo
	find src tests benchmarks docs -name __pycache__ -type d -prune -exec rm -rf {} +
