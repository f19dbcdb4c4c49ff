#!/bin/sh
# A job of ranks under mpirun that says it is fine:
#
#     mpi_job.sh openmpi|mpich RANKS STATUS COMMAND...
#
# It ends with STATUS and has met in one world of so many ranks, none of which tries to read what it may not.
. "$(dirname "$0")/mpi_support.sh"
ranks=$2 wanted=$3
shift 3

launch "$ranks" "$@"
[ "$status" -ne 77 ] || skip "$(cat "$work/stderr")"
[ "$status" -eq "$wanted" ] || complain "it ended with $status; wanted $wanted"
grep -qx "$ranks ranks of $title [0-9.]*: fine" "$work/stdout" || complain "wanted a world of $ranks ranks that is fine"
! grep -q 'Read -1' "$work/stderr" || complain 'Open MPI has found out late that reading is forbidden'
