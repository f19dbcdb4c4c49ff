#!/bin/sh
# A parameter hub on a host with several network interfaces: workers elsewhere connect to each core thread by the interface
# that was chosen for it, and where one cannot be reached, by that of their control connection. Traffic stays in namespaces
# that the test makes.
# shellcheck source=tests/support/network_namespaces.sh
. "$PH_SOURCE_DIR/tests/support/network_namespaces.sh"
enters_namespaces "$0"
# shellcheck source=tests/system/support.sh
. "$PH_SOURCE_DIR/tests/system/support.sh"

far= hubs= process=
trap 'for process in $process $hubs $far; do kill "$process" 2>/dev/null || true; done; rm -rf "$work"' EXIT
makes_far_namespace || complain 'the far namespace has ended'
joins_namespaces 1 192.0.2.1/24 192.0.2.2/24 2001:db8:1::1/64 2001:db8:1::2/64
joins_namespaces 2 198.51.100.1/24 198.51.100.2/24 2001:db8:2::1/64 2001:db8:2::2/64
(umask 077 && echo 'sixteen bytes and some more' >secret)

# serves ADDRESS: a hub with four core threads in the far namespace.
serves() {
    rm -f hub.out # of the hub before
    becomes_far "$PH_BINARY_DIR/phloem" hub --threads 4 --address "$1" --secret-file secret >hub.out 2>hub.err </dev/null &
    process=$!
    hubs="$hubs $process"
    waits_for grep '^ready at' hub.out
    grep -q '^ready at' hub.out || complain "no hub: $(cat hub.err)"
    process=
}

ends_hubs() {
    for process in $hubs; do
        kill -s TERM "$process"
        ends 143
    done
    hubs= process=
}

# looks ADDRESS: the hub's status in ./stdout.
looks() {
    succeeds hub status "$1" --secret-file secret --seconds 0.01 --json
}

# has_begun ADDRESS: all links are there when the job runs.
has_begun() {
    looks "$1"
    grep -q '"state": "running"' stdout
}

# measures ADDRESSES [PREFIX...]: two workers of this namespace that last, once their job runs on the first hub.
measures() {
    addresses=$1
    shift
    "$@" "$PH_BINARY_DIR/phloem" hub bench "$addresses" --secret-file secret --transport tcp --sizes 1M --rounds 10000000 \
        >bench.out 2>bench.err </dev/null &
    process=$!
    until has_begun "${near:-${addresses%%,*}}"; do
        kill -s 0 "$process" 2>/dev/null || complain "the measurement has ended: $(cat bench.err)"
    done
}

ends_measurement() {
    kill -s TERM "$process"
    ends 143
    process=
}

# counts PORT ADDRESS WANTED: connections to that address of the hub, as its own system knows them.
counts() {
    count=$(in_far ss -Htn state established "( sport = :$1 )" src "$2" | wc -l)
    [ "$count" -eq "$3" ] || complain "$count connections to $2, port $1; wanted $3"
}

# goes_to ADDRESSES: says the status of both workers.
goes_to() {
    [ "$(grep -c "\"addresses\": \"$1\"" stdout)" -eq 2 ] || complain "the workers' addresses are not $1"
}

# received N: bytes that came to the far interface.
received() {
    in_far cat /proc/net/dev | sed -n "s/^ *far$1: *\([0-9]*\) .*/\1/p"
}

# ---- two interfaces, of two core threads each: eight connections of two workers, and their two control connections

serves 0.0.0.0:4711
measures 192.0.2.2:4711
counts 4711 192.0.2.2 6
counts 4711 198.51.100.2 4
goes_to '192.0.2.2:4711 198.51.100.2:4711'
[ "$(grep -c ', interface far1"' stdout)" -eq 2 ] || complain 'two core threads should be told to have the interface far1'
[ "$(grep -c ', interface far2"' stdout)" -eq 2 ] || complain 'two core threads should be told to have the interface far2'
ends_measurement

before1=$(received 1) before2=$(received 2)
succeeds hub bench 192.0.2.2:4711 --secret-file secret --transport tcp --sizes 4M --rounds 10 --json
[ "$(value stdout why)" = 'TCP was asked for' ] || complain 'an address could not be used'
first=$(($(received 1) - before1)) second=$(($(received 2) - before2))
[ "$second" -gt $((40 << 20)) ] || complain "$second bytes came to the second interface" # 2 x 10 x 4 MiB / 2
[ $((first * 10)) -lt $((second * 11)) ] && [ $((second * 10)) -lt $((first * 11)) ] ||
    complain "$first bytes came to one interface and $second to the other"

# A worker of the hub's host stays there.
near=192.0.2.2:4711
measures 127.0.0.1:4711 becomes_far
near=
goes_to 127.0.0.1:4711
ends_measurement

# ---- two hubs: each has addresses of its own

serves 0.0.0.0:4712
measures 192.0.2.2:4711,198.51.100.2:4712
counts 4711 192.0.2.2 6
counts 4711 198.51.100.2 4
counts 4712 192.0.2.2 4
counts 4712 198.51.100.2 6
ends_measurement
ends_hubs

# ---- IPv6, and IPv4 to the same hub

serves '[::]:4711'
measures '[2001:db8:2::2]:4711'
goes_to '\[2001:db8:1::2\]:4711 \[2001:db8:2::2\]:4711'
counts 4711 '[2001:db8:1::2]' 4
counts 4711 '[2001:db8:2::2]' 6
ends_measurement
measures 192.0.2.2:4711
goes_to '\[::ffff:192.0.2.2\]:4711 \[::ffff:198.51.100.2\]:4711'
ends_measurement
near=192.0.2.2:4711
measures 127.0.0.1:4711 becomes_far
near=
goes_to '\[::ffff:127.0.0.1\]:4711'
ends_measurement
ends_hubs

# ---- one address

serves 192.0.2.2:4711
measures 192.0.2.2:4711
goes_to 192.0.2.2:4711
counts 4711 192.0.2.2 10
grep -q 'interface' stdout && complain 'there is no interface to choose'
ends_measurement
ends_hubs

# ---- a third interface, whose network the workers have no way to, and then one that leads nowhere

joins_namespaces 3
in_far ip address add 203.0.113.2/24 dev far3
serves 0.0.0.0:4711
for reason in 'Network is unreachable' 'Connection timed out'; do
    measures 192.0.2.2:4711
    goes_to '192.0.2.2:4711 198.51.100.2:4711'
    counts 4711 192.0.2.2 8 # of core threads 0 and 3, and 2 in vain
    counts 4711 198.51.100.2 2
    ends_measurement
    succeeds hub bench 192.0.2.2:4711 --secret-file secret --transport tcp --sizes 1M --rounds 3 --json
    contains stdout "the hub's address 203.0.113.2 is not used: '203.0.113.2:4711' cannot be reached: $reason"
    [ "$reason" = 'Connection timed out' ] && break
    ip link add hole type veth peer name bottom
    ip link set hole up
    ip link set bottom up
    ip route add 203.0.113.0/24 dev hole
    ip neighbour add 203.0.113.2 lladdr 02:00:00:00:00:01 dev hole # nobody's
done
ends_hubs
