#!/bin/sh
# Online learning measured as it goes, negatives sampled and corrected for, bad rows left out: by the program.
# shellcheck source=tests/system/support.sh
. "$PH_SOURCE_DIR/tests/system/support.sh"

make_small_job
on_stream='--set train.epochs=1 --set data.shuffle=false --set train.progressive=true'

# Windows of 1500 rows of a stream of 4000, in batches of 250.
# shellcheck disable=SC2086
succeeds train job.yaml --out online --quiet $on_stream --set train.progressive_rows=1500
contains stdout 'progressive  auc'
contains online/summary.json '"progressive": {'
[ "$(grep -c '"event": *"progressive"' online/metrics.jsonl)" -eq 3 ] || complain 'not three windows'
grep '"event": *"progressive"' online/metrics.jsonl | tail -n 1 >last
contains last '3000'
contains last '"logloss"'

# Without it, null.
succeeds train job.yaml --out offline --quiet
contains offline/summary.json '"progressive": null'

# A stream that is none.
fails 2 'data.shuffle: false' train job.yaml --out none --set train.progressive=true --set train.epochs=1
# shellcheck disable=SC2086
fails 2 'train.epochs: 1' train job.yaml --out none $on_stream --set train.epochs=2
# shellcheck disable=SC2086
fails 2 'data.negative_rate: 1' train job.yaml --out none $on_stream --set data.negative_rate=0.5

# Odds are multiplied by the rate in all that scores; measured without, they are 1 / rate as large.
succeeds train job.yaml --out sampled --quiet --set data.negative_rate=0.2
succeeds eval sampled
[ "$(value stdout logloss)" = "$(value sampled/summary.json logloss | tail -n 1)" ] ||
    complain 'eval and train disagree on a model of sampled negatives'
succeeds predict sampled data/test.tsv --out corrected.csv
succeeds predict sampled data/test.tsv --out plain.csv --set data.negative_rate=1
paste -d , corrected.csv plain.csv | awk -F , '
    $1 ~ /^[0-9.e-]+$/ {
        count++
        q = $2 / ($2 + (1 - $2) / 0.2)
        if ($1 - q > 1e-5 || q - $1 > 1e-5) wrong++
    }
    END { exit count == 1000 && wrong == 0 ? 0 : 1 }' || complain 'predictions are not p / (p + (1 - p) / rate)'

# Bad rows are left out, counted and named, as many as are allowed; predictions leave none out.
sed '30a nonsense' data/train.tsv >data/bad_train.tsv
sed '20a nonsense' data/test.tsv >data/bad_test.tsv
fails 3 'bad_train.tsv:31' train job.yaml --out bad --quiet --set data.train=data/bad_train.tsv
rm -rf bad
succeeds train job.yaml --out bad --quiet --set data.max_bad_rows=1 --set data.train=data/bad_train.tsv \
    --set data.test=data/bad_test.tsv
contains stdout 'left out 1 bad rows of the training data; the first: data/bad_train.tsv:31'
contains bad/summary.json 'bad_test.tsv:21'
[ "$(value bad/summary.json checkpoint_sha256)" = "$(value offline/summary.json checkpoint_sha256)" ] ||
    complain 'a row that was left out has changed the model'
phloem eval bad data/bad_test.tsv
[ "$status" -eq 0 ] || complain 'eval does not leave a bad row out'
contains stderr 'left out 1 bad rows'
fails 3 'bad_test.tsv:21' predict bad data/bad_test.tsv --out bad.csv
succeeds inspect data bad
contains stdout 'left out 1 bad rows'

# A model with two labels has no negatives.
printf 'click,buy,user\n0,0,a\n1,0,b\n1,1,c\n0,0,b\n' >two.csv
cat >two.yaml <<'END'
data:
  train: two.csv
  fields: [{name: click, kind: label}, {name: buy, kind: label}, {name: user, kind: id}]
model: {kind: lr}
END
succeeds train two.yaml --out two --quiet
fails 2 '2 labels' train two.yaml --out none --set data.negative_rate=0.5
