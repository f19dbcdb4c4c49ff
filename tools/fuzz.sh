#!/bin/sh
# The fuzz targets behind ./run fuzz: runs each for a while from what was found before and from the corpora of
# tests/fuzz/corpus, and counts executions over all runs of this build in build/fuzz/executions. Called at the root of
# the tree, after the build.
#
# usage: fuzz.sh [TARGET...] [--seconds N] [--runs N] [--keep]
#   --seconds N  a target (default: 60, or no limit where --runs is given)
#   --runs N     executions a target
#   --keep       add to tests/fuzz/corpus those inputs that reach code which nothing there reaches
# Ends with 1 when a target has found anything; the inputs lie in build/fuzz/findings and are run again, to look at
# them, by build/fuzz/fuzz_TARGET FILE.
set -eu

built=build/fuzz
# Freed memory is kept poisoned, but not so much of it that the cache is lost; who allocated what is told when a finding
# is run again.
export ASAN_OPTIONS="quarantine_size_mb=1:thread_local_quarantine_size_kb=64:malloc_context_size=0:\
max_malloc_fill_size=16${ASAN_OPTIONS:+:$ASAN_OPTIONS}"
max_bytes=1024 # of an input: many times the buffers of this build

fail() {
    echo "fuzz: $1" >&2
    exit 2
}

targets='' seconds='' runs='' keep=''
while [ $# -gt 0 ]; do
    case $1 in
    --seconds | --runs)
        case ${2:-} in '' | *[!0-9]*) fail "$1 needs a number" ;; esac
        [ "$1" = --runs ] || seconds=$2
        [ "$1" = --seconds ] || runs=$2
        shift
        ;;
    --keep) keep=yes ;;
    -*) fail "unknown option: $1" ;;
    *)
        [ -x "$built/fuzz_$1" ] || fail "there is no target $1; there are: $(cd $built && echo fuzz_*)"
        targets="$targets $1"
        ;;
    esac
    shift
done
[ -n "$seconds$runs" ] || seconds=60
if [ -z "$targets" ]; then
    for program in "$built"/fuzz_*; do
        targets="$targets ${program#"$built/fuzz_"}"
    done
fi

# statistic LOG NAME: a number that libFuzzer prints at its end, 0 when it has not come so far.
statistic() {
    sed -n "s/^stat::$2: *//p" "$1" | grep . || echo 0
}

# fuzz TARGET: false when it has found something.
fuzz() {
    log=$built/$1.log
    mkdir -p "$built/corpus/$1" "$built/findings" "tests/fuzz/corpus/$1"
    status=0
    "$built/fuzz_$1" -max_len=$max_bytes -timeout=10 -rss_limit_mb=2048 -print_final_stats=1 \
        -max_total_time="${seconds:-0}" -runs="${runs:--1}" -artifact_prefix="$built/findings/$1-" \
        "$built/corpus/$1" "tests/fuzz/corpus/$1" >"$log" 2>&1 || status=$?
    statistic "$log" number_of_executed_units >>"$built/executions/$1"
    printf '%-14s %11s %8s/s %12s in all  %s\n' "$1" "$(tail -n 1 "$built/executions/$1")" \
        "$(statistic "$log" average_exec_per_sec)" "$(awk '{ n += $1 } END { print n }' "$built/executions/$1")" \
        "$([ "$status" -eq 0 ] || sed -n 's/.*Test unit written to //p' "$log" | tail -n 1)"
    return "$status"
}

# By edges alone, without how often they are taken: a handful of small files instead of hundreds.
keep_inputs() {
    "$built/fuzz_$1" -merge=1 -use_counters=0 -max_len=$max_bytes "tests/fuzz/corpus/$1" "$built/corpus/$1" \
        >"$built/$1.merge.log" 2>&1
    echo "  $(find "tests/fuzz/corpus/$1" -type f | wc -l) files," \
        "$(find "tests/fuzz/corpus/$1" -type f -exec cat {} + | wc -c) bytes in tests/fuzz/corpus/$1"
}

mkdir -p "$built/executions"
found=''
printf '%-14s %11s %10s %12s\n' target executions speed total
for target in $targets; do
    fuzz "$target" || found="$found $target"
    [ -z "$keep" ] || keep_inputs "$target"
done
[ -z "$found" ] || { echo "fuzz: findings of:$found; see $built/findings and $built/<target>.log" >&2 && exit 1; }
echo 'fuzz: no findings'
