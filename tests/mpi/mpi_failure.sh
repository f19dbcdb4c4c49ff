#!/bin/sh
# Ranks that have all failed end one after the other, each by itself: mpirun's status is theirs, and MPICH's has nothing to
# say about it. A failure of one is told by that one, and is the end of all. And ranks that are started by the other MPI's
# mpirun do not take themselves for so many worlds of one.
#
#     mpi_failure.sh openmpi|mpich PROGRAMS
. "$(dirname "$0")/mpi_support.sh"

launch 4 "$2/rank_ends" fails 6
[ "$status" -eq 6 ] || complain "mpirun ended with $status; wanted 6"
[ "$mpi" = openmpi ] || [ ! -s "$work/stdout" ] || complain 'mpirun speaks of an end that was in order'

launch 4 "$2/rank_collectives" fail
[ "$status" -eq 3 ] || complain "after the failure of a rank mpirun ended with $status; wanted 3"
said=$(grep -c 'row 7 is no row' "$work/stderr") || true
[ "$said" -eq 1 ] || complain "$said ranks have told of it; wanted one"

other=mpich
[ "$mpi" = openmpi ] || other=openmpi
[ -e "$PH_BINARY_DIR/libphloem_$other.so" ] || skip "there is no plugin for $other"
# Each is a world of one, for which Open MPI makes a folder: two of them at a time get into each other's way in one place.
PHLOEM_MPI=$other launch 2 sh -c 'TMPDIR=$(mktemp -d) exec "$1/rank_messages"' sh "$2"
[ "$status" -eq 2 ] || complain "ranks of another MPI ended with $status; wanted 2"
grep -q 'SIZE=2 ranks were started, but .* counts 1: start them with its own mpirun' "$work/stderr" ||
    complain 'wanted a line about another MPI'
