#!/bin/sh
# Runs an MPI program on a cluster of network namespaces, hosts of RACK_HOST_RANKS ranks each in two racks. Ends with 77, and
# says why, where it cannot.
#
#     [RACK_HOSTS=8] [RACK_HOST_RANKS=1] [RACK_HOST_MBIT=800] [RACK_UPLINK_MBIT=200] tools/rack_network.sh PROGRAM ARGUMENTS...
#
# A rack is a bridge for half of RACK_HOSTS, 2 to 8. Each host is joined to it at RACK_HOST_MBIT megabits a second; two hosts
# share one rack, larger racks are joined to each other at RACK_UPLINK_MBIT. All are limited each way by token buckets (tc-tbf),
# whose queues hold 50 ms. Ranks of a host share memory. TCP is cubic or, where namespaces may not use that, Reno. Hosts are
# 10.88.0.1 to 10.88.0.8; mpirun, Open MPI's, runs on the first, and starts the others by this same script, in place of ssh:
#
#     rack_network.sh --on FOLDER HOST COMMAND...        FOLDER/HOST: a process in the namespaces of that host
set -eu
here=$(dirname "$0")
. "$here/../tests/support/network_namespaces.sh"

count=${RACK_HOSTS:-8}
hosts=$(seq 1 "$count")
ranks=${RACK_HOST_RANKS:-1}
host_rate=${RACK_HOST_MBIT:-800}mbit
uplink_rate=${RACK_UPLINK_MBIT:-200}mbit
rack=$(((count + 1) / 2))
[ "$count" -gt 2 ] || rack=2
network=10.88.0.0/24

# on HOST COMMAND...
on() {
    pid=$(cat "$folder/10.88.0.$1")
    shift
    nsenter -t "$pid" -n -u "$@"
}

# limits RATE BURST INTERFACE [COMMAND...]: what the interface sends. A burst is more than the system sends at once.
limits() {
    rate=$1 burst=$2 interface=$3
    shift 3
    "$@" tc qdisc add dev "$interface" root tbf rate "$rate" burst "$burst" latency 50ms ||
        skips_namespaces 'no token bucket can be had here (tc-tbf)'
}

# adds_switch NAME
adds_switch() {
    ip link add "$1" type bridge || skips_namespaces 'no bridge can be made here'
    ip link set "$1" up
}

# adds_host HOST RACK
adds_host() {
    unshare -nu sleep 3600 &
    echo $! >"$folder/10.88.0.$1"
    while [ "$(readlink /proc/$!/ns/net)" = "$(readlink /proc/self/ns/net)" ]; do
        kill -s 0 $! || exit 1
    done
    ip link add "port$1" type veth peer name wire netns $!
    ip link set "port$1" master "$2" up
    on "$1" hostname "host$1"
    on "$1" ip link set lo up
    on "$1" ip address add "10.88.0.$1/24" dev wire
    on "$1" ip link set wire up
    # A namespace may use cubic only where the machine allows it to all.
    on "$1" sh -c 'for tcp in cubic reno; do echo $tcp >/proc/sys/net/ipv4/tcp_congestion_control && break; done' 2>/dev/null
    limits "$host_rate" 128kb "port$1"
    limits "$host_rate" 128kb wire on "$1"
}

builds() {
    adds_switch rack0
    adds_switch rack1
    ip link add up0 type veth peer name up1
    ip link set up0 master rack0 up
    ip link set up1 master rack1 up
    limits "$uplink_rate" 64kb up0
    limits "$uplink_rate" 64kb up1
    for host in $hosts; do
        adds_host "$host" "rack$(((host - 1) / rack))"
    done
}

ends() {
    for host in $hosts; do
        [ ! -f "$folder/10.88.0.$host" ] || kill "$(cat "$folder/10.88.0.$host")" 2>/dev/null || true
    done
    rm -rf "$folder"
}

if [ "$1" = --on ]; then
    folder=$2 host=${3#10.88.0.}
    shift 3
    on "$host" sh -c "$*"
    exit
fi
for tool in tc mpirun.openmpi; do
    command -v "$tool" >/dev/null || skips_namespaces "there is no program '$tool'"
done
enters_namespaces "$0" "$@"
folder=$(mktemp -d)
trap ends EXIT
builds
as_root=''
[ "$(id -u)" -ne 0 ] || as_root=--allow-run-as-root
# shellcheck disable=SC2086 # none, or a word
on 1 mpirun.openmpi $as_root -n "$((count * ranks))" --bind-to none \
    --host "$(echo $hosts | sed -e "s/\([0-9]\)/10.88.0.\1:$ranks/g" -e 's/ /,/g')" \
    --mca plm_rsh_agent "sh $here/rack_network.sh --on $folder" --mca oob_tcp_if_include "$network" \
    --mca pml ob1 --mca btl self,vader,tcp --mca btl_tcp_if_include "$network" --mca mpi_yield_when_idle 1 "$@"
