#!/bin/sh
# Installs the browser that tests/browser looks at pages with, where there is none: Debian's chromium. Where it can't be
# had, those tests say that they are skipped, and why; under CI they fail.
set -eu
for name in chromium chromium-browser google-chrome; do
    ! command -v "$name" >/dev/null || exit 0
done

if [ "$(id -u)" -eq 0 ] && command -v apt-get >/dev/null; then
    echo "installing chromium (once)" >&2
    apt-get update -qq >&2 || true # an old package list may do
    DEBIAN_FRONTEND=noninteractive apt-get install -qq --yes --no-install-recommends chromium fonts-dejavu-core >/dev/null ||
        echo "chromium could not be installed: the tests of pages in a browser will not run" >&2
else
    echo "no chromium: the tests of pages in a browser will not run (Debian: sudo apt-get install chromium)" >&2
fi
