#!/bin/sh
# The Debian packages: built, and on a bare Debian 12 installed, used and purged. Skips where tools/bare_machine.sh does.
# Environment: PH_SOURCE_DIR.
set -eu
cd "$PH_SOURCE_DIR"
work=$(mktemp -d)
trap 'rm -rf --one-file-system "$work"' EXIT
./run deb >"$work/log" 2>&1 || { tail -n 30 "$work/log" >&2; exit 1; }
sh tools/bare_machine.sh --root "$work/bare" --deb build/deb
