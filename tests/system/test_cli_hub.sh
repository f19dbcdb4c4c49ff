#!/bin/sh
# A parameter hub from the command line: it starts, is looked at and measured, and ends with its signal's exit code; what
# cannot be is one line and an exit code.
# shellcheck source=tests/system/support.sh
. "$PH_SOURCE_DIR/tests/system/support.sh"

hub= other=
trap 'for left in $hub $other; do kill "$left" 2>/dev/null && kill -s CONT "$left" || true; done; rm -rf "$work"' EXIT

# serves ARGUMENTS...: a hub in the background; leaves its process and address, and what it prints in ./hub.out, ./hub.err.
serves() {
    rm -f hub.out # of the hub before
    env --default-signal=INT "$PH_BINARY_DIR/phloem" hub --threads 2 --set hub.chunk_bytes=32768 "$@" >hub.out 2>hub.err </dev/null &
    process=$!
    hub=$process
    waits_for grep '^ready at' hub.out
    address=$(sed -n 's/^ready at \([^,]*\).*/\1/p' hub.out)
    [ -n "$address" ] || complain "no hub: $(cat hub.err)"
}

# stops SIGNAL STATUS: the hub ends so.
stops() {
    process=$hub
    kill -s "$1" "$process"
    hub=
    ends "$2"
    [ "$(wc -l <hub.out)" -eq 1 ] || complain 'a hub prints one line'
    contains hub.err 'phloem: error: stopped by a signal'
}

# measures TRANSPORT [ADDRESSES [WORKERS WAIT [FLAGS...]]]: a measurement in the background that lasts, once its service is there.
measures() {
    transport=$1 addresses=${2:-$address} workers=${3:-2} wait=${4:-auto}
    shift "$(($# < 4 ? $# : 4))"
    env --default-signal=INT "$PH_BINARY_DIR/phloem" hub bench "$addresses" --transport "$transport" --workers "$workers" \
        --wait "$wait" --sizes 64K --rounds 10000000 "$@" >bench.out 2>bench.err </dev/null &
    process=$!
    until "$PH_BINARY_DIR/phloem" hub status "$address" --seconds 0.01 "$@" | grep -q running; do
        kill -s 0 "$process" 2>/dev/null || complain "the measurement has ended: $(cat bench.err)"
    done
}

# ---- its life

serves --set hub.chunk_bytes=32768
succeeds hub status "$address" --seconds 0.01
contains stdout "hub at $address"
contains stdout 'tall aggregation'
contains stdout 'no jobs'
succeeds hub bench "$address" --sizes 4K,100000,1M --rounds 5
contains stdout '2 workers, 5 rounds'
[ "$(grep -c '^| shared memory |' stdout)" -eq 3 ] || complain 'three sizes over shared memory are missing'
[ "$(grep -c '^| tcp  ' stdout)" -eq 3 ] || complain 'three sizes over TCP are missing'
succeeds hub bench "$address" --sizes 64K --rounds 3 --workers 3 --transport shm --wait sleep --json
[ "$(value stdout transport)" = 'shared memory' ] || complain 'the transport is missing'
[ "$(value stdout chunks)" = 2 ] || complain 'wanted 64 KiB in two chunks'
[ "$(value stdout workers)" = 3 ] || complain 'wanted three workers'
succeeds hub status "$address" --seconds 0.01
contains stdout 'no jobs'
contains hub.err 'event=job_begun'
stops TERM 143
contains hub.err 'event=hub_stopped'

# ---- while a job runs

serves --set hub.log=json --trace trace.json --metrics 127.0.0.1:0
contains hub.out ', metrics at http://127.0.0.1:'
measures shm
succeeds hub status "$address" --seconds 0.1
contains stdout 'synchronous |  2 of 2'
contains stdout 'the worker is on this host'
grep -q '^| *0 | *16384 | F32 *| *0 | *2 |$' stdout || complain 'the row of key 0 is missing'
updates=$(sed -n 's/^| bench-.* | *\([0-9]*\) | *[0-9.]* |$/\1/p' stdout)
[ "${updates:-0}" -gt 0 ] || complain 'a job that runs has no rate'
service=$(sed -n 's/^| \(bench-[^ ]*\) .*/\1/p' stdout)
succeeds hub status "$address" --seconds 0.1 --service "$service" --json
[ "$(value stdout name | head -n 1)" = "$service" ] || complain 'the service is missing'
contains stdout '"updates_per_s": '
fails 2 "has no service 'absent'" hub status "$address" --seconds 0.01 --service absent
kill -s INT "$process"
ends 130
contains bench.err 'stopped by a signal'
succeeds hub status "$address" --seconds 0.01
contains stdout 'no jobs'
stops INT 130
contains hub.err '{"time":"'
contains trace.json '"name":"sum and step"'

# It takes the descriptors that it may have.
ulimit -S -n 50
serves --set hub.log=none
ulimit -S -n "$(ulimit -H -n)"
limits=$(sed -n 's/^Max open files  *\([^ ]*\)  *\([^ ]*\) .*/\1 \2/p' "/proc/$hub/limits")
[ "${limits% *}" = "${limits#* }" ] || complain "the hub may have $limits descriptors"
stops TERM 143

