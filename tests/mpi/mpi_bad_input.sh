#!/bin/sh
# What one rank of a training finds wrong ends all of them with its exit code and one line, and leaves no bad checkpoint.
#
#     mpi_bad_input.sh openmpi|mpich short|long
. "$(dirname "$0")/mpi_support.sh"
length=$2
phloem=$PH_BINARY_DIR/phloem
cd "$work"

# Rank 1 is given what $PH_TEST_ODD says, too, runs the verb $PH_TEST_VERB of the program $PH_TEST_PROGRAM and has the instruction
# set $PH_TEST_ISA; each leaves its process.
cat >by_rank <<END
rank=\${OMPI_COMM_WORLD_RANK:-\$PMI_RANK}
echo \$\$ >process.\$rank
[ "\$rank" -ne 0 ] || exec "$phloem" train "\$@"
PHLOEM_ISA=\${PH_TEST_ISA:-\$PHLOEM_ISA} exec "\$PH_TEST_PROGRAM" \$PH_TEST_VERB "\$@" \$PH_TEST_ODD
END
PH_TEST_ODD='' PH_TEST_VERB=train PH_TEST_PROGRAM=$phloem PH_TEST_ISA=''
export PH_TEST_ODD PH_TEST_VERB PH_TEST_PROGRAM PH_TEST_ISA

# fails STATUS TEXT ARGUMENTS...: all ranks end with it, one of them says why in one line, and no other line is ours.
fails() {
    wanted=$1 text=$2
    shift 2
    launch 2 sh by_rank "$@" --out run --quiet
    [ "$status" -eq "$wanted" ] || complain "train $* (rank 1: $PH_TEST_ODD) ended with $status; wanted $wanted"
    grep -qF -- "$text" stderr || complain "train $* (rank 1: $PH_TEST_ODD): stderr lacks \"$text\""
    [ "$(grep -c '^phloem: ' stderr)" -eq 1 ] || complain "train $* (rank 1: $PH_TEST_ODD): wanted one line on stderr"
    ! grep -q '^trained' stdout || complain "train $*: a summary of what has failed"
}

# differs STATUS TEXT ARGUMENTS...: rank 1 alone has the arguments, which is found before anything is written.
differs() {
    wanted=$1 text=$2
    shift 2
    PH_TEST_ODD=$*
    fails "$wanted" "$text" job.yaml
    [ ! -e run ] || [ -z "$(ls run)" ] || complain "$* on one rank has left files"
    PH_TEST_ODD=''
}

succeeds() {
    launch 2 sh by_rank "$@" --quiet
    [ "$status" -eq 0 ] || complain "train $* ended with $status; wanted 0"
    ! grep -q '^phloem: error' stderr || complain "train $* has complained"
}

cat >job.yaml <<'END'
seed: 1
threads: 1
data: {train: data/train.tsv, valid: data/valid.tsv, format: criteo, prefetch: 0}
model: {kind: dlrm, embedding_dim: 4, bottom_units: [8], top_units: [8], dropout: 0.1}
train: {epochs: 2, batch_size: 100, report_seconds: 1000, checkpoint_steps: 3, checkpoints_kept: 100, report: false}
parallel: {plan: plan.yaml}
synth: {train_rows: 700, valid_rows: 300, test_rows: 100, table_rows: 20, format: criteo}
END
cat >plan.yaml <<'END'
version: 1
world_size: 2
default: {kind: row_wise}
END
"$phloem" synth job.yaml --out data >stdout
sed '170s/^[01]/nonsense/' data/valid.tsv >data/bad.tsv # in rank 1's share of the second batch

