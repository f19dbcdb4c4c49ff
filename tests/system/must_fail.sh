#!/bin/sh
# Runs a check on a fixture that it must fail on.
#
# usage: must_fail.sh EXPECTED COMMAND...
# The command must end with 1, and its output must contain each line of the file EXPECTED.
set -u
expected=$1
shift

status=0
output=$("$@" 2>&1 </dev/null) || status=$?
printf '%s\n' "$output"
[ "$status" -ne 77 ] || exit 77 # skipped
if [ "$status" -ne 1 ]; then
    echo "must_fail: ended with $status; wanted 1"
    exit 1
fi
while IFS= read -r line; do
    if ! printf '%s\n' "$output" | grep -qF -- "$line"; then
        echo "must_fail: the output lacks: $line"
        exit 1
    fi
done <"$expected"