# One that could serve no worker says so when it starts, and with as many as it asks for it serves one.
for most in 20 40; do
    status=0
    (ulimit -n "$most" && exec "$PH_BINARY_DIR/phloem" hub --threads 2) >hub.out 2>hub.err </dev/null || status=$?
    [ "$status" -eq 5 ] || complain "a hub with $most descriptors ended with $status; wanted 5"
    contains hub.err "and may have $most: raise the limit (ulimit -n "
    [ "$(wc -l <hub.err)" -eq 1 ] || complain 'wanted one line'
done
needed=$(sed -n 's/.*(ulimit -n \([0-9]*\)).*/\1/p' hub.err)
rm hub.out
(ulimit -n "$needed" && exec "$PH_BINARY_DIR/phloem" hub --threads 2) >hub.out 2>hub.err </dev/null &
hub=$!
process=$hub
waits_for grep '^ready at' hub.out
address=$(sed -n 's/^ready at \([^,]*\).*/\1/p' hub.out)
succeeds hub bench "$address" --sizes 4K --rounds 3 --workers 1 --transport shm
stops TERM 143

# A measurement hears signals while its hub is stopped, and says what it leaves there.
serves
measures tcp
succeeds hub status "$address" --seconds 0.01
service=$(sed -n 's/^| \(bench-[^ ]*\) .*/\1/p' stdout)
kill -s STOP "$hub"
kill -s TERM "$process"
ends 143
contains bench.err "service '$service' may be left, since the hub does not answer: run phloem hub destroy $address $service"
[ "$(wc -l <bench.err)" -eq 1 ] || complain 'wanted one line'
env --default-signal=INT "$PH_BINARY_DIR/phloem" hub bench "$address" --sizes 64K >bench.out 2>bench.err </dev/null &
process=$!
catches_interrupts() { # is no shell any more, and has a handler for SIGINT, signal 2
    grep -q '^Name:.*phloem' "/proc/$process/status" && grep -q '^SigCgt:.*[2367abef]$' "/proc/$process/status"
}
waits_for catches_interrupts
kill -s INT "$process"
ends 130
contains bench.err 'stopped by a signal'
kill -s CONT "$hub"
is_gathering() {
    "$PH_BINARY_DIR/phloem" hub status "$address" --seconds 0.01 | grep -q gathering
}
process=$hub
waits_for is_gathering
succeeds hub destroy "$address" "$service"
succeeds hub status "$address" --seconds 0.01
contains stdout 'no jobs'
stops TERM 143

# Of many workers the first are listed, unless theirs is the service that is asked for.
serves --set hub.log=none
measures shm "$address" 67 sleep
succeeds hub status "$address" --seconds 0.01
service=$(sed -n 's/^| \(bench-[^ ]*\) .*/\1/p' stdout)
contains stdout "and 3 more workers: --service $service"
succeeds hub status "$address" --seconds 0.01 --service "$service"
contains stdout '|     66 | shared memory'
if grep -q 'more workers' stdout; then complain 'all workers were asked for'; fi
stops TERM 143
process=$!
ends 6

# A service whose nonce nobody knows is ended by the hub's user.
(umask 077 && echo 'a secret that both sides know' >secret && echo 'another secret, just as long' >wrong)
serves --set hub.checkpoint_folder=kept --secret-file secret
measures shm "$address" 2 auto --secret-file secret
succeeds hub status "$address" --seconds 0.01 --secret-file secret
service=$(sed -n 's/^| \(bench-[^ ]*\) .*/\1/p' stdout)
fails 2 '--secret-file' hub destroy "$address" "$service"
fails 6 'secret' hub destroy "$address" "$service" --secret-file wrong
fails 2 "service 'absent' does not exist" hub destroy "$address" absent --secret-file secret
[ -n "$(ls kept)" ] || complain 'the service has no checkpoint'
succeeds hub destroy "$address" "$service" --secret-file secret
[ -z "$(ls kept)" ] || complain 'a service has ended and left its checkpoint'
ends 6
contains bench.err 'the service was destroyed'
succeeds hub status "$address" --seconds 0.01 --secret-file secret
contains stdout 'no jobs'
stops TERM 143

# A hub that ends takes its jobs with it, and says so.
serves --set hub.log=none
measures shm
stops TERM 143
[ "$(wc -l <hub.err)" -eq 1 ] || complain 'a quiet hub has written a log'
process=$!
ends 6
contains bench.err 'the hub was stopped'

# ---- several hubs

