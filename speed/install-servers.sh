#!/bin/sh
# Installs what the speed bench measures against where it is missing: nginx, which answers, and wrk, which shows how fast
# nginx could answer. Without wrk the bench only lacks that row.
set -eu
PATH=$PATH:/usr/sbin:/sbin # where nginx lies, and which only root has in its path

missing=
for server in nginx wrk; do
    command -v "$server" >/dev/null || missing="$missing $server"
done
[ -n "$missing" ] || exit 0

if [ "$(id -u)" -eq 0 ] && command -v apt-get >/dev/null; then
    echo "installing$missing (once)" >&2
    apt-get update -qq >&2 || true # an old package list may do
    # shellcheck disable=SC2086 # a list of names
    DEBIAN_FRONTEND=noninteractive apt-get install -qq --yes --no-install-recommends $missing >/dev/null
elif command -v nginx >/dev/null; then
    echo "wrk is not installed: the bench goes on without its row" >&2
else
    echo "the speed bench needs nginx: install$missing (Debian: sudo apt-get install$missing), then make bench" >&2
    exit 2
fi
