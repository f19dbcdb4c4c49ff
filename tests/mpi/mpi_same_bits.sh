#!/bin/sh
# The same command on ranks ends in the same bits, whatever else the machine does: four ranks, a plan that they make by
# themselves, ten times beside a process that is busy, and once more with twice as many threads.
#
#     mpi_same_bits.sh openmpi|mpich
. "$(dirname "$0")/mpi_support.sh"
tests=$(cd "$(dirname "$0")/.." && pwd)
cd "$work" || exit 1

# Figures of the machine decide which of the small tables are worth a copy on every rank.
cat >job.yaml <<'END'
seed: 5
threads: 1
data: {train: data/train.tsv, valid: data/valid.tsv, format: criteo}
model: {kind: dlrm, embedding_dim: 8, bottom_units: [8], top_units: [8]}
optimizer: {kind: adam, learning_rate: 0.01}
train: {epochs: 1, batch_size: 64, max_steps: 3, report_seconds: 1000, report: false}
synth: {train_rows: 600, valid_rows: 100, test_rows: 100, format: criteo,
  table_rows: [2, 3, 4, 6, 8, 12, 16, 20, 24, 28, 32, 40, 48, 56, 64, 80, 96, 112, 128, 160, 192, 224, 256, 320, 384, 512]}
END
"$PH_BINARY_DIR/phloem" synth job.yaml --out data >stdout 2>stderr || complain 'no data'

sh "$tests/support/busy_loop.sh" $$ &
busy=$!
trap 'kill "$busy"; rm -rf "$work"' EXIT

# trains FOLDER ARGUMENTS...: adds the sums of what has been learnt, and of its plan, to ./sums.
trains() {
    folder=$1
    shift
    launch 4 "$PH_BINARY_DIR/phloem" train job.yaml --out "$folder" --quiet "$@"
    [ "$status" -eq 0 ] || complain "a training ended with $status; wanted 0"
    digest=$(value "$folder/summary.json" checkpoint_sha256)
    [ -n "$digest" ] || complain 'there is no sum of the parameters'
    echo "parameters $digest, plan $(sha256sum <"$folder/plan.yaml")" >>sums
}

for run in 1 2 3 4 5 6 7 8 9 10; do
    trains "run$run"
done
trains threads --set threads=2
sort sums | uniq -c
[ "$(sort -u sums | wc -l)" -eq 1 ] || complain 'the same command has ended in several sums'
