#!/bin/sh
# phloem compare: every config with every seed, once; what stopped goes on, what failed leaves the others alone.
# shellcheck source=tests/system/support.sh
. "$PH_SOURCE_DIR/tests/system/support.sh"

make_small_job
cat >>job.yaml <<'END'
published: {source: 'Somebody, "A paper" | 2020', auc: 0.7, bar_auc: 0.01}
END
sed 's/kind: dlrm/kind: fm/; s/bar_auc: 0.01/bar_auc: 0.99/' job.yaml >fm.yaml

# column NAME: of compare.csv, one line a config, read by another reader of CSV.
column() {
    python3 -c 'import csv, sys
for row in csv.DictReader(open(sys.argv[1], newline="")):
    print(row[sys.argv[2]])' "${2:-out}/compare.csv" "$1"
}
# is VALUE WANTED
is() {
    [ "$1" = "$2" ] || complain "'$1', wanted '$2'"
}

# ---- the table ----
succeeds compare job.yaml fm.yaml --out out --seeds 1,4
for text in '[1 of 4]' '[4 of 4]' '## Accuracy' '| job ' '| fm ' 'A paper" \| 2020' '0.01 reached' '0.99 missed' \
    'from job' 'out/compare.md'; do
    contains stdout "$text"
done
grep -n 'seed [14]  ' stdout | sed 's/  test.*//; s/^[0-9]*://' >turns
printf 'job  seed 1\nfm  seed 1\njob  seed 4\nfm  seed 4\n' | cmp -s - turns || complain 'runs do not take turns by seed'
is "$(column config)" "$(printf 'job\nfm')"
is "$(column finished)" "$(printf '2\n2')"
is "$(column pairs)" "$(printf '0\n2')"
is "$(column bar)" "$(printf 'reached\nmissed')"
is "$(column published_source)" "$(printf 'Somebody, "A paper" | 2020\nSomebody, "A paper" | 2020')"
for file in out/compare.md out/compare.json out/compare.html; do
    [ -s "$file" ] || complain "$file is missing"
done
contains out/compare.html '"id":"auc-plot"'
python3 "$PH_SOURCE_DIR/tests/system/page_check.py" sound out/compare.html >stdout || complain 'compare.html is no sound page'
python3 -c 'import json, math, statistics
rows = json.load(open("out/compare.json"))["configs"]
aucs = [[run["test"]["auc"] for run in row["runs"]] for row in rows]
for row, auc in zip(rows, aucs):
    assert math.isclose(row["test_auc"], statistics.mean(auc)), row
    assert math.isclose(row["test_auc_deviation"], statistics.stdev(auc)), row
differences = [b - a for a, b in zip(*aucs)]
assert math.isclose(rows[1]["auc_difference"], statistics.mean(differences), abs_tol=1e-12)
assert math.isclose(rows[1]["auc_difference_half_width"], 12.7062047361747 * statistics.stdev(differences) / math.sqrt(2))
for row in rows:
    for run in row["runs"]:
        summary = json.load(open(run["folder"] + "/summary.json"))
        assert summary["seed"] == run["seed"] and summary["test"]["auc"] == run["test"]["auc"]' ||
    complain 'compare.json is not what its runs say'

# A run is what phloem train makes of the config.
succeeds train job.yaml --out alone --quiet --set seed=4
same_run alone out/runs/job-*-seed4

# ---- once ----
find out/runs -name summary.json | sort | xargs ls -l --time-style=full-iso >before
cp out/compare.csv before.csv
succeeds compare job.yaml fm.yaml --out out --seeds 1,4
contains stdout 'finished before'
find out/runs -name summary.json | sort | xargs ls -l --time-style=full-iso | cmp -s - before || complain 'a run was repeated'
cmp -s out/compare.csv before.csv || complain 'the table has changed'
# What is published is no reason to train again, nor is another place of the config; another config, and changed data, are.
mkdir elsewhere
sed 's/0.01/0.02/' job.yaml >elsewhere/job.yaml
succeeds compare elsewhere/job.yaml --out out --seeds 1 --threads 1
contains stdout 'finished before'
succeeds compare job.yaml --out out --seeds 1 --set train.epochs=1
[ "$(grep -c 'finished before' stdout)" -eq 0 ] || complain 'another config was taken for a finished run'
cp -R data changed
sed -i 's/data\//changed\//g' elsewhere/job.yaml
succeeds compare elsewhere/job.yaml --out out --seeds 1 --quiet
[ "$(find out/runs -name 'job-*-seed1' | wc -l)" -eq 3 ] || complain 'other data were taken for the same'

# Nor is what another program has trained taken for its own.
mkdir other
cp "$PH_BINARY_DIR/phloem" other
printf x >>other/phloem
built=$PH_BINARY_DIR
PH_BINARY_DIR=$work/other
succeeds compare job.yaml --out out --seeds 1 --quiet
[ "$(find out/runs -name 'job-*-seed1' | wc -l)" -eq 4 ] || complain 'what another program trained was taken for a finished run'
PH_BINARY_DIR=$built
succeeds compare job.yaml --out out --seeds 1
contains stdout 'finished before'

