#!/bin/sh
# A rank dies when all have come to leave, under a launcher that leaves the others alone, as srun does where nobody tells it
# otherwise: these end by themselves, as after any other death, and say once who it was.
#
#     mpi_leave.sh openmpi|mpich PROGRAMS
. "$(dirname "$0")/mpi_support.sh"

case $mpi in
openmpi) launcher="$launcher --enable-recovery" ;;
mpich) launcher="$launcher -disable-auto-cleanup" ;;
esac

# MPICH's mpirun tells those that it leaves alone of a death by SIGUSR1, which would end them.
cat >"$work/note_code" <<'END'
trap '' USR1
rank=${OMPI_COMM_WORLD_RANK:-$PMI_RANK} work=$1
shift
code=0
"$@" || code=$?
echo "$code" >"$work/code.$rank"
END

for victim in 3 0; do
    rm -f "$work"/code.*
    launch 4 sh "$work/note_code" "$work" "$2/rank_collectives" leave "$victim"
    for rank in 0 1 2 3; do
        wanted=6
        [ "$rank" -ne "$victim" ] || wanted=137
        code=$(cat "$work/code.$rank") || complain "rank $rank was ended with its launcher"
        [ "$code" -eq "$wanted" ] || complain "rank $rank ended with $code; wanted $wanted"
    done
    said=$(grep -c "^rank_collectives: rank $victim (process .*) ended unexpectedly" "$work/stderr") || true
    [ "$said" -eq 1 ] || complain "$said ranks have said that rank $victim has ended; wanted one"
done
