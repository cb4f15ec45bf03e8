#!/bin/sh
# Installs Debian's redis-server, beside which the shared cache is tested, where there is none: Valkey comes with the
# packages of the tests. Where it can't be had, its tests say that they are skipped, and why; under CI they fail.
set -eu
! command -v redis-server >/dev/null || exit 0
if [ "$(id -u)" -eq 0 ] && command -v apt-get >/dev/null; then
    echo "installing redis-server (once)" >&2
    apt-get update -qq >&2 || true # an old package list may do
    # Its program alone is wanted: no service is started.
    RUNLEVEL=1 DEBIAN_FRONTEND=noninteractive apt-get install -qq --yes --no-install-recommends redis-server >/dev/null ||
        echo "redis-server could not be installed: its tests will not run" >&2
else
    echo "no redis-server: its tests will not run (Debian: sudo apt-get install redis-server)" >&2
fi
