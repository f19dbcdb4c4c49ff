#!/bin/sh
# C as .clang-format says, and neither tabs nor trailing blanks in any text of the tree.
#
# usage: check_format.sh [ROOT]
# Prints file and line of what is wrong; ends with 1 when anything is, else with 77 (skipped) when there is no
# clang-format 14, whose output is what the tree is formatted by.
set -eu
cd "${1:-.}"

# Runs a command on the files of the tree that match the find expression; works without git.
over_files() {
    expression=$1
    shift
    # shellcheck disable=SC2086 # an expression of several words; -f: its patterns are for find
    (set -f && find . \( -path ./build -o -path ./runs -o -path ./.git -o -path ./tests/fixtures \) -prune -o \
        -type f \( $expression \) -exec "$@" {} +)
}

status=0
over_files '-name *.c -o -name *.h -o -name *.def -o -name *.md -o -name *.txt -o -name *.cmake -o -name *.in
    -o -name *.json -o -name *.yaml -o -name *.py -o -name *.sh -o -name *.map -o -name run -o -name .clang-format' \
    awk '
    /\t/ { print FILENAME ":" FNR ": a tab"; bad = 1 }
    /[ \r]$/ { print FILENAME ":" FNR ": blanks at the end of the line"; bad = 1 }
    END { exit bad }' || status=1

if clang-format --version 2>/dev/null | grep -q 'version 14\.'; then
    over_files '-name *.c -o -name *.h' clang-format --dry-run -Werror || status=1
elif [ "$status" -eq 0 ]; then
    echo 'format: skipped for C: no clang-format 14' >&2
    status=77
fi
[ "$status" -ne 0 ] || echo 'format: fine'
exit "$status"
