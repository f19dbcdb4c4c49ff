#!/bin/sh
# What eight ranks have saved under one plan, three take up under another: every byte of it, and as phloem train --resume, whose
# losses are then those of one rank.
#
#     mpi_moves.sh openmpi|mpich PROGRAMS
. "$(dirname "$0")/mpi_support.sh"

mkdir "$work/saved"
launch 8 "$2/rank_moves" save "$work/saved" 4
[ "$status" -eq 0 ] || complain "saving ended with $status; wanted 0"
launch 3 "$2/rank_moves" load "$work/saved" 1
[ "$status" -eq 0 ] || complain "loading ended with $status; wanted 0"
grep 'are the same in 8 files and 3' "$work/stdout"

# A bias before batch norm has no gradient but errors of rounding, of which Adam makes whole steps, so two worlds do not share the AUC of
# a validation; the plateau schedule would judge by it.
make_job
sed -i 's/schedule: plateau/schedule: cosine, schedule_steps: 40/; s/learning_rate: 0.01/learning_rate: 0.003/' "$work/job.yaml"
cat >"$work/eight.yaml" <<'END'
version: 1
world_size: 8
tables:
  "*.C1": {kind: row_wise}
  "*.C2*": {kind: column_wise}
default: {kind: table_wise}
END
cat >"$work/three.yaml" <<'END'
version: 1
world_size: 3
tables:
  "*.C1*": {kind: column_wise}
  "*.C3": {kind: data_parallel}
default: {kind: row_wise}
END
train 8 moved --set "parallel.plan=$work/eight.yaml" --set train.max_steps=9
[ "$status" -eq 0 ] || complain "training on 8 ranks ended with $status; wanted 0"
train 3 moved --resume --set "parallel.plan=$work/three.yaml"
[ "$status" -eq 0 ] || complain "going on on 3 ranks ended with $status; wanted 0"
grep -qx 'resumed at step 9' "$work/stdout" || complain 'wanted a training that goes on behind step 9'
train 1 alone
[ "$status" -eq 0 ] || complain "training on one rank ended with $status; wanted 0"
losses moved >"$work/moved.txt"
losses alone >"$work/alone.txt"
[ "$(wc -l <"$work/moved.txt")" -eq 40 ] || complain 'wanted the losses of 40 steps'
learned mpi.moves.losses "$(paste "$work/moved.txt" "$work/alone.txt" | awk '
    { distance = $1 > $2 ? $1 / $2 - 1 : $2 / $1 - 1; if (distance > most) most = distance }
    END { printf "%.3e", most }')" '<=' 1e-5