serves
other=$hub other_address=$address
mv hub.out other.out && mv hub.err other.err
serves
both=$other_address,$address
succeeds hub bench "$both" --sizes 4K,1M --rounds 3 # the first is one chunk
[ "$(grep -c '^| tcp  ' stdout)" -eq 2 ] || complain 'two sizes over TCP are missing'
succeeds hub bench "$both" --sizes 64K --rounds 3 --transport tcp --json
[ "$(value stdout why)" = "several hubs share the job's keys" ] || complain 'the reason is missing'
fails 2 'several hubs' hub bench "$both" --transport shm
fails 6 'hub 127.0.0.1:1: ' hub bench "$address,127.0.0.1:1"
succeeds hub status "$address" --seconds 0.01
contains stdout 'no jobs'
succeeds hub status "$address" --seconds 0.01
measures tcp "$both"
succeeds hub status "$other_address" --seconds 0.01
contains stdout ': hub 1 of 2, 1 chunks'
service=$(sed -n 's/^| \(bench-[^ ]*\) .*/\1/p' stdout)
succeeds hub status "$other_address" --seconds 0.01 --service "$service"
contains stdout "several hubs share the job's keys"
succeeds hub status "$address" --seconds 0.01
contains stdout ': hub 2 of 2, 1 chunks'
kill -s INT "$process"
ends 130
kill -s TERM "$other"
process=$other other=
ends 143
stops TERM 143

# ---- other ways to run

cat >hub.yaml <<'END'
hub: {aggregation: wide, wait: sleep, max_job_bytes: 3000000, max_jobs: 1}
END
serves --config hub.yaml
succeeds hub status "$address" --seconds 0.01
contains stdout 'wide aggregation'
succeeds hub bench "$address" --sizes 64K --rounds 3
fails 5 'bytes on the hub' hub bench "$address" --sizes 1M --rounds 3
succeeds hub status "$address" --seconds 0.01
contains stdout 'no jobs'
stops TERM 143

# Jobs that are kept have other keys each time.
serves --set hub.checkpoint_folder=kept
succeeds hub bench "$address" --sizes 4K,64K --rounds 3
contains hub.err 'event=checkpoint_written'
[ -z "$(ls kept)" ] || complain 'a measurement has left its checkpoint'
fails 2 'checkpoint_folder (hub.checkpoint_folder): kept: another process uses this folder' hub --set hub.checkpoint_folder=kept
stops TERM 143

serves
fails 2 'leave out secret_file (--secret-file)' hub status "$address" --secret-file secret
stops TERM 143
serves --secret-file secret --address 0.0.0.0:0
succeeds hub bench "$address" --sizes 4K --rounds 3 --secret-file secret
stops TERM 143
serves --secret-file secret
succeeds hub bench "$address" --sizes 4K --rounds 3 --secret-file secret
fails 6 'hub' hub bench "$address" --sizes 4K --rounds 3 --secret-file wrong
fails 2 '--secret-file' hub status "$address"

# ---- what cannot be (the hub with the secret still runs)

fails 6 "hub.address): cannot listen at '$address'" hub --address "$address"
fails 2 "hub.address): 'nonsense' is not an address" hub --address nonsense
fails 2 "hub.address): '127.0.0.1:99999': '99999' is not a port" hub --address 127.0.0.1:99999
fails 2 "hub.metrics_address): 'nonsense' is not an address" hub --metrics nonsense
fails 6 "hub.metrics_address): cannot listen at '$address'" hub --metrics "$address"
fails 2 'hub.secret_file' hub --address 0.0.0.0:0
fails 2 'hub.chunk_bytes): chunks of 100 bytes' hub --set hub.chunk_bytes=100
fails 2 "'nonsense' is not an address" hub status nonsense
fails 2 'hub.threads' hub --threads 1000
fails 2 "hub.thread" hub --set hub.thread=1
fails 2 'hub.wait' hub --set hub.wait=often
fails 2 'absent.yaml' hub --config absent.yaml
fails 2 'hub.secret_file): absent' hub --secret-file absent
fails 2 'hub.checkpoint_folder' hub --set hub.aggregation=wide --set hub.checkpoint_folder=.
fails 2 "hub.checkpoint_folder): hub.yaml/kept: 'hub.yaml' must be a folder" hub --set hub.checkpoint_folder=hub.yaml/kept
fails 2 'hub.aggregation: wide' hub --set hub.aggregation=wide --set hub.checkpoint_folder=.
fails 2 'metrics' hub --metrics ''
mkdir kept.json
fails 5 'absent/trace.json' hub --trace absent/trace.json
fails 2 'kept.json: must be a file, not a folder' hub --trace kept.json
fails 2 'one argument too many' hub serve
fails 2 'ADDRESS' hub status
fails 2 'ADDRESS' hub bench
fails 2 'SERVICE' hub destroy 127.0.0.1:1
fails 6 '127.0.0.1:1' hub destroy 127.0.0.1:1 job
fails 6 '127.0.0.1:1' hub status 127.0.0.1:1
fails 6 '127.0.0.1:1' hub bench 127.0.0.1:1
fails 2 '--seconds' hub status "$address" --seconds 0
fails 2 '--workers' hub bench "$address" --workers 0
fails 2 '--rounds' hub bench "$address" --rounds many
fails 2 '--sizes' hub bench "$address" --sizes 4K,5
fails 2 '--sizes' hub bench "$address" --sizes ,
fails 2 "'udp'" hub bench "$address" --transport udp
fails 2 "'never'" hub bench "$address" --wait never
stops INT 130
