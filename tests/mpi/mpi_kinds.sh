#!/bin/sh
# All kinds of shards on so many ranks, of which four and more count as two hosts:
#
#     mpi_kinds.sh openmpi|mpich PROGRAMS RANKS
. "$(dirname "$0")/mpi_support.sh"

ranks_per_host=$3
[ "$3" -lt 4 ] || ranks_per_host=$(($3 / 2))
launch "$3" "$2/rank_kinds" "$work" "$ranks_per_host"
[ "$status" -eq 0 ] || complain "it ended with $status; wanted 0"
grep -qx "$3 ranks of $title [0-9.]*: fine" "$work/stdout" || complain "wanted a world of $3 ranks that is fine"
grep '^[a-z_]* *losses' "$work/stdout"
