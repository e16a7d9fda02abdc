#!/bin/sh
# Build the sdist and the wheel into dist/, check what an index would check, then install the wheel
# in an environment that has nothing else, away from this folder, and use it.
set -eu
cd "$(dirname "$0")/.."
tools=.cache/dist/tools
empty=.cache/dist/empty

if [ ! -x "$tools/bin/twine" ]; then
    .venv/bin/python -m venv --clear "$tools"
    "$tools/bin/python" -m pip install -qq --disable-pip-version-check build twine
fi
rm -rf dist
"$tools/bin/python" -m build --outdir dist . >.cache/dist/build.log 2>&1 || { cat .cache/dist/build.log; exit 1; }
"$tools/bin/python" -m twine check --strict dist/*

.venv/bin/python -m venv --clear "$empty"
"$empty/bin/python" -m pip install -qq --disable-pip-version-check dist/*.whl
python=$PWD/$empty/bin/python
away=$(mktemp -d)
trap 'rm -rf "$away"' EXIT
cp tools/first_use.py "$away"
cd "$away"
NUMBA_CACHE_DIR="$away/cache" "$python" first_use.py
