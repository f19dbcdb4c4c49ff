#!/bin/sh
# phloem tune: what is tried follows from seed and number, is tried once, and is chosen by validation data alone.
# shellcheck source=tests/system/support.sh
. "$PH_SOURCE_DIR/tests/system/support.sh"

make_small_job
# The plateau schedule, patience, and a test file that nobody may look at.
cat >job.yaml <<'END'
seed: 5
threads: 2
data: {train: data/train.tsv, valid: data/valid.tsv, test: data/absent.tsv, format: criteo}
model: {kind: dlrm, embedding_dim: 4, bottom_units: [8], top_units: [8], dropout: 0.1, batch_norm: true}
train: {epochs: 9, batch_size: 200, report_seconds: 0, patience: 3, schedule_factor: 0.5, report: false}
tune:
  search: halving
  runs: 9
  ranges:
    - {key: optimizer.learning_rate, min: 1e-4, max: 0.1, scale: log}
    - {key: model.dropout, values: [0, 0.1, 0.3]}
    - {key: model.embedding_dim, min: 2, max: 16, kind: integer}
END

# trials FOLDER: trials.csv without times, read by another reader of CSV; and its own promises kept.
trials() {
    python3 -c 'import csv, sys
rows = list(csv.DictReader(open(sys.argv[1] + "/trials.csv", newline="")))
ranks = [(-int(row["epochs"]), -float(row["valid_auc"])) for row in rows if row["state"] == "finished"]
assert ranks == sorted(ranks), ranks
for row in rows:
    del row["train_seconds"]
    print(row)' "$1"
}
# is VALUE WANTED
is() {
    [ "$1" = "$2" ] || complain "'$1', wanted '$2'"
}

# ---- halving ----
succeeds tune job.yaml --out whole
for text in 'trial 0  seed 5  1 epochs' 'the config as it is' 'optimizer.learning_rate=' 'model.embedding_dim=' \
    '| trial |' 'whole/best.yaml'; do
    contains stdout "$text"
done
is "$(grep -c '  seed 5  ' stdout)" 13
trials whole >whole.trials
is "$(sed -n "s/.*'epochs': '\([0-9]*\)'.*/\1/p" whole.trials | xargs)" '9 3 3 1 1 1 1 1 1'

# A survivor that went on twice is what training to the end at once is; test data come back in best.yaml.
contains whole/best.yaml 'test: "data/absent.tsv"'
succeeds train whole/best.yaml --out alone --quiet --set data.test=
best=$(sed -n "1s/.*'run': '\([^']*\)'.*/\1/p" whole.trials)
same_run alone "whole/trials/$best-seed5"

# ---- once ----
find whole/trials -type f -print0 | sort -z | xargs -0 ls -l --time-style=full-iso >before
succeeds tune job.yaml --out whole
is "$(grep -c 'finished before' stdout)" 13
find whole/trials -type f -print0 | sort -z | xargs -0 ls -l --time-style=full-iso | cmp -s - before || complain 'a run was repeated'
trials whole | cmp -s - whole.trials || complain 'another outcome from the same steps'
# More runs: the first candidates are the same ones.
succeeds tune job.yaml --out whole --runs 12
is "$(grep -c '1 epochs' stdout)" 12
is "$(grep '1 epochs' stdout | grep -c 'finished before')" 9
succeeds tune job.yaml --out seeded --runs 3 --seed 2
contains stdout 'trial 1  '
grep -q "$(sed -n 's/.*\(optimizer.learning_rate=[^ ]*\).*/\1/p' stdout | head -n 1)" whole/trials.csv && complain 'another seed, but the same values'

# ---- stopped ----
# stopped SIGNAL STATUS COMMAND...: once the command succeeds.
stopped() {
    signal=$1 wanted_status=$2
    shift 2
    begins tune job.yaml --out "$signal"
    waits_for "$@"
    kill -s "$signal" "$process" 2>/dev/null || complain 'the search has ended before the signal'
    status=0
    wait "$process" || status=$?
    [ "$status" -eq "$wanted_status" ] || complain "after SIG$signal it ended with $status; wanted $wanted_status"
    succeeds tune job.yaml --out "$signal"
    contains stdout 'finished before'
    trials "$signal" | cmp -s - whole.trials || complain "after SIG$signal the search came to something else"
}
stopped TERM 143 grep -q 0002- TERM/tune.json
contains TERM/trials.csv '0002-'
stopped INT 130 grep -q '"epochs": 3' INT/tune.json
stopped KILL 137 grep -q 0004- KILL/tune.json

# ---- a budget that ends between two runs ----
num_partial=0
for call in $(seq 100); do
    succeeds tune job.yaml --out budget --minutes 1e-4
    steps=$(grep -c '  seed 5  ' stdout) || true
    [ "$steps" -lt 13 ] || break
    contains stdout 'the same command goes on'
    [ "$steps" -eq 0 ] || num_partial=$((num_partial + 1))
done
[ "$num_partial" -gt 0 ] || complain "after $call calls no budget had ended between two runs"
trials budget | cmp -s - whole.trials || complain 'with a budget the search came to something else'

