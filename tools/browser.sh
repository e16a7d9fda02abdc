#!/bin/sh
# Make sure that a Chromium starts for `make test-browser`: the system's own, otherwise from the
# system's packages where that is allowed, otherwise the one that Playwright brings.
set -u
cd "$(dirname "$0")/.." || exit 1

found() {
    command -v chromium >/dev/null 2>&1 || command -v chromium-browser >/dev/null 2>&1
}

if ! found && command -v apt-get >/dev/null 2>&1 && [ "$(id -u)" -eq 0 ]; then
    echo "Installing Chromium with apt-get"
    apt-get update -qq && DEBIAN_FRONTEND=noninteractive \
        apt-get install -qq -y --no-install-recommends chromium >/dev/null
fi
if ! found; then
    echo "Installing Playwright's Chromium"
    .venv/bin/python -m playwright install chromium
fi
.venv/bin/python -m tests.app.browser.launch && exit 0
printf '\nanynorm: no Chromium starts here (the messages are above).\n' >&2
printf '  Remedy: install one, e.g.  sudo apt install chromium  (Debian, Ubuntu) or\n' >&2
printf '  sudo dnf install chromium  (Fedora), then run the same command again.\n\n' >&2
exit 1
