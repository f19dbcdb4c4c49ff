#!/bin/bash
# Runs the commands of documents: each block that is indented by four blanks, in order, all blocks of a page in one shell. Fenced
# blocks are configs, programs and output. A block below a line "<!-- not run: WHY -->" is left out.
# Prints each block and what it ended with; ends with 1 when one has failed.
#
# usage: tools/run_docs.sh [--quick] PAGE...
# --quick  './run test' only installs its packages
set -uE
cd "$(dirname -- "$0")/.." || exit 2
quick=''
[ "${1:-}" != --quick ] || { quick=yes && shift; }
[ $# -gt 0 ] || { echo 'usage: tools/run_docs.sh [--quick] PAGE...' >&2 && exit 2; }

export PATH=$PWD/build/release:$PATH
# mpirun as PARALLEL.md says it is for root, and for few processors
export OMPI_ALLOW_RUN_AS_ROOT=1 OMPI_ALLOW_RUN_AS_ROOT_CONFIRM=1 OMPI_MCA_rmaps_base_oversubscribe=1
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT

# blocks PAGE: writes its blocks to files of their own, named by the line where each begins.
blocks() {
    awk -v folder="$work" '
    /^```/ {fenced = !fenced}
    /^<!-- not run: / {left_out = 1; print FILENAME ":" FNR ": " $0; next}
    /^    [^ ]/ && !fenced {
        if (file == "") {file = sprintf("%s/%05d", folder, FNR)}
        if (!left_out) print substr($0, 5) >file
        next
    }
    /^    / && !fenced && file != "" {if (!left_out) print substr($0, 5) >file; next}
    file != "" {close(file); file = ""; left_out = 0}
    ' "$1"
}

# run_block FILE: in this shell, so that variables and background jobs are there for the next one. Leaves block_status.
run_block() {
    [ -z "$quick" ] || sed -i 's|^\./run test\b.*|apt-get -q install --no-install-recommends $(./run packages test)|' "$1"
    block_status=0
    trap 'block_status=1' ERR
    # shellcheck disable=SC1090 # a block of the page
    . "$1"
    trap - ERR
}

worst=0
for page; do
    rm -f "$work"/*
    blocks "$page"
    (
        failed=0
        for file in "$work"/*; do
            [ -e "$file" ] || continue
            line=$((10#$(basename "$file")))
            sed "s|^|run_docs: $page:$line: |" "$file"
            TIMEFORMAT="run_docs: $page:$line: took %R s"
            time run_block "$file" </dev/null
            [ "$block_status" -eq 0 ] || { echo "run_docs: $page:$line: failed" && failed=1; }
        done
        exit "$failed"
    )
    status=$? # behind "||" the shell would not notice what fails within
    [ "$status" -eq 0 ] || worst=1
done
[ "$worst" -ne 0 ] || echo "run_docs: all blocks of $* work"
exit "$worst"
