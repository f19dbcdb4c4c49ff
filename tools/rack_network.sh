#!/bin/sh
# Runs an MPI program on a cluster of network namespaces, hosts of RACK_HOST_RANKS ranks each in two racks. Ends with 77, and
# says why, where it cannot.
#
#     [RACK_HOSTS=8] [RACK_HOST_RANKS=1] [RACK_HOST_MBIT=800] [RACK_UPLINK_MBIT=200] tools/rack_network.sh PROGRAM ARGUMENTS...
#
# The first half of the hosts is one rack; two hosts share one. Links are those of tests/support/shaped_racks.sh, in megabits a
# second each way. Ranks of a host share memory.
set -eu
here=$(dirname "$0")
namespaces=num
. "$here/../tests/support/network_namespaces.sh"
. "$here/../tests/support/shaped_racks.sh"
enters_namespaces "$0" "$@"
command -v mpirun.openmpi >/dev/null || skips_namespaces "there is no program 'mpirun.openmpi'"
racks=$(mktemp -d)
trap ends_racks EXIT
count=${RACK_HOSTS:-8} rack=$(((${RACK_HOSTS:-8} + 1) / 2))
[ "$count" -gt 2 ] || rack=2
# shellcheck disable=SC2046 # the rack of each host
makes_racks "${RACK_HOST_MBIT:-800}mbit" "${RACK_UPLINK_MBIT:-200}mbit" \
    $(seq 0 $((count - 1)) | awk -v rack="$rack" '{ print int($1 / rack) }')
launched_ranks=${RACK_HOST_RANKS:-1}
launches_over_hosts openmpi "$count" "$@"