differs 2 "train.batch_size differs between ranks 0 ('100') and 1 ('50')" --set train.batch_size=50
differs 2 "unknown key 'train.batch_syze'; did you mean" --set train.batch_syze=50
PH_TEST_VERB=eval
differs 2 "rank 1 runs 'phloem eval', but rank 0 runs 'phloem train': start one command with one mpirun"
PH_TEST_VERB=train
fails 3 'bad.tsv:170' job.yaml --set data.valid=data/bad.tsv
rm -rf run/checkpoints/step-000000000006.safetensors
rm run/checkpoints/step-*3.safetensors/part-00002-of-00002.safetensors
fails 4 'part-00002-of-00002.safetensors: cannot open' job.yaml --resume
rm -rf run
[ "$length" = long ] || exit 0

# ---- each rank for itself ------------------------------------------------------------------------------------------

differs 2 "--resume differs between ranks 0 ('no') and 1 ('yes')" --resume
differs 2 "unknown flag '--resum'" --resum
differs 2 "seed differs between ranks 0 ('1') and 1 ('2')" --set seed=2
differs 2 'timeout_seconds differs between ranks 0 and 1' --set parallel.timeout_seconds=20
cp "$phloem" other_phloem
echo >>other_phloem
PH_TEST_PROGRAM=./other_phloem
differs 2 "the program differs between ranks 0 ('"
PH_TEST_PROGRAM=$phloem
if grep -q '\bavx2\b' /proc/cpuinfo; then # else there is one for all
    PH_TEST_ISA=ref
    differs 2 'the instruction set (PHLOEM_ISA sets it) differs between ranks 0 ('
    PH_TEST_ISA=''
fi
sed '5d' data/train.tsv >data/short.tsv
differs 2 "data.train differs between ranks 0 ('files: 1" --set data.train=data/short.tsv
differs 3 'data/none.tsv' --set data.train=data/none.tsv
sed 's/row_wise/table_wise/' plan.yaml >other_plan.yaml
differs 2 "the plan of embedding.C1 differs between ranks 0 ('row_wise 0 1') and 1 ('table_wise " --set parallel.plan=other_plan.yaml
differs 2 'would overwrite the input job.yaml' --trace job.yaml
cp -R data copy
PH_TEST_ODD='--set data.train=copy/train.tsv --set threads=2'
succeeds job.yaml --out run
PH_TEST_ODD=''
rm -rf run

# ---- all of them ----------------------------------------------------------------------------------------------------

fails 2 'nothing.yaml: cannot open' nothing.yaml
fails 2 'data.train is missing' job.yaml --set data.train=
PHLOEM_ISA=abacus fails 2 'PHLOEM_ISA=abacus: not one of' job.yaml
PHLOEM_PLUGINS=$work fails 2 "cannot find libphloem_$mpi.so in" job.yaml
sed 's/world_size: 2/world_size: 3/' plan.yaml >wide.yaml
fails 2 'wide.yaml:2: the plan is for a world_size of 3, but this job has 2' job.yaml --set parallel.plan=wide.yaml
echo 'tables: {embedding.C99: {kind: row_wise}}' | cat plan.yaml - >unknown.yaml
fails 2 "unknown table 'embedding.C99'; did you mean" job.yaml --set parallel.plan=unknown.yaml
echo 'tables: {embedding.C1: {kind: row_wise, ranks: [1, 1]}}' | cat plan.yaml - >twice.yaml
fails 2 'twice.yaml:4: rank 1 is named twice' job.yaml --set parallel.plan=twice.yaml
fails 5 "table 'embedding.C" job.yaml --set parallel.plan=auto --set parallel.memory_bytes=1000
[ -z "$(find run -type f)" ] || complain 'a training that could not begin has left files'
launch 2 "$phloem" train --help
[ "$status" -eq 0 ] || complain "--help ended with $status"
[ "$(grep -c '^usage: phloem train' stdout)" -eq 1 ] || complain 'wanted one help'
rm -rf run

# ---- checkpoints ----------------------------------------------------------------------------------------------------

succeeds job.yaml --out whole
sum_of() {
    sed -n 's/.*"checkpoint_sha256": "\([0-9a-f]*\)".*/\1/p' "$1/summary.json"
}

