#!/bin/sh
# MPI itself does not come to its end: the training does, written whole, with one line and the exit code of a rank that is gone.
#
#     mpi_end.sh openmpi|mpich PROGRAMS
. "$(dirname "$0")/mpi_support.sh"

make_job
train 2 whole
[ "$status" -eq 0 ] || complain "the training ended with $status; wanted 0"
losses whole >"$work/whole.losses"

launch 2 env LD_PRELOAD="$2/libendless_finalize.so" "$PH_BINARY_DIR/phloem" train "$work/job.yaml" --out "$work/endless" \
    --quiet --set parallel.timeout_seconds=6
[ "$status" -eq 6 ] || complain "a training whose MPI does not end ended with $status; wanted 6"
[ "$(grep -c 'MPI did not shut down within parallel.timeout_seconds' "$work/stderr")" -eq 1 ] || complain 'wanted one line'
losses endless | cmp -s - "$work/whole.losses" || complain 'its losses are others'
for file in "$work"/whole/model.safetensors/*; do
    cmp -s "$file" "$work/endless/model.safetensors/${file##*/}" || complain "${file##*/} is another"
done
[ -s "$work/endless/summary.json" ] || complain 'its summary is missing'
