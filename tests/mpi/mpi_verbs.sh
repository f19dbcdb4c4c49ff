#!/bin/sh
# What three ranks have trained is a folder of files in the place of one, and every verb that reads a model reads it, by
# itself; verbs that are for one process say so when a launcher starts several.
#
#     mpi_verbs.sh openmpi|mpich
. "$(dirname "$0")/mpi_support.sh"
cd "$work" || exit 1

# phloem ARGUMENTS...: alone; leaves status, and what was printed as launch does.
phloem() {
    status=0
    "$PH_BINARY_DIR/phloem" "$@" >stdout 2>stderr </dev/null || status=$?
}

succeeds() {
    phloem "$@"
    [ "$status" -eq 0 ] || complain "phloem $* ended with $status; wanted 0"
}

# fails STATUS TEXT ARGUMENTS...: with one line that has the text.
fails() {
    wanted=$1 text=$2
    shift 2
    phloem "$@"
    [ "$status" -eq "$wanted" ] || complain "phloem $* ended with $status; wanted $wanted"
    grep -qF -- "$text" stderr || complain "phloem $*: nothing is said of $text"
    [ "$(wc -l <stderr)" -eq 1 ] || complain "phloem $*: wanted one line on stderr"
}

cat >job.yaml <<'END'
seed: 1
threads: 1
data: {train: data/train.tsv, valid: data/valid.tsv, test: data/test.tsv, format: criteo}
model: {kind: deepfm, embedding_dim: 8, hidden_units: [8]}
train: {epochs: 1, batch_size: 250}
parallel: {plan: plan.yaml}
synth: {train_rows: 2000, valid_rows: 300, test_rows: 300, table_rows: 50, format: criteo}
END
cat >plan.yaml <<'END'
version: 1
world_size: 3
tables:
  embedding.C1: {kind: column_wise, ranks: [0, 2]}
  embedding.C2: {kind: data_parallel}
default: {kind: row_wise}
END
succeeds synth job.yaml --out data
launch 3 "$PH_BINARY_DIR/phloem" train job.yaml --out run --quiet
[ "$status" -eq 0 ] || complain "training ended with $status; wanted 0"

succeeds inspect run/model.safetensors/
for text in 'model: deepfm' 'part-00003-of-00003.safetensors' 'embedding.C1  *F32  (5[01],8)' \
    'seals: valid, of the index and of 3 files'; do
    grep -q "$text" stdout || complain "inspect does not show $text"
done
for checkpoint in run/checkpoints/step-*.safetensors; do
    succeeds inspect "$checkpoint"
    grep -q '^slot\.' stdout || complain "inspect does not show what an optimizer keeps"
done

succeeds eval run
mv stdout eval.json
for key in auc logloss calibration; do
    grep "\"$key\"" run/summary.json | tail -n 1 | tr -d ' ,' >trained
    grep "\"$key\"" eval.json | tr -d ' ,' | cmp -s - trained || complain "eval and train disagree on $key"
done
succeeds predict run data/test.tsv --out whole.csv
succeeds export run --onnx whole.onnx
fails 2 'part-00001-of-00003.safetensors: choose another name' predict run data/test.tsv \
    --out run/model.safetensors/part-00001-of-00003.safetensors

# The weights say themselves what they are.
cp -R run bare
rm bare/config.yaml
succeeds predict bare data/test.tsv --out bare.csv
cmp -s whole.csv bare.csv || complain 'without config.yaml the predictions are others'
succeeds export bare --onnx bare.onnx
cmp -s whole.onnx bare.onnx || complain 'without config.yaml the export is another'

# Damaged and missing files are named, by whatever reads them.
part=model.safetensors/part-00002-of-00003.safetensors
for name in cut flipped missing foreign; do
    cp -R run "$name"
done
truncate -s -1 "cut/$part"
size=$(wc -c <"flipped/$part")
printf '\177' | dd of="flipped/$part" bs=1 seek=$((size - 1)) conv=notrunc status=none
rm "missing/$part"
cp run/model.safetensors/part-00001-of-00003.safetensors "foreign/$part"
for name in cut flipped missing foreign; do
    for verb in 'inspect %/model.safetensors' 'eval %' 'predict % data/test.tsv --out x.csv' 'export % --onnx x.onnx'; do
        # shellcheck disable=SC2046 # a list of words
        fails 4 "$name/$part" $(echo "$verb" | sed "s/%/$name/")
    done
done
rm run/model.safetensors/*.json
fails 4 'model.safetensors.index.json is missing' inspect run/model.safetensors
fails 4 'model.safetensors.index.json is missing' eval run

# Several processes that would all do the same.
for verb in 'eval bare' 'compare job.yaml --out x' 'tune job.yaml --out x'; do
    # shellcheck disable=SC2086 # a list of words
    launch 3 "$PH_BINARY_DIR/phloem" $verb
    [ "$status" -eq 2 ] || complain "phloem $verb of three processes ended with $status; wanted 2"
    [ "$(grep -c 'phloem: error: ' stderr)" -eq 1 ] || complain "phloem $verb: wanted one line of all processes"
    grep -q 'runs as one process, but a launcher started 3' stderr || complain "phloem $verb: no reason"
done

# Verbs that are mixed: each rank but 0 runs the second one, which may be for one process, or have a mistake of its own.
cat >by_rank <<END
rank=\${OMPI_COMM_WORLD_RANK:-\$PMI_RANK}
[ "\$rank" -ne 0 ] || exec "$PH_BINARY_DIR/phloem" \$1
exec "$PH_BINARY_DIR/phloem" \$2
END
mixed() {
    launch 3 sh by_rank "$1" "$2"
    [ "$status" -eq 2 ] || complain "phloem $1 beside phloem $2 ended with $status; wanted 2"
    grep -qF "rank 1 runs 'phloem ${2%% *}', but rank 0 runs 'phloem ${1%% *}': start one command with one mpirun" stderr ||
        complain "phloem $1 beside phloem $2: it is not said which rank runs what"
    [ "$(grep -c 'phloem: error: ' stderr)" -eq 1 ] || complain "phloem $1 beside phloem $2: wanted one line of all ranks"
}
mixed 'train job.yaml --out x' 'eval bare'
mixed 'eval bare' 'train job.yaml --out x'
mixed 'predict bare data/test.tsv' 'export bare'
mixed 'plan job.yaml --measure' 'train job.yaml --out x --set train.epochs=no'

PHLOEM_MPI=self launch 2 "$PH_BINARY_DIR/phloem" eval bare data/test.tsv
[ "$status" -eq 0 ] || complain "evaluations that have nothing to do with each other ended with $status; wanted 0"
[ "$(grep -c '"auc":' stdout)" -eq 2 ] || complain 'wanted two evaluations'