# goes_on: the training in ./run ends as the undisturbed one has.
goes_on() {
    succeeds job.yaml --out run --resume
    [ "$(sum_of run)" = "$(sum_of whole)" ] || complain 'what was resumed has ended elsewhere'
}

# A bad row of rank 1's ends a training, which goes on once it may be left out, but with no other data.
fails 3 'bad.tsv:170' job.yaml --set data.valid=data/bad.tsv
fails 3 'a training resumes with the data that it began with' job.yaml --resume
succeeds job.yaml --out run --resume --set data.valid=data/bad.tsv --set data.max_bad_rows=1
succeeds job.yaml --out lenient --set data.valid=data/bad.tsv --set data.max_bad_rows=1
[ "$(sum_of run)" = "$(sum_of lenient)" ] || complain 'what was resumed has ended elsewhere'

# A newest checkpoint that a rank cannot read gives way to the one before, with one note.
for damage in 'rm part-00002-of-00002.safetensors' 'truncate -s -1 part-00001-of-00002.safetensors'; do
    rm -rf run
    succeeds job.yaml --out run --set train.max_steps=11
    (cd run/checkpoints/step-000000000011.safetensors && $damage)
    goes_on
    [ "$(grep -c '^phloem: note: .*step 9 instead' stderr)" -eq 1 ] || complain "$damage: wanted one note"
done

# A signal to one rank, most likely in an evaluation, of which there is one a step.
rm -rf run process.*
# shellcheck disable=SC2086 # a list of words
$launcher -n 2 sh by_rank job.yaml --out run --quiet --set train.evaluate_steps=1 --set train.epochs=100000 \
    --set train.patience=0 --set train.checkpoint_steps=0 >stdout 2>stderr </dev/null &
job=$!
until [ -e run/model.safetensors/model.safetensors.index.json ] || ! kill -0 "$job" 2>/dev/null; do
    sleep 0.1
done
kill -TERM "$(cat process.1)"
status=0
wait "$job" || status=$?
[ "$status" -eq 143 ] || complain "after a signal to rank 1 it ended with $status; wanted 143"
[ "$(grep -c '^phloem: error: stopped by a signal' stderr)" -eq 1 ] || complain 'wanted one line about the signal'
step=$(sed -n 's/.*signal at step \([0-9]*\);.*/\1/p' stderr)
succeeds job.yaml --out run --resume --set train.evaluate_steps=1 --set train.epochs=100000 --set train.patience=0 \
    --set "train.max_steps=$step"

# A signal to one rank while both fill a table that takes seconds.
awk 'BEGIN { print "label,user"; for (i = 0; i < 1000; i++) printf "%d,%d\n", i % 3 == 0, i }' >ids.csv
cat >wide.yaml <<'YAML'
data:
  train: ids.csv
  format: csv
  encoding: hash
  rows: 2000000
  fields: [{name: label, kind: label}, {name: user, kind: id}]
model: {kind: dnn, embedding_dim: 64, hidden_units: [8]}
train: {epochs: 1000, batch_size: 100, report_seconds: 1000}
YAML
rm -rf run process.*
# shellcheck disable=SC2086 # a list of words
$launcher -n 2 sh by_rank wide.yaml --out run --quiet >stdout 2>stderr </dev/null &
job=$!
until [ -s process.1 ] && grep -q '^SigCgt:.*[4567cdef]...$' "/proc/$(cat process.1)/status"; do # it hears SIGTERM
    kill -0 "$job" 2>/dev/null || break
done
kill -TERM "$(cat process.1)"
status=0
wait "$job" || status=$?
[ "$status" -eq 143 ] || complain "after a signal to rank 1 before the first step it ended with $status; wanted 143"
[ "$(grep -c '^phloem: error: stopped by a signal before the first step' stderr)" -eq 1 ] || complain 'wanted one line about the signal'
