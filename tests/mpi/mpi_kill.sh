#!/bin/sh
# One of four ranks is killed: the others are gone soon, and mpirun does not say that all is well.
#
#     mpi_kill.sh openmpi|mpich PROGRAMS
. "$(dirname "$0")/mpi_support.sh"
ranks='0 1 2 3'

# is_alive PROCESS: it exists and has not ended, though it may not have been waited for.
is_alive() {
    state=$(sed 's/.*) //; s/ .*//' "/proc/$1/stat" 2>/dev/null) || return 1
    case $state in '' | Z | X) return 1 ;; esac
}

# shellcheck disable=SC2086 # a list of words
$launcher -n 4 "$2/rank_ends" forever "$work" >"$work/stdout" 2>"$work/stderr" </dev/null &
job=$!
for rank in $ranks; do
    until [ -e "$work/$rank" ]; do
        is_alive "$job" || complain 'the job has ended by itself'
        sleep 0.1
    done
done

kill -KILL "$(cat "$work/2")"
status=0
wait "$job" || status=$?
[ "$status" -ne 0 ] || complain 'mpirun ended with 0'
for rank in $ranks; do
    while is_alive "$(cat "$work/$rank")"; do
        sleep 0.1
    done
done