# ---- pairs ----
succeeds compare job.yaml elsewhere/job.yaml --out out --seeds 1 --quiet
contains stdout 'their test data differ'
contains stdout 'other data'
contains stdout '| elsewhere/job.yaml '
is "$(column pairs)" "$(printf '0\n0')"
contains stdout ' ± –'
succeeds compare job.yaml fm.yaml --out out --seeds 1,4 --base fm.yaml --quiet
contains stdout 'from fm'
succeeds compare job.yaml --out out --seeds 1,4 --quiet --with model.dropout=0 --with train.epochs=1
contains stdout '| job, model.dropout=0 train.epochs=1 '
is "$(column pairs)" "$(printf '0\n2')"
is "$(column published_auc)" "$(printf '0.7\n')"
succeeds compare job.yaml fm.yaml --out none --seeds 1 --quiet --set data.test=
contains stdout 'it has no data.test'
sed 's/, test: [^,}]*//' job.yaml >untested.yaml
succeeds compare untested.yaml job.yaml --out none --seeds 1 --quiet
contains stdout 'job is not paired with untested: the latter has no data.test'

# ---- stopped ----
cat >slow.yaml <<'END'
data: {train: data/train.tsv, valid: data/valid.tsv, test: data/test.tsv, format: criteo}
model: {kind: dlrm, embedding_dim: 16, bottom_units: [32], top_units: [32], dropout: 0.2}
train: {epochs: 5, batch_size: 50, report_seconds: 0, patience: 0, checkpoint_steps: 50, report: false}
END
succeeds compare slow.yaml --out whole --seeds 2 --quiet
# stopped SIGNAL STATUS: amid the second run.
stopped() {
    begins compare slow.yaml --out "$1" --seeds 2
    waits_for grep -rq '"step":100,' "$1/runs" --include=metrics.jsonl --exclude-dir='*-seed1'
    kill -s "$1" "$process" 2>/dev/null || complain 'the comparison has ended before the signal'
    status=0
    wait "$process" || status=$?
    [ "$status" -eq "$2" ] || complain "after SIG$1 it ended with $status; wanted $2"
    succeeds compare slow.yaml --out "$1" --seeds 2
    [ "$(grep -c 'finished before' stdout)" -eq 1 ] || complain 'wanted one run that was finished before'
    for run in "$1"/runs/*; do
        same_run "whole/runs/$(basename "$run")" "$run"
    done
}
stopped TERM 143
stopped INT 130
stopped KILL 137

# ---- failures ----
sed 's/epochs: 2/epochs: 2, schedule: step/' job.yaml >bad.yaml
sed 's/data\/train/data\/absent/' job.yaml >absent.yaml
phloem compare absent.yaml job.yaml bad.yaml --out failed --seeds 2
[ "$status" -eq 3 ] || complain "ended with $status, wanted that of the first failure, 3"
[ "$(wc -l <stderr)" -eq 1 ] || complain 'wanted one line on stderr'
contains stderr '4 of 6 runs failed, the first absent with seed 1: data/absent.tsv'
contains stdout 'bad with seed 2 failed (exit code 2): train.schedule: step requires'
is "$(column finished failed)" "$(printf '0\n2\n0')"
is "$(column failed failed)" "$(printf '2\n0\n2')"
contains failed/compare.html '"id":"missing"'
python3 "$PH_SOURCE_DIR/tests/system/page_check.py" sound failed/compare.html >stdout || complain 'compare.html is no sound page'

# Without test data there is nothing to plot.
succeeds compare job.yaml --out untested --seeds 1 --set data.test=
if grep -qF '"id":"auc-plot"' untested/compare.html; then complain 'a comparison without test data plots its AUC'; fi

# ---- usage ----
fails 2 'CONFIG...' compare
fails 2 '--out' compare job.yaml
fails 2 '--seeds' compare job.yaml --out x --seeds 0
fails 2 'is given twice' compare job.yaml job.yaml --out x
fails 2 '--base' compare job.yaml --out x --base fm.yaml
fails 2 '--with threads=2: no effect on the outcome of job.yaml' compare job.yaml --out x --with threads=2
fails 2 '--with train.report=false and the others: no effect' compare job.yaml --out x --with train.report=false \
    --with published.auc=0.5
fails 2 '--with seed=7: set seeds by --seeds instead' compare job.yaml --out x --with seed=7
fails 2 '--set seed=7: set seeds by --seeds instead' compare job.yaml --out x --set seed=7
fails 2 'unknown key' compare job.yaml --out x --set model.knid=fm
fails 2 'data.train' compare job.yaml --out x --set data.train=
fails 2 'read only once' compare job.yaml --out x --set data.train=-
fails 2 'published.auc' compare job.yaml --out x --set published.auc=2
[ ! -e x ] || complain 'what could not begin has left its folder'

# ---- one at a time ----
begins compare slow.yaml --out held --seeds 1 --quiet
waits_for test -e held/runs
kill -s STOP "$process" 2>/dev/null || complain 'the comparison has ended before the other one began'
fails 2 'held: another process uses this folder' compare slow.yaml --out held --seeds 1
kill -s CONT "$process"
ends 0
succeeds compare slow.yaml --out held --seeds 1
contains stdout 'finished before'
