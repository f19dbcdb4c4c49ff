#!/bin/sh
# The C programs of examples/hub against this build: what they say of arguments that make no sense; and workers that go on
# through the deaths of their hub and of one of them, by the loop that docs/HUB.md shows. (test_install_hub.sh builds them as
# a user would.) Environment: PH_CC besides.
# shellcheck source=tests/system/support.sh
. "$PH_SOURCE_DIR/tests/system/support.sh"

hub='' first='' second='' twin='' lock=''
trap 'for process in $hub $first $second $twin; do kill -9 "$process" 2>/dev/null || true; done; rm -rf "$work" "$lock"' EXIT

for example in hub_worker surviving_worker; do
    "$PH_CC" -std=c17 -Wall -Wextra -Wpedantic -Wconversion -Werror -I "$PH_SOURCE_DIR/include" \
        "$PH_SOURCE_DIR/examples/hub/$example.c" "$PH_BINARY_DIR/libphloem_hub.so" -Wl,-rpath,"$PH_BINARY_DIR" -pthread \
        -o "$example" >stdout 2>stderr || complain "$example: no build"
done

# ---- arguments

for example in hub_worker surviving_worker; do
    for arguments in 'x 2 77' '0 two 77' '0 2 7x' '0 2 -1' '-1 2 77' '0 2' '0 2 77 9' '0 2 99999999999999999999' '4294967296 2 77'; do
        status=0
        # shellcheck disable=SC2086 # several arguments
        timeout 20 "./$example" 127.0.0.1:1 $arguments >stdout 2>stderr || status=$?
        [ "$status" -eq 2 ] || complain "$example with $arguments ended with $status; wanted 2"
        contains stderr "usage: $example "
    done
done

# ---- the loop of the page is that of the program

loop() {
    sed -n '/^ *do {$/,/^ *} while (status == PH_ERROR_PEER && .*);$/s/^ *//p' "$1"
}
loop "$PH_SOURCE_DIR/docs/HUB.md" >page
loop "$PH_SOURCE_DIR/examples/hub/surviving_worker.c" >program
grep -q '^client = NULL;' program || complain 'the loop was not found'
cmp page program || complain 'docs/HUB.md shows another loop than surviving_worker.c has'

# ---- deaths

# listens ADDRESS: a hub there, with a folder; false: it cannot be had.
listens() {
    rm -f hub.out
    "$PH_BINARY_DIR/phloem" hub --threads 2 --address "$1" --set hub.checkpoint_folder="$folder" >hub.out 2>>hub.err </dev/null &
    process=$!
    waits_for grep '^ready at' hub.out
    grep -q '^ready at' hub.out || return 1
    hub=$process
}

# locks PORT: no other test takes it before this one ends; false: another has it. (As tests/hub/hub_processes.c does.)
locks() {
    file=/tmp/phloem-test-port-$1
    (: >>"$file") 2>/dev/null && exec 9>>"$file" && flock -n 9 && [ "$(stat -L -c %h /proc/self/fd/9)" -gt 0 ]
}

# Below the ports that the system gives away by itself, and locked: nobody else takes it while the hub is dead.
listens_somewhere() {
    port=$((20000 + $$ % 10000))
    until locks "$port" && lock=$file && listens "127.0.0.1:$port"; do
        rm -f "$lock"
        lock=''
        port=$((port + 1))
        [ "$port" -lt 32000 ] || complain "no port is free: $(cat hub.err)"
    done
    address=127.0.0.1:$port
}

# dies PROCESS: at once.
dies() {
    kill -9 "$1"
    wait "$1" || true
}

# runs PROCESS: it has not ended, even where nobody has taken its status yet.
runs() {
    grep -q '^State:[[:space:]]*[^ZX]' "/proc/$1/status"
}

begin_first() {
    ./surviving_worker "$address" 0 2 77 >>first.out 2>>stderr &
    first=$!
}

begin_second() {
    ./surviving_worker "$address" 1 2 77 >>second.out 2>>stderr &
    second=$!
}

# has_begun FILE COUNT: the worker that says so there has begun that often.
has_begun() {
    [ "$(grep -c 'begins at' "$1")" -eq "$2" ]
}

# is_kept COUNT: so many checkpoints were written while the job ran.
is_kept() {
    [ "$(grep -c 'event=checkpoint_written .*iteration=[1-9]' hub.err)" -ge "$1" ]
}

ends_well() {
    wait "$first" || complain 'worker 0 failed'
    wait "$second" || complain 'worker 1 failed'
    first='' second=''
    [ -z "$(ls "$folder")" ] || complain 'the workers have left their service behind'
    [ "$(tail -n 1 first.out | cut -d ' ' -f 3-)" = "$(tail -n 1 second.out | cut -d ' ' -f 3-)" ] ||
        complain 'the workers end with different sums'
}

has_joined() {
    grep -q 'event=worker_joined' hub.err
}

# is_lost FILE COUNT: that many tries have come to nothing.
is_lost() {
    [ "$(grep -c 'worker 0 has joined already' "$1")" -ge "$2" ]
}

folder=undisturbed
listens_somewhere
begin_first
process=$first
waits_for has_joined
./surviving_worker "$address" 0 2 77 >/dev/null 2>twin.err & # what lasts is said, with a pause behind it
twin=$!
process=$twin
waits_for is_lost twin.err 3
sleep 0.5 # time for all its tries, were there no pauses
tries=$(wc -l <twin.err)
{ [ "$tries" -lt 20 ] && runs "$twin"; } || complain "a worker has given up after $tries tries: $(cat twin.err)"
dies "$twin"
twin=''
begin_second
ends_well
grep 'ends with' first.out >wanted || complain 'no sum'
dies "$hub"

: >first.out && : >second.out && : >hub.err
folder=disturbed
listens "$address" || complain "no hub: $(cat hub.err)"
begin_first
begin_second
process=$hub
waits_for is_kept 2
dies "$hub"
listens "$address" || complain "no hub again: $(cat hub.err)"
process=$first
waits_for has_begun first.out 2
waits_for is_kept 4
dies "$second"
begin_second
ends_well
[ "$(grep -c 'begins at [1-9]' first.out)" -eq 2 ] || complain "worker 0 did not go on twice: $(cat first.out)"
tail -n 1 first.out | cmp - wanted || complain "another sum than without deaths: $(cat first.out wanted)"

# A worker that comes when the others have left waits for rank 0 to begin the job again, and leaves nothing behind.
is_told_to_wait() {
    grep -q "does not exist" late.err
}
./surviving_worker "$address" 1 2 77 >/dev/null 2>late.err &
second=$!
process=$second
waits_for is_told_to_wait
[ -z "$(ls "$folder")" ] || complain 'a worker that came late has begun the job again'
dies "$second"
second=''
echo 'test_hub_examples: the job ends with the bits of one that nothing has happened to'
