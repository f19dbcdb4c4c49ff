#!/bin/sh
# The benchmarks behind ./run bench: runs the programs of bench/<room>/, gathers what they measured into
# build/bench/<room>.json, and reports on all rooms that are there in build/bench/report.md.
# Called at the root of the tree, after the build.
#
# usage: bench.sh [ROOM [PROGRAM]] [--base FILE]... [ARGUMENTS OF THE PROGRAMS...]; without a room or a program, all of them
# --base names figures of an earlier run, a build/bench/<room>.json: what has become worse is printed, and ends with 1.
# Where there is python3, programs start what they compare themselves with from bench/peers/. Benchmarks of the Python package
# are scripts, run by $PHLOEM_BENCH_PYTHON or python3; one that lacks what it needs says why.
set -eu

built=build/release/bench
export GOMP_SPINCOUNT="${GOMP_SPINCOUNT:-10000}" # of bench_gemm, whose team is OpenMP's; a peer keeps its own default
results=build/bench
rooms=$(for source in bench/*/bench_*.c bench/*/bench_*.py; do
    [ ! -f "$source" ] || basename "$(dirname "$source")"
done | sort -u | xargs)

fail() {
    echo "bench: $1" >&2
    exit 2
}

# keep_base FILE: a copy, since FILE may be what this run writes anew.
keep_base() {
    [ -f "$1" ] || fail "--base: $1 is not there"
    command -v python3 >/dev/null || fail '--base: comparing figures needs python3'
    mkdir -p "$results/base"
    num_bases=$((num_bases + 1))
    cp "$1" "$results/base/$num_bases.json"
}

# Peers get tcmalloc where it is installed, else glibc's allocator tuned (bench/peer.c). PyTorch trained a DLRM 1.19 times
# as fast with tcmalloc as with large blocks of glibc's kept; jemalloc was no faster than that.
find_peer_allocator() {
    tcmalloc=$(/sbin/ldconfig -p 2>/dev/null | sed -n 's|.* => \(.*/libtcmalloc_minimal\.so\.4\)$|\1|p' | head -n 1)
    [ -z "$tcmalloc" ] || export PHLOEM_BENCH_PEER_ALLOCATOR="${PHLOEM_BENCH_PEER_ALLOCATOR:-$tcmalloc}"
}

# programs_of ROOM: the paths of its programs or, without any, of its scripts.
programs_of() {
    if [ -d "$built/$1" ]; then
        echo "$built/$1"/bench_*
    else
        echo "bench/$1"/bench_*.py
    fi
}

# run_program PROGRAM ARGUMENTS...: a script needs no python3 to be skipped. Ends with 77 where it was.
run_program() {
    case $1 in
    *.py)
        command -v "${PHLOEM_BENCH_PYTHON:-python3}" >/dev/null || {
            echo "$1: skipped: ${PHLOEM_BENCH_PYTHON:-python3} is not there"
            return 77
        }
        "${PHLOEM_BENCH_PYTHON:-python3}" "$@"
        ;;
    *) "$@" ;;
    esac
}

# bench_room ROOM [PROGRAM] ARGUMENTS...
bench_room() {
    room=$1
    shift
    programs=$(programs_of "$room")
    case "${1:-}" in
    bench_*)
        named=$(printf '%s\n' $programs | grep -E "/$1(\.py)?\$") ||
            fail "there is no $1 among the benchmarks of $room: $(basename -s .py $programs | xargs)"
        programs=$named
        shift
        ;;
    esac
    gathered=''
    mkdir -p "$results/$room"
    if command -v "${PHLOEM_BENCH_PYTHON:-python3}" >/dev/null; then
        set -- --peers bench/peers "$@"
    fi
    for program in $programs; do
        part=$results/$room/$(basename "$program" .py).json
        status=0
        run_program "$program" --json "$part" "$@" || status=$?
        [ "$status" -ne 77 ] || continue
        [ "$status" -eq 0 ] || exit "$status"
        # The items of the array, without its brackets.
        items=$(sed -e '1s/^\[//' -e '$s/\]$//' "$part")
        gathered="$gathered${gathered:+,}$items"
    done
    printf '[%s]\n' "$gathered" >"$results/$room.json"
    echo "bench: figures are in $results/$room.json"
}

# report: of every room that has figures, compared with the kept bases.
report() {
    if ! command -v python3 >/dev/null; then
        echo 'bench: no report: python3 is not there'
        return 0
    fi
    set --
    while [ "$num_bases" -gt 0 ]; do
        set -- "$@" --base "$results/base/$num_bases.json"
        num_bases=$((num_bases - 1))
    done
    python3 tools/bench_report.py --results "$results" "$@"
}

num_bases=0
num_arguments=$#
while [ "$num_arguments" -gt 0 ]; do # each goes to the end of the line, but for --base and its file
    argument=$1
    shift
    num_arguments=$((num_arguments - 1))
    if [ "$argument" != --base ]; then
        set -- "$@" "$argument"
        continue
    fi
    [ "$num_arguments" -gt 0 ] || fail '--base FILE: the file is missing'
    keep_base "$1"
    shift
    num_arguments=$((num_arguments - 1))
done
find_peer_allocator
case " $rooms " in
*" ${1:-$rooms} "*) ;;
*) fail "there are no benchmarks of $1; there are: $rooms" ;;
esac
if [ $# -gt 0 ]; then
    bench_room "$@"
else
    for room in $rooms; do
        bench_room "$room"
    done
fi
report
