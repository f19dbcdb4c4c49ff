#!/bin/sh
# The benchmarks behind ./run bench: runs the programs of bench/<room>/ and gathers what they measured into
# build/bench/<room>.json. Called at the root of the tree, after the build.
#
# usage: bench.sh [ROOM [ARGUMENTS OF ITS PROGRAMS...]]; without a room, all of them
# Where there is python3, programs start what they compare themselves with from bench/peers/.
set -eu

built=build/release/bench
export GOMP_SPINCOUNT="${GOMP_SPINCOUNT:-10000}" # as the phloem program sets it; a peer keeps its own default
results=build/bench
rooms=$(for source in bench/*/bench_*.c; do basename "$(dirname "$source")"; done | sort -u | xargs)

# bench_room ROOM ARGUMENTS...
bench_room() {
    room=$1
    shift
    gathered=''
    mkdir -p "$results/$room"
    if command -v "${PHLOEM_BENCH_PYTHON:-python3}" >/dev/null; then
        set -- --peers bench/peers "$@"
    fi
    for program in "$built/$room"/bench_*; do
        part=$results/$room/$(basename "$program").json
        "$program" --json "$part" "$@"
        # The items of the array, without its brackets.
        items=$(sed -e '1s/^\[//' -e '$s/\]$//' "$part")
        gathered="$gathered${gathered:+,}$items"
    done
    printf '[%s]\n' "$gathered" >"$results/$room.json"
    echo "bench: figures are in $results/$room.json"
}

if [ $# -eq 0 ]; then
    for room in $rooms; do
        bench_room "$room"
    done
    exit 0
fi
case " $rooms " in
*" $1 "*) bench_room "$@" ;;
*)
    echo "bench: there are no benchmarks of $1; there are: $rooms" >&2
    exit 2
    ;;
esac
