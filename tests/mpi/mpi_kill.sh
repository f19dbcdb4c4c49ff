#!/bin/sh
# One of four ranks is killed: the others are gone soon, and mpirun does not say that all is well. Ranks with a communicator
# say who it was, once, where mpirun lets them live for so long: MPICH's does not.
#
#     mpi_kill.sh openmpi|mpich PROGRAMS
. "$(dirname "$0")/mpi_support.sh"
ranks='0 1 2 3'

# kill_one RANK COMMAND...: COMMAND writes the ranks' processes into $work.
kill_one() {
    victim=$1
    shift
    for rank in $ranks; do
        rm -f "$work/$rank"
    done
    # shellcheck disable=SC2086 # a list of words
    $launcher -n 4 "$@" >"$work/stdout" 2>"$work/stderr" </dev/null &
    job=$!
    for rank in $ranks; do
        until [ -e "$work/$rank" ]; do
            is_alive "$job" || complain 'the job has ended by itself'
            sleep 0.1
        done
    done
    kill -KILL "$(cat "$work/$victim")"
    status=0
    wait "$job" || status=$?
    [ "$status" -ne 0 ] || complain 'mpirun ended with 0'
    for rank in $ranks; do
        while is_alive "$(cat "$work/$rank")"; do
            sleep 0.1
        done
    done
}

kill_one 2 "$2/rank_ends" forever "$work"
for victim in 3 0; do
    kill_one "$victim" "$2/rank_collectives" wait "$work"
    [ "$mpi" = openmpi ] || continue
    said=$(grep -c "rank $victim (process $(cat "$work/$victim") on .*) ended unexpectedly" "$work/stderr") || true
    [ "$said" -eq 1 ] || complain "$said ranks have said that rank $victim has ended; wanted one"
done
