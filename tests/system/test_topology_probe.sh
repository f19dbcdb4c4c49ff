#!/bin/sh
# phloem topology probe, agent and show: over agents on the loopback, and between hosts in racks behind slow uplinks, which are
# network namespaces that the test makes.
# shellcheck source=tests/support/network_namespaces.sh
. "$PH_SOURCE_DIR/tests/support/network_namespaces.sh"
# shellcheck source=tests/system/support.sh
. "$PH_SOURCE_DIR/tests/system/support.sh"
# shellcheck source=tests/support/shaped_racks.sh
. "$PH_SOURCE_DIR/tests/support/shaped_racks.sh"

agents='' racks=$work/racks
trap 'for agent in $agents; do kill "$agent" 2>/dev/null || true; done; ends_racks; rm -rf "$work"' EXIT
mkdir "$racks"

# starts_agent NUMBER ARGUMENTS...: on this host; leaves its process in agent and its address in address.
starts_agent() {
    number=$1
    shift
    "$PH_BINARY_DIR/phloem" topology agent "$@" >"agent$number.out" 2>"agent$number.err" </dev/null &
    agent=$! process=$!
    agents="$agents $agent"
    waits_for grep -q '^ready at' "agent$number.out"
    address=$(sed -n 's/^ready at //p' "agent$number.out")
    [ -n "$address" ] || complain "no agent: $(cat "agent$number.err")"
}

# is_whole FILE HOSTS: a topology file with all pairs.
is_whole() {
    [ "$(grep -c 'latency_us' "$1")" -eq $(($2 * ($2 - 1))) ] || complain "$1 lacks pairs"
    succeeds topology show "$1"
    contains stdout "$2 hosts in"
}

loopback() {
    # ---- what cannot be ----
    fails 2 'topology probe requires --out FILE' topology probe
    fails 2 'requires two hosts or more, by --hosts HOST:PORT,HOST:PORT or mpirun, and there is only' topology probe --out t.yaml
    fails 2 "'nowhere' is not an address of an agent: write HOST:PORT" topology probe --out t.yaml --hosts nowhere
    fails 2 'requires two hosts or more' topology probe --out t.yaml --hosts 127.0.0.1:1
    fails 2 "--share must be a number from 0.001 to 1, not '2'" topology probe --out t.yaml --share 2
    fails 2 "--seconds must be a number" topology probe --out t.yaml --seconds soon
    fails 2 '0.0.0.0:0' topology agent --listen 0.0.0.0:0
    contains stderr 'can be reached from other hosts: requires --secret-file'
    fails 2 "unknown verb of topology 'prob'" topology prob
    fails 5 'cannot' topology probe --out no/such/t.yaml --hosts 127.0.0.1:1,127.0.0.1:2

    # ---- a probe ----
    starts_agent 1 --listen 127.0.0.1:0
    one=$address
    starts_agent 2 --listen 127.0.0.1:0
    two=$address
    starts_agent 3 --listen 127.0.0.1:0
    three=$address last=$agent
    succeeds topology probe --hosts "$one,$two,$three" --out t.yaml --page t.html --echoes 10
    contains stdout '6 pairs measured'
    contains stdout '3 hosts in'
    is_whole t.yaml 3
    contains t.html '"matrix"'
    [ ! -e t.yaml.part ] || complain 'a part is left'
    contains t.yaml '# phloem topology probe: 6 pairs were measured, 0 have the value'
    succeeds topology order t.yaml --collective ring --bytes 1000000

    # ---- limits, and going on ----
    succeeds topology probe --help
    contains stdout 'default: 300'
    contains stdout 'default: 1e12'
    fails 3 'has reached its limit, --bytes 600000' topology probe --hosts "$one,$two,$three" --out v.yaml --echoes 10 --bytes 600000
    contains stderr "of 6 pairs are in 'v.yaml.part'"
    contains stderr '--resume goes on'
    { [ -s v.yaml.part ] && [ ! -e v.yaml ]; } || complain 'the limit left other files'
    fails 3 'is the part of a probe of other hosts' topology probe --hosts "$one,$three,$two" --out v.yaml --resume
    before=$(grep -c . v.yaml.part)
    succeeds topology probe --hosts "$one,$two,$three" --out v.yaml --echoes 10 --resume
    [ "$before" -gt 10 ] || complain 'nothing was kept'
    is_whole v.yaml 3

    # What is known is kept, whatever it is: here that the last host is far, and what all flows to it share.
    printf '{"version": 1, "hosts": ["%s", "%s", "%s"], "ways": ".aaa.aaa.",
        "latency_ns": [null, 9e3, 9e3, 9e3, null, 9e3, 9e3, 9e3, null],
        "ns_per_byte": [null, 1, 10, 1, null, 10, 10, 10, null],
        "trunks": [null, 50, null, null, null, null, null, null, null]}' "$one" "$two" "$three" >x.yaml.part
    succeeds topology probe --hosts "$one,$two,$three" --out x.yaml --resume
    contains stdout '3 hosts in 2 groups'
    contains x.yaml '{from: 1, to: 2, gbits_per_s: 0.8, latency_us: 9}'
    contains x.yaml '{from: 0, to: 1, gbits_per_s: 0.16}'
    [ "$(sed -n '/trunks/,$p' x.yaml | grep -c gbits)" -eq 2 ] || complain 'wanted two trunks'
    printf '{"version": 1, "hosts": ["%s", "%s", "%s"], "ways": "..."}' "$one" "$two" "$three" >x.yaml.part
    fails 3 "x.yaml.part: 'latency_ns' is not of 9 pairs" topology probe --hosts "$one,$two,$three" --out x.yaml --resume
    echo '{"version": 1' >x.yaml.part
    fails 3 'x.yaml.part' topology probe --hosts "$one,$two,$three" --out x.yaml --resume

    # ---- a signal; an agent that is gone, and one that knows another secret ----
    begins topology probe --hosts "$one,$two,$three" --out w.yaml --echoes 1000000
    until [ -e w.yaml.part ]; do kill -s 0 "$process"; done
    kill -s INT "$process"
    ends 130
    contains stderr '--resume goes on'
    [ -e w.yaml.part ] || complain 'a signal left no part'
    kill -s KILL "$last"
    fails 6 "no agent answers for host $three" topology probe --hosts "$one,$two,$three" --out w.yaml --resume --echoes 10
    contains stderr 'start phloem topology agent there, and try again'
    (umask 077 && echo 'sixteen bytes and some more' >secret)
    starts_agent 4 --listen 127.0.0.1:0 --secret-file secret
    fails 6 'has another secret than the one given here' topology probe --hosts "$one,$address" --out y.yaml
    kill -s TERM "$agent"
    process=$agent
    ends 143
}

