#!/bin/sh
# The benchmarks behind ./run bench: runs the programs of bench/<room>/ and gathers what they measured into
# build/bench/<room>.json. Called at the root of the tree, after the build.
#
# usage: bench.sh [ROOM [ARGUMENTS OF ITS PROGRAMS...]]; without a room, all of them
# A room's peer_<name>.py, where there is one and python3, drives what its programs compare themselves with.
set -eu

built=build/release/bench
export GOMP_SPINCOUNT="${GOMP_SPINCOUNT:-10000}" # as the phloem program sets it; a peer keeps its own default
results=build/bench

# bench_room ROOM ARGUMENTS...
bench_room() {
    room=$1
    shift
    gathered=''
    mkdir -p "$results/$room"
    for peer in bench/"$room"/peer_*.py; do
        if [ -e "$peer" ] && command -v python3 >/dev/null; then
            set -- --peer "python3 $peer" "$@"
        fi
    done
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
    for folder in bench/*/; do
        bench_room "$(basename "$folder")"
    done
    exit 0
fi
if [ ! -d "bench/$1" ]; then
    echo "bench: there are no benchmarks of $1; there are: $(cd bench && echo */)" >&2
    exit 2
fi
bench_room "$@"
