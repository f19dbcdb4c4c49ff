#!/bin/sh
# Prints what ranks send each other in the steps of a small training, counted through PMPI under each MPI's mpirun, beside what
# theory (src/plan/plan_traffic.h) says, for each kind of plan and format on the wire. Ends with 1 where they differ between
# any two ranks in any class of messages. Deterministic: no figure depends on the machine.
#
#     tools/traffic_figures.sh [BUILD]      of a tree whose tests are built: build/release
set -eu

here=$(dirname "$0")/..
build=$(cd "${1:-$here/build/release}" && pwd)
result=0
for mpi in openmpi mpich; do
    for ranks in 2 4; do
        printf '\n%s, %s ranks on 2 hosts\n\n' "$mpi" "$ranks"
        PH_BINARY_DIR=$build OMP_WAIT_POLICY=passive \
            sh "$here/tests/mpi/mpi_steps.sh" "$mpi" "$build/tests" "$ranks" $((ranks / 2)) || {
            [ $? -eq 77 ] || result=1
        }
    done
done
exit $result