# ---- shown: files of every kind ----
shows() {
    printf 'version: 1\nkind: racks\nhosts: 8\nhost: {gbits_per_s: 25}\nrack: {hosts: 4, gbits_per_s: 40, latency_us: 1}\n' >racks.yaml
    succeeds topology show racks.yaml --page racks.html
    contains stdout '8 hosts in 2 groups'
    contains stdout 'group 1: h4 h5 h6 h7'
    contains stdout '|          0 |        1 |     25 |         12 |            40 |'
    contains racks.html '"matrix"'
    fails 2 'would overwrite' topology show racks.yaml --page racks.yaml
}

# ---- racks: hosts 800 Mb/s, uplinks 200 Mb/s ----

# number_of TEXT: gbits_per_s of the line of the topology file.
number_of() {
    grep -F "$1" t.yaml | sed 's/.*gbits_per_s: \([0-9.e-]*\).*/\1/'
}

# is_about NUMBER WANTED: within a quarter. TCP has .956 of a link.
is_about() {
    awk -v a="$1" -v b="$2" 'BEGIN { exit !(a > .75 * b && a < 1.25 * b) }' || complain "$1 instead of about $2"
}

# has_groups RACK...: the file's groups are these racks, numbered by their first hosts.
has_groups() {
    wanted=$(printf '%s\n' "$@" | awk '{ if (!($1 in number)) number[$1] = count++; print number[$1] }' | xargs)
    groups=$(sed -n 's/.*group: \([0-9]*\)}/\1/p' t.yaml | xargs)
    [ "$groups" = "$wanted" ] || complain "groups are $groups instead of $wanted"
}

probes_racks() {
    placement='0 1 1 0 0 1'
    # shellcheck disable=SC2086 # words
    makes_racks 800mbit 200mbit $placement
    (umask 077 && echo 'sixteen bytes and some more' >secret)
    for host in 0 1 2 3 4 5; do
        becomes_host "$host" "$PH_BINARY_DIR/phloem" topology agent --listen "$(host_address "$host"):4712" \
            --secret-file secret >"host$host.out" 2>&1 </dev/null &
        agents="$agents $!" process=$!
        waits_for grep -q '^ready at' "host$host.out"
    done
    hosts=$(host_addresses 0 6 | sed 's/$/:4712/' | paste -sd ,)
    in_host 0 "$PH_BINARY_DIR/phloem" topology probe --hosts "$hosts" --secret-file secret --out t.yaml >stdout 2>stderr ||
        complain 'no probe of the racks'
    # shellcheck disable=SC2086
    has_groups $placement
    is_about "$(number_of '{from: 0, to: 3,')" .765
    is_about "$(number_of '{from: 0, to: 1, gbits_per_s' | head -n 1)" .191
    is_about "$(number_of '{from: 2, to: 4,')" .191
    is_about "$(sed -n '/trunks/,$p' t.yaml | sed -n 's/.*from: 0, to: 1, gbits_per_s: \(.*\)}/\1/p')" .191
    is_about "$(sed -n '/trunks/,$p' t.yaml | sed -n 's/.*from: 1, to: 0, gbits_per_s: \(.*\)}/\1/p')" .191
}

# Ranks of each MPI in place of agents.
probes_ranks() {
    for mpi in openmpi mpich; do
        { [ "$(finds_mpirun $mpi)" != false ] && [ -e "$PH_BINARY_DIR/libphloem_$mpi.so" ]; } || continue
        TMPDIR=$work PHLOEM_MPI=$mpi PHLOEM_PLUGINS=$PH_BINARY_DIR
        export TMPDIR PHLOEM_MPI PHLOEM_PLUGINS
        rm -f t.yaml
        launches_over_hosts $mpi 6 "$PH_BINARY_DIR/phloem" topology probe --out "$work/t.yaml" >stdout 2>stderr </dev/null ||
            complain "no probe of $mpi's ranks"
        contains t.yaml 'name: "host5"'
        # shellcheck disable=SC2086
        has_groups $placement
        launches_over_hosts $mpi 1 "$PH_BINARY_DIR/phloem" topology probe --out "$work/u.yaml" >stdout 2>stderr </dev/null &&
            complain "$mpi: a probe of one host"
        contains stderr 'requires two hosts or more'
    done
}

if [ -z "${PH_TEST_NAMESPACE:-}" ]; then
    loopback
    shows
    status=0
    (
        namespaces=num
        enters_namespaces "$0"
    ) || status=$?
    exit "$status"
fi
namespaces=num
probes_racks
probes_ranks
