#!/bin/sh
# phloem topology order: what it finds, what it writes for launchers, and how it ends where it cannot.
# shellcheck source=tests/system/support.sh
. "$PH_SOURCE_DIR/tests/system/support.sh"

# Two racks that hosts take turns in: 800 Mb/s to a host, 200 Mb/s between the racks.
make_racks() {
    echo 'version: 1'
    echo 'kind: list'
    echo 'hosts: 8'
    echo "ranks_per_host: $1"
    echo 'nodes: [{name: a0}, {name: b0}, {name: a1}, {name: b1}, {name: a2}, {name: b2}, {name: a3}, {name: b3}]'
    echo 'links:'
    echo '  - {from: a, to: b, gbits_per_s: .2, latency_us: 10}'
    for host in 0 2 4 6; do
        echo "  - {from: h$host, to: a, gbits_per_s: .8, latency_us: 10}"
        echo "  - {from: h$((host + 1)), to: b, gbits_per_s: .8, latency_us: 10}"
    done
}
make_racks 1 >racks.yaml
make_racks 2 >pairs.yaml

# ---- what is found: each rack is a row, and host 0 comes first ----
for collective in ring halving hierarchical; do
    succeeds topology order racks.yaml --collective "$collective" --bytes 4194304 --out hosts
    contains stdout "$collective of 4.0 MiB over 8 hosts, predicted"
    contains stdout 'times faster: a0'
    [ "$(cut -c 1 hosts | uniq | tr -d '\n')" = ab ] || [ "$(cut -c 1 hosts | uniq | tr -d '\n')" = aba ] ||
        complain "$collective: the racks are not rows: $(xargs <hosts)"
    [ "$(head -n 1 hosts)" = a0 ] || complain "$collective: host 0 has lost its place"
    [ "$(sort -u hosts | wc -l)" -eq 8 ] || complain "$collective: the order has not all hosts"
done
for collective in doubling exchange; do
    succeeds topology order racks.yaml --collective $collective --bytes 4194304 --out hosts
    contains stdout 'the hosts stay as they are'
    [ "$(xargs <hosts)" = 'a0 b0 a1 b1 a2 b2 a3 b3' ] || complain "$collective: the hosts did not stay as they are"
done

# ---- files for launchers ----
ring="--collective ring --bytes 4194304"
# shellcheck disable=SC2086 # a list of words
{
    succeeds topology order racks.yaml $ring --out hosts
    succeeds topology order racks.yaml $ring --out again --seed 0
    cmp -s hosts again || complain 'the same seed found another order'
    succeeds topology order pairs.yaml $ring --out hosts --hostfile hostfile --rankfile rankfile \
        --node-ranks node-ranks
    sed 's/name: a/name: 10.0.1./g; s/name: b/name: 10.0.2./g' pairs.yaml >addresses.yaml
    succeeds topology order addresses.yaml $ring --machines machines --port 7000
    succeeds topology order racks.yaml $ring --out -
    [ "$(wc -l <stdout)" -eq 8 ] || complain 'standard output has more than the hosts'
}
awk '{ print $1 " slots=2" }' hosts | cmp -s - hostfile || complain 'hostfile differs'
awk '{ for (i = 0; i < 2; i++) print "rank " 2 * (NR - 1) + i "=" $1 " slot=" i }' hosts | cmp -s - rankfile ||
    complain 'rankfile differs'
sed 's/a/10.0.1./; s/b/10.0.2./; s/$/ 7000/' hosts | cmp -s - machines || complain 'machines differ'
awk '{ print $1 " " NR - 1 }' hosts | cmp -s - node-ranks || complain 'node ranks differ'

# ---- the price of a given order ----
# shellcheck disable=SC2086 # a list of words
{
    succeeds topology order racks.yaml $ring --out hosts
    found=$(sed -n 's/^\([0-9.]* ms\) in the order found.*/\1/p' stdout)
    succeeds topology order racks.yaml $ring --price hosts
    contains stdout "$found predicted for ring in the order of 'hosts'"
    { echo '# the first, and a line of nothing'; echo; sed 's/^/  /' hosts; } >commented
    succeeds topology order racks.yaml $ring --price commented
    contains stdout "$found predicted"
    sed '$s/.*/c9/' hosts >unknown
    fails 3 "unknown:8: 'c9' is not a host of the topology file" topology order racks.yaml $ring --price unknown
    sed '$s/.*/a0/' hosts >twice
    fails 3 "twice:8: host 'a0' is there twice" topology order racks.yaml $ring --price twice
    sed '$d' hosts >short
    fails 3 "short: has 7 of the topology's 8 hosts" topology order racks.yaml $ring --price short
    fails 3 'no.such' topology order racks.yaml $ring --price no.such
}

# ---- what it refuses ----
sed 's/name: a0/name: no-such-host.invalid/' pairs.yaml >nameless.yaml
fails 2 "host 'no-such-host.invalid' has no IPv4 address here" topology order nameless.yaml --collective ring --bytes 1 \
    --machines machines
fails 2 'requires --collective NAME and --bytes N' topology order racks.yaml
fails 2 "unknown collective 'rings'; did you mean 'ring'?" topology order racks.yaml --collective rings --bytes 1
fails 2 "--bytes must be a whole number from 1 to" topology order racks.yaml --collective ring --bytes 4MiB
fails 2 "--least-gain must be at least 0 and below 1, not '1'" topology order racks.yaml --collective ring --bytes 1 \
    --least-gain 1
fails 2 "--sum-edges is of --collective ring, not 'tree'" topology order racks.yaml --collective tree --bytes 1 --sum-edges
fails 2 "unknown verb of topology 'oder'" topology oder
fails 2 'would overwrite' topology order racks.yaml --collective ring --bytes 1 --out racks.yaml
fails 2 'groups of one size' topology order racks.yaml --collective hierarchical --bytes 1 --group-size 3
cat >holes.yaml <<'END'
version: 1
kind: measured
hosts: 3
pairs:
  - {from: 0, to: 1, gbits_per_s: 1, latency_us: 9}
  - {from: 1, to: 0, gbits_per_s: 1, latency_us: 9}
END
fails 2 'holes.yaml: pairs: 4 are missing (hosts 0 to 2, 1 to 2, 2 to 0, ...)' \
    topology order holes.yaml --collective ring --bytes 1

echo "$name: passed"