# ---- budgets, seeds, metrics ----
succeeds tune job.yaml --out random --set tune.search=random --set train.epochs=2 --minutes 1e-12
contains stdout 'the same command goes on'
[ ! -e random/best.yaml ] || complain 'a best config although nothing was trained'
succeeds tune job.yaml --out random --set tune.search=random --set train.epochs=2 --runs 5 --set tune.seeds=2 \
    --set tune.metric=logloss
is "$(grep -c '  2 epochs' stdout)" 4
contains stdout ' ± '
contains stdout 'by valid logloss'
is "$(find random/trials -name 'summary.json' | wc -l)" 4
python3 -c 'import csv, math
rows = list(csv.DictReader(open("random/trials.csv", newline="")))
loglosses = [float(row["valid_logloss"]) for row in rows]
assert loglosses == sorted(loglosses) and len(rows) == 2, rows
import json
steps = json.load(open("random/tune.json"))["steps"]
for row in rows:
    mine = [step["valid_auc"] for step in steps if step["run"].startswith(row["run"])]
    assert len(mine) == 2 and math.isclose(sum(mine) / 2, float(row["valid_auc"]))' || complain 'trials.csv is not what the steps say'

# What follows.
succeeds compare random/best.yaml job.yaml --out compared --seeds 1 --quiet --set data.test=data/test.tsv \
    --set train.epochs=2
contains stdout '| best '

# ---- candidates that fail ----
cat >wild.yaml <<'END'
data: {train: data/train.tsv, valid: data/valid.tsv, format: criteo}
model: {kind: fm, embedding_dim: 4}
train: {epochs: 1, batch_size: 250}
optimizer: {kind: sgd}
tune: {runs: 6, ranges: [{key: optimizer.learning_rate, values: [0.01, 1e6]}]}
END
succeeds tune wild.yaml --out wild
contains stdout 'failed: '
contains wild/trials.csv ',failed,'
contains wild/trials.csv ',finished,'
grep -q "learning_rate: 1000000" wild/best.yaml && complain "a candidate that failed is the best"
succeeds tune wild.yaml --out wild
[ "$(grep -c 'finished before' stdout)" -eq 6 ] || complain 'a candidate that failed was tried again'
fails 3 'the config as it is cannot be trained' tune wild.yaml --out wilder --set optimizer.learning_rate=1e6 --quiet

# ---- what is no candidate's fault ----
succeeds prepare wild.yaml --out prepared
{
    sed '/^data:/d; s/, 1e6\]/, 0.02]/' wild.yaml
    cat prepared/prepared.yaml
} >lacking.yaml
part=$(find prepared/train -name '*.phd' | sort | head -n 1)
mv "$part" part
fails 3 "$part" tune lacking.yaml --out lacking --runs 1 --quiet
mv part "$part"
succeeds tune lacking.yaml --out lacking --runs 1
mv "$part" part
rm lacking/best.yaml lacking/trials.csv
fails 3 "$part" tune lacking.yaml --out lacking --runs 3 --quiet
contains lacking/trials.csv '0,0000-'
contains lacking/best.yaml 'kind: fm'
succeeds tune lacking.yaml --out lacking --set optimizer.learning_rate=0.03 --minutes 1e-12
[ ! -e lacking/best.yaml ] || complain 'the best config of another search is left'
mv part "$part"
succeeds tune lacking.yaml --out lacking --runs 3
[ "$(grep -c 'finished before' stdout)" -eq 1 ] || complain 'data that were lacking are remembered'
# A run that is ahead of a journal that was lost is named, and nobody is worse for it.
rm whole/tune.json
fails 4 "-seed5: the folder does not match tune.json" tune job.yaml --out whole --quiet
grep -q failure whole/tune.json && grep -q 'but the checkpoint is of' whole/tune.json && complain 'the folder was put down as a candidate that failed'

# ---- what is wrong is said before anything runs ----
refused() {
    fails 2 "$1" tune job.yaml --out refused --set "$2"
}
refused "did you mean 'optimizer.learning_rate'" 'tune.ranges[0].key=optimizer.learning_rat'
refused 'tune.ranges[2]: ' 'tune.ranges[2].max=70000'
refused 'must be an integer' 'tune.ranges[2].kind=number'
refused 'must be a number from 0 to 0.99' 'tune.ranges[1].values=0,2'
refused 'scale: log' 'tune.ranges[0].min=0'
refused 'tune.ranges[0]: seed cannot be tuned' 'tune.ranges[0].key=seed'
refused 'train.epochs' 'tune.ranges[0].key=train.epochs'
refused 'tune.ranges[0]: train.report_seconds has no effect on the outcome of a run' tune.ranges[0].key=train.report_seconds
refused 'data.valid is missing' data.valid=
refused 'tune.runs' tune.runs=0
fails 2 '--out' tune job.yaml
fails 2 'tune.ranges is empty' tune wild.yaml --out refused --set tune.ranges=
[ ! -e refused ] || complain 'a search that could not begin has left its folder'
echo '{' >wild/tune.json
fails 4 'wild/tune.json' tune wild.yaml --out wild
