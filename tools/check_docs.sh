#!/bin/sh
# docs/CONFIG.md is what the program's own key tables say.
#
# usage: check_docs.sh ROOT PHLOEM
# Prints file, line and the difference; ends with 1 when there is any.
set -eu
page=$1/docs/CONFIG.md phloem=$2
made=$(mktemp)
trap 'rm -f "$made"' EXIT

"$phloem" config --docs >"$made"
if difference=$(cmp "$page" "$made" 2>&1); then
    echo 'docs: fine'
    exit 0
fi
# cmp ends with "line N", or says that one of the files has no more.
line=$(printf '%s\n' "$difference" | sed -n 's/.*line \([0-9]*\).*/\1/p')
echo "docs/CONFIG.md:${line:-1}: is not what the key tables say; make it anew: phloem config --docs >docs/CONFIG.md"
diff -u "$page" "$made" | head -n 20
exit 1
