#!/bin/sh
# Installs the browser that tests/browser looks at pages with, where there is none: Debian's chromium without a window,
# or else the whole of it. Where neither can be had, those tests say that they are skipped, and why; under CI they fail.
set -eu
for name in chromium-headless-shell chromium chromium-browser google-chrome; do
    ! command -v "$name" >/dev/null || exit 0
done

install() {
    DEBIAN_FRONTEND=noninteractive apt-get install -qq --yes --no-install-recommends "$1" fonts-dejavu-core >/dev/null
}

if [ "$(id -u)" -eq 0 ] && command -v apt-get >/dev/null; then
    echo "installing chromium (once)" >&2
    apt-get update -qq >&2 || true # an old package list may do
    install chromium-headless-shell 2>/dev/null || install chromium ||
        echo "chromium could not be installed: the tests of pages in a browser will not run" >&2
else
    echo "no chromium: the tests of pages in a browser will not run (Debian: sudo apt-get install chromium)" >&2
fi
