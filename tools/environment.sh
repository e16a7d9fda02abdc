#!/bin/sh
# Make .venv and install anynorm with the extras named by $1 (e.g. "test" or "plot,docs").
# With "oldest" as $2 make .venv-oldest instead, with the oldest versions that pyproject.toml allows.
#
# Does nothing when that was done before for the same pyproject.toml, interpreter and folder.
# A virtual environment that was half made, lost its interpreter or was interrupted while packages
# were being installed is made anew.  Every failure says what to do about it.
#
#   PYTHON=...   the interpreter to use; otherwise the first of python3, python3.14 ... python3.11
#                that is at least 3.11
set -u
cd "$(dirname "$0")/.." || exit 1
extras=$1
candidates="python3 python3.14 python3.13 python3.12 python3.11 python"
venv=.venv
bounds=
if [ "${2:-}" = oldest ]; then
    candidates=python$(sed -n 's/^requires-python = ">=\(.*\)"$/\1/p' pyproject.toml)
    venv=.venv-oldest
    bounds=$venv/lower-bounds.txt
fi
marker=$venv/.installing

fail() {
    printf '\nanynorm: %s\n' "$1" >&2
    shift
    for line in "$@"; do printf '  %s\n' "$line" >&2; done
    printf '\n' >&2
    exit 1
}

# Prints nothing when $1 does not run at all.
version_of() {
    "$1" -c 'import sys; print("%d.%d" % sys.version_info[:2])' 2>/dev/null
}

is_recent() {
    "$1" -c 'import sys; sys.exit(sys.version_info < (3, 11))' 2>/dev/null
}

install_hint="install Python 3.11 or newer, e.g.  sudo apt install python3 python3-venv  (Debian, Ubuntu),
  sudo dnf install python3.12  (Fedora),  brew install python  (macOS),  or from https://www.python.org/downloads/"

find_python() {
    if [ -n "${PYTHON:-}" ]; then
        found=$(version_of "$PYTHON")
        [ -n "$found" ] || fail "PYTHON=$PYTHON is not a Python that runs." \
            "Give the path of one that does:  make PYTHON=/path/to/python3 ...," \
            "or leave PYTHON out, then python3, python3.14 ... python3.11 are tried."
        is_recent "$PYTHON" || fail "PYTHON=$PYTHON is Python $found, too old: 3.11 or newer is needed." \
            "Give another one:  make PYTHON=/path/to/python3.11 ...,  or $install_hint"
        python=$PYTHON
        return
    fi
    seen=
    for candidate in $candidates; do
        found=$(version_of "$candidate")
        [ -n "$found" ] || continue
        if is_recent "$candidate"; then
            python=$candidate
            return
        fi
        seen="$seen $candidate is $found;"
    done
    if [ -n "$seen" ]; then
        fail "no Python of 3.11 or newer was found ($(echo "$seen" | sed 's/^ //; s/;$//'))." \
            "Remedy: $install_hint" \
            "or name one that is elsewhere:  make PYTHON=/path/to/python3.11 ..."
    fi
    [ -z "$bounds" ] || fail "no $candidates was found, the oldest that is allowed." \
        "Name one that is elsewhere:  make PYTHON=/path/to/$candidates ..."
    fail "no Python was found: neither python3 nor python3.14 ... python3.11 runs here." \
        "Remedy: $install_hint" \
        "or name one that is elsewhere:  make PYTHON=/path/to/python3.11 ..."
}

make_venv() {
    find_python
    "$python" -c 'import venv, ensurepip' 2>/dev/null || fail \
        "Python $found ($python) has no venv or no ensurepip module, so no virtual environment can be made." \
        "Remedy (Debian, Ubuntu):  sudo apt install python$found-venv   (or python3-venv)" \
        "Remedy elsewhere: use a full Python, e.g. from https://www.python.org/downloads/:  make PYTHON=/path/to/python3 ..."
    echo "Making $venv with Python $found"
    rm -rf "$venv"
    mkdir -p "$venv" && : > "$marker" && "$python" -m venv "$venv" || fail \
        "'$python -m venv $venv' failed (its message is above)." \
        "Remedy: check that this folder is writable and has 1 GB free; then run the same command again."
}

# A usable environment has an interpreter that runs, pip, and no interrupted installation.
if [ ! -x "$venv/bin/python" ] || [ -e "$marker" ] \
    || ! is_recent "$venv/bin/python" || ! "$venv/bin/python" -c 'import pip' 2>/dev/null; then
    make_venv
fi

stamp=$venv/.installed-$(echo "$extras" | tr ',' '-')
key="$(cksum < pyproject.toml) $(version_of "$venv/bin/python") $(pwd)"
[ -f "$stamp" ] && [ "$(cat "$stamp")" = "$key" ] && exit 0

echo "Installing anynorm[$extras] into $venv (the first time takes a minute or two)"
: > "$marker"
if [ -n "$bounds" ]; then
    "$venv/bin/python" tools/lower_bounds.py > "$bounds" || exit 1
    export PIP_CONSTRAINT="$bounds"
fi
"$venv/bin/python" -m pip install -qq --disable-pip-version-check --editable ".[$extras]"
status=$?
rm -f "$marker"
[ $status -eq 0 ] || fail "installing the packages failed (pip's message is above)." \
    "Remedy: most often there is no network or a proxy is not set; pip reads HTTPS_PROXY and" \
    "PIP_INDEX_URL (or PIP_FIND_LINKS with a folder of wheels).  Then run the same command again."
echo "$key" > "$stamp"
