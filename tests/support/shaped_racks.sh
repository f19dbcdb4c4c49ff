# A cluster for a test: hosts are network namespaces in racks, their links and the racks' uplinks are limited; sourced behind
# network_namespaces.sh. Traffic stays in the namespaces, which end with the test.
#
#     namespaces=num
#     enters_namespaces "$0" "$@"
#     racks=$(mktemp -d)
#     trap ends_racks EXIT
#     makes_racks 800mbit 200mbit $(interleaved_placement 2 4)
#     in_host 3 ping -c 1 "$(host_address 5)"
#     launches_over_hosts openmpi 8 hostname
#
# A rack is a bridge. Two racks are joined by one pair of interfaces, more by a bridge to which each has a pair. All interfaces
# send through token buckets (tc-tbf) whose queues hold 50 ms. TCP is cubic or, where namespaces may not use that, Reno. Host I
# of rack R is "hostI" at 10.9.R.I+1; where the mount namespace is the test's own, /etc/hosts knows the names.
# shellcheck shell=sh disable=SC2086
# SC2086: lists of words

racks_network=10.9.0.0/16

# ---- placements: the rack of each host ----

# rows_placement RACKS HOSTS_A_RACK: 0 0 1 1
rows_placement() {
    for rack in $(seq 0 $(($1 - 1))); do
        for _ in $(seq "$2"); do echo "$rack"; done
    done | xargs
}

# interleaved_placement RACKS HOSTS_A_RACK: 0 1 0 1
interleaved_placement() {
    for _ in $(seq "$2"); do seq 0 $(($1 - 1)); done | xargs
}

# random_placement RACKS HOSTS_A_RACK SEED: a shuffle
random_placement() {
    rows_placement "$1" "$2" | tr ' ' '\n' | awk -v seed="$3" '
        BEGIN { srand(seed) }
        { racks[NR] = $0 }
        END {
            for (i = NR; i > 1; i--) { j = 1 + int(i * rand()); t = racks[i]; racks[i] = racks[j]; racks[j] = t }
            for (i = 1; i <= NR; i++) print racks[i]
        }' | xargs
}

# ---- hosts ----

# in_host I COMMAND...
in_host() {
    pid=$(cat "$racks/host$1")
    shift
    nsenter -t "$pid" -n -u "$@"
}

# becomes_host I COMMAND...: turns a background process into the command, on that host.
becomes_host() {
    pid=$(cat "$racks/host$1")
    shift
    exec nsenter -t "$pid" -n -u "$@"
}

host_address() {
    cat "$racks/address$1"
}

# host_addresses FIRST COUNT: one a line
host_addresses() {
    for host in $(seq "$1" $(($1 + $2 - 1))); do host_address "$host"; done
}

# limits_rate RATE BURST INTERFACE [COMMAND...]: what the interface sends. A burst is more than the system sends at once.
limits_rate() {
    rate=$1 burst=$2 interface=$3
    shift 3
    "$@" tc qdisc replace dev "$interface" root tbf rate "$rate" burst "$burst" latency 50ms ||
        skips_namespaces 'no token bucket can be had here (tc-tbf)'
}

adds_bridge() {
    ip link add "$1" type bridge || skips_namespaces 'no bridge can be made here'
    ip link set "$1" up
}

# joins_bridges RATE BRIDGE INTERFACE BRIDGE INTERFACE
joins_bridges() {
    ip link add "$3" type veth peer name "$5"
    ip link set "$3" master "$2" up
    ip link set "$5" master "$4" up
    limits_rate "$1" 64kb "$3"
    limits_rate "$1" 64kb "$5"
}

# adds_host I RACK RATE
adds_host() {
    unshare -nu sleep 7200 &
    echo $! >"$racks/host$1"
    while [ "$(readlink /proc/$!/ns/net)" = "$(readlink /proc/self/ns/net)" ]; do
        kill -s 0 $! || exit 1
    done
    echo "10.9.$2.$(($1 + 1))" >"$racks/address$1"
    ip link add "port$1" type veth peer name wire netns $!
    ip link set "port$1" master "rack$2" up
    in_host "$1" hostname "host$1"
    in_host "$1" ip link set lo up
    in_host "$1" ip address add "$(host_address "$1")/16" dev wire
    in_host "$1" ip link set wire up
    # A namespace may use cubic only where the machine allows it to all.
    in_host "$1" sh -c 'for tcp in cubic reno; do
        echo $tcp >/proc/sys/net/ipv4/tcp_congestion_control && break
    done' 2>/dev/null
    limits_rate "$3" 128kb "port$1"
    limits_rate "$3" 128kb wire in_host "$1"
}

