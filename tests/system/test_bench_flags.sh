#!/bin/sh
# Benchmarks measure what they were asked for, or nothing: a flag that a program does not know, and a value that is none of a
# flag's, is named in one line and ends it with 2.
# shellcheck source=tests/system/support.sh
. "$PH_SOURCE_DIR/tests/system/support.sh"

# refuses WHAT PROGRAM ARGUMENTS...: the line that the program ends with says WHAT.
refuses() {
    what=$1
    shift
    status=0
    "$@" --json figures.json >stdout 2>stderr || status=$?
    [ "$status" -eq 2 ] || complain "$(basename "$1"): $* ended with $status; wanted 2"
    [ "$(wc -l <stderr)" -eq 1 ] || complain "$(basename "$1"): wanted one line on stderr"
    contains stderr "$what"
    [ ! -s stdout ] || complain "$(basename "$1"): it measured something"
    [ ! -e figures.json ] || complain "$(basename "$1"): it wrote figures"
}

count=0
for source in "$PH_SOURCE_DIR"/bench/*/bench_*.c; do
    program=$PH_BINARY_DIR/bench/$(basename "$(dirname "$source")")/$(basename "$source" .c)
    [ -x "$program" ] || complain "$program was not built"
    refuses "--quik: unknown flag" "$program" --quick --quik
    refuses "3: unknown flag" "$program" --quick 3
    refuses "--rounds 'three': not a positive number" "$program" --quick --rounds three
    refuses "--rounds '-1': not a positive number" "$program" --rounds -1
    count=$((count + 1))
done
[ "$count" -ge 4 ] || complain 'there are no benchmarks'

hub=$PH_BINARY_DIR/bench/hub
refuses "--only 'smal': must be one of shm|tcp|small|" "$hub/bench_pushpull" --quick --only smal
refuses "--transport 'udp': must be one of shm|tcp" "$hub/bench_pushpull" --quick --transport udp
refuses "--transport '': must be one of shm|tcp" "$hub/bench_pushpull" --quick --transport ''
refuses "--chunk-kib '0': not a positive number" "$hub/bench_partition" --chunk-kib 0
refuses "--precision 'fp61': must be one of fp32|bf16" "$PH_BINARY_DIR/bench/train/bench_dlrm" --precision fp61

refuses "--only 'rate': must be one of rates|python|reloads" "$PH_BINARY_DIR/bench/serve/bench_server" --only rate
refuses "--kills '0': not a positive number" "$PH_BINARY_DIR/bench/serve/bench_server" --kills 0
refuses "--wire 'fp8': must be one of fp32|fp16|bf16|int8" "$PH_BINARY_DIR/bench/comm/bench_ranks" --wire fp8

# A value that is missing.
status=0
"$hub/bench_partition" --quick --rounds >stdout 2>stderr || status=$?
[ "$status" -eq 2 ] || complain "without a value it ended with $status; wanted 2"
contains stderr '--rounds: requires a value'

# What was asked for and does not exist.
status=0
"$hub/bench_pushpull" --quick --only shm --transport tcp >stdout 2>stderr || status=$?
[ "$status" -eq 2 ] || complain "with nothing to measure it ended with $status; wanted 2"
contains stderr 'nothing was measured'

# --quick takes no value from the flag behind it.
"$hub/bench_partition" --quick --rounds 3 --json figures.json >stdout || complain 'bench_partition failed'
contains figures.json 'hub.partition.resnet50.servers1'
