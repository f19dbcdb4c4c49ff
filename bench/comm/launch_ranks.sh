#!/bin/sh
# Starts the ranks of a benchmark under mpirun; the first rank has the standard input and output:
#
#   launch_ranks.sh host RANKS PROGRAM ARGUMENTS...    on this host
#   launch_ranks.sh link PROGRAM ARGUMENTS...          two ranks, each in a network namespace, with a link of 1 Gb/s
#
# Uses Open MPI, or on one host MPICH with PHLOEM_MPI=mpich. Prints "missing WHY" when the ranks cannot be started here.
# The link is a pair of virtual interfaces, each with a token bucket (tc-tbf) that lets out a gigabit a second. mpirun starts
# the other host's rank by this same script, in place of ssh:
#
#   launch_ranks.sh in PID HOST COMMAND...
set -eu
here=$(dirname "$0")
. "$here/../../tests/support/network_namespaces.sh"

near=10.88.0.1
far_side=10.88.0.2
network=10.88.0.0/24

skips_namespaces() {
    echo "missing $1"
    exit 0
}

# Limits an interface to 1 Gb/s. The bucket holds a whole burst: the system sends up to 64 KiB at once.
limits_link() {
    "$@" tc qdisc add dev "$interface" root tbf rate 1gbit burst 256kb latency 50ms
}

# finds_launcher MPI: finds its mpirun; both packages use that name, with a suffix where both are installed.
finds_launcher() {
    case $1 in
    openmpi) family='Open' ;;
    mpich) family='HYDRA' ;;
    *) skips_namespaces "there is no launcher of '$1'" ;;
    esac
    for launcher in "mpirun.$1" mpirun; do
        command -v "$launcher" >/dev/null || continue
        ! "$launcher" --version 2>&1 | grep -q "$family" || break
        launcher=''
    done
    command -v "$launcher" >/dev/null || skips_namespaces "no mpirun of $1 is installed"
    [ "$1" = openmpi ] || return 0
    launcher="$launcher --oversubscribe --bind-to none"
    [ "$(id -u)" -ne 0 ] || launcher="$launcher --allow-run-as-root"
}

runs_over_link() {
    enters_namespaces "$0" link "$@"
    command -v tc >/dev/null || skips_namespaces "there is no program 'tc'"
    makes_far_namespace
    trap 'kill "$far" 2>/dev/null || true' EXIT
    hostname near # /proc/sys belongs to the root of the machine
    in_far hostname far
    joins_namespaces 0 "$near/24" "$far_side/24"
    interface=near0
    limits_link env || skips_namespaces 'no token bucket can be had here (tc-tbf)'
    interface=far0
    limits_link in_far
    # shellcheck disable=SC2086 # a list of words
    $launcher -n 2 --host "$near,$far_side" --mca plm_rsh_agent "sh $0 in $far" --mca oob_tcp_if_include "$network" \
        --mca pml ob1 --mca btl self,tcp --mca btl_tcp_if_include "$network" "$@"
}

where=$1
shift
case $where in
host)
    finds_launcher "${PHLOEM_MPI:-openmpi}"
    # shellcheck disable=SC2086
    exec $launcher -n "$@"
    ;;
link)
    finds_launcher openmpi
    runs_over_link "$@"
    ;;
in)
    far=$1
    shift 2
    becomes_far sh -c "$*"
    ;;
esac