# makes_racks HOST_RATE UPLINK_RATE RACK...: the rack of each host in turn, from 0. Files that it keeps are in $racks.
makes_racks() {
    command -v tc >/dev/null || skips_namespaces "there is no program 'tc'"
    host_rate=$1 uplink_rate=$2
    shift 2
    num_racks=$(($(printf '%s\n' "$@" | sort -n | tail -n 1) + 1))
    num_hosts=$#
    for rack in $(seq 0 $((num_racks - 1))); do adds_bridge "rack$rack"; done
    if [ "$num_racks" -eq 2 ]; then
        joins_bridges "$uplink_rate" rack0 up0 rack1 up1
    elif [ "$num_racks" -gt 2 ]; then
        adds_bridge spine
        for rack in $(seq 0 $((num_racks - 1))); do
            joins_bridges "$uplink_rate" "rack$rack" "up$rack" spine "down$rack"
        done
    fi
    number=0
    echo '127.0.0.1 localhost' >"$racks/hosts"
    for rack in "$@"; do
        adds_host "$number" "$rack" "$host_rate"
        echo "$(host_address "$number") host$number" >>"$racks/hosts"
        number=$((number + 1))
    done
    [ "${namespaces:-nu}" != num ] || mount --bind "$racks/hosts" /etc/hosts
}

# moves_hosts RACK...: gives the same hosts another placement; their addresses stay.
moves_hosts() {
    number=0
    for rack in "$@"; do
        ip link set "port$number" master "rack$rack"
        number=$((number + 1))
    done
    # Bridges still know where the hosts were.
    for rack in $(seq 0 $((num_racks - 1))); do ip link set "rack$rack" type bridge fdb_flush; done
    [ "$num_racks" -le 2 ] || ip link set spine type bridge fdb_flush
}

ends_racks() {
    for file in "$racks"/host[0-9]*; do
        [ ! -f "$file" ] || kill "$(cat "$file")" 2>/dev/null || true
    done
    rm -rf "$racks"
}

# ---- mpirun ----

# launches_over_hosts openmpi|mpich N COMMAND...: ${launched_ranks:-1} ranks on each of the first N hosts, or of
# ${launched_hosts:-} ("0 4 1 5"). mpirun runs on the first of them, and starts the others by a script in place of ssh, which
# enters their namespaces.
launches_over_hosts() {
    mpi=$1 count=$2 ranks=${launched_ranks:-1}
    shift 2
    cat >"$racks/rsh" <<'END'
#!/bin/sh
# rsh [-OPTION]... ADDRESS COMMAND...
while case $1 in -*) ;; *) false ;; esac; do shift; done
for file in "$(dirname "$0")"/address*; do
    [ "$(cat "$file")" != "$1" ] || number=${file##*address}
done
shift
exec nsenter -t "$(cat "$(dirname "$0")/host$number")" -n -u sh -c "$*"
END
    chmod +x "$racks/rsh"
    launched=$(for host in ${launched_hosts:-$(seq 0 $((count - 1)))}; do host_address "$host"; done | head -n "$count")
    first=${launched_hosts:-0}
    first=${first%% *}
    case $mpi in
    openmpi)
        in_host "$first" "$(finds_mpirun openmpi)" $([ "$(id -u)" -ne 0 ] || echo --allow-run-as-root) -n "$((count * ranks))" \
            --bind-to none --host "$(echo "$launched" | sed "s/$/:$ranks/" | paste -sd ,)" \
            --mca plm_rsh_agent "$racks/rsh" --mca oob_tcp_if_include "$racks_network" \
            --mca pml ob1 --mca btl self,vader,tcp --mca btl_tcp_if_include "$racks_network" \
            --mca mpi_yield_when_idle 1 ${launch_options:-} "$@"
        ;;
    mpich)
        in_host "$first" "$(finds_mpirun mpich)" -n "$((count * ranks))" \
            -hosts "$(echo "$launched" | sed "s/$/:$ranks/" | paste -sd ,)" \
            -launcher ssh -launcher-exec "$racks/rsh" -iface wire ${launch_options:-} "$@"
        ;;
    esac
}

# finds_mpirun openmpi|mpich: both packages use that name, with a suffix where both are installed.
finds_mpirun() {
    for program in "mpirun.$1" mpirun; do
        ! "$program" --version 2>&1 | grep -q "$(echo "$1" | sed 's/openmpi/Open MPI/; s/mpich/HYDRA/')" || break
        program=
    done
    echo "${program:-false}"
}
