# Network namespaces for a test over several interfaces; sourced. One is the test's own. The other, "far", is reached only by
# pairs of virtual interfaces, and ends with the test. Neither has a route to other networks.
# shellcheck shell=sh

# enters_namespaces SCRIPT ARGUMENTS...: runs the script anew in namespaces of its own for networks and host name, or skips
# the test. A test that sets namespaces=num has a mount namespace of its own as well.
enters_namespaces() {
    [ -z "${PH_TEST_NAMESPACE:-}" ] || return 0
    for tool in ip ss unshare nsenter; do
        command -v "$tool" >/dev/null || skips_namespaces "there is no program '$tool'"
    done
    for options in "-${namespaces:=nu}" "-r$namespaces"; do
        unshare "$options" ip link add near0 type veth peer name far0 2>/dev/null || continue
        PH_TEST_NAMESPACE=1 exec unshare "$options" sh "$@"
    done
    skips_namespaces 'no namespace with virtual interfaces can be made here'
}

skips_namespaces() {
    echo "skipped: $1"
    exit 77
}

# makes_far_namespace: sets $far to the process that holds the namespace, which the test kills.
makes_far_namespace() {
    ip link set lo up
    unshare -nu sleep 3600 &
    far=$!
    while [ "$(readlink /proc/$far/ns/net)" = "$(readlink /proc/self/ns/net)" ]; do
        kill -s 0 "$far" || return 1
    done
    in_far ip link set lo up
}

# in_far COMMAND...
in_far() {
    nsenter -t "$far" -n -u "$@"
}

# becomes_far COMMAND...: turns a background process into the command, in the far namespace.
becomes_far() {
    exec nsenter -t "$far" -n -u "$@"
}

# joins_namespaces N [NEAR_ADDRESS FAR_ADDRESS]...: makes nearN and farN with these addresses in CIDR notation.
joins_namespaces() {
    number=$1
    shift
    ip link add "near$number" type veth peer name "far$number" netns "$far"
    while [ $# -gt 0 ]; do
        # Without nodad, duplicate address detection keeps a new IPv6 address unusable for a second.
        case $1 in *:*) nodad=nodad ;; *) nodad= ;; esac
        ip address add "$1" dev "near$number" ${nodad:+"$nodad"}
        in_far ip address add "$2" dev "far$number" ${nodad:+"$nodad"}
        shift 2
    done
    ip link set "near$number" up
    in_far ip link set "far$number" up
    # The system takes some time to report them as up.
    until ip link show "near$number" | grep -q 'state UP' && in_far ip link show "far$number" | grep -q 'state UP'; do
        kill -s 0 "$far" || return 1
    done
}
