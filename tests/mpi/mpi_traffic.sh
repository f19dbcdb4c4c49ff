#!/bin/sh
# What pmpi_traffic.c counts of three ranks is what they have sent, to the byte.
#
#     mpi_traffic.sh openmpi|mpich PROGRAMS
. "$(dirname "$0")/mpi_support.sh"

PH_TEST_TRAFFIC=$work/counted
export PH_TEST_TRAFFIC
launch 3 env LD_PRELOAD="$2/libpmpi_traffic_$mpi.so" "$2/rank_traffic" "$work"
[ "$status" -eq 0 ] || complain "it ended with $status; wanted 0"
for rank in 0 1 2; do
    [ -s "$work/counted.$rank" ] || complain "rank $rank was not counted"
    diff "$work/wanted.$rank" "$work/counted.$rank" >&2 || complain "rank $rank has sent something else"
done
