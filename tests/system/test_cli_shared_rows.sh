#!/bin/sh
# A history of items that shares the rows of the item in question, through every verb that meets it.
# shellcheck source=tests/system/support.sh
. "$PH_SOURCE_DIR/tests/system/support.sh"

awk 'BEGIN {
    print "label,user,history,item"
    for (i = 0; i < 400; i++)
        printf "%d,u%d,i%d|i%d,i%d\n", i % 3 == 0, i % 17, i * 7 % 31, i * 5 % 29, i % 37
}' >rows.csv
cat >job.yaml <<'END'
data:
  train: rows.csv
  valid: rows.csv
  fields:
    - {name: label, kind: label}
    - {name: history, kind: id, list: true, shares: item}
    - {name: "*", kind: id}
model: {kind: deepfm, embedding_dim: 4, hidden_units: [8]}
train: {epochs: 2, batch_size: 64}
threads: 2
END

succeeds train job.yaml --out run --quiet
contains run/model.safetensors 'embedding.item'
grep -q 'embedding.history' run/model.safetensors && complain 'the history has rows of its own'
contains run/encoder.json '"shares": "item"'
succeeds inspect data job.yaml
contains stdout '38 rows, those of item'
contains stdout '3 sparse features with 56 rows'
succeeds predict run rows.csv --out first.csv
succeeds export run --onnx model.onnx

# prepared data has the same encoder and trains to the same weights
succeeds prepare job.yaml --out prepared --quiet
succeeds train job.yaml --out again --quiet --set data.prepared=prepared
cmp -s run/encoder.json again/encoder.json || complain 'prepared data has another encoder'
[ "$(value run/summary.json checkpoint_sha256)" = "$(value again/summary.json checkpoint_sha256)" ] ||
    complain 'prepared data has trained another model'

sed 's/shares: item/shares: items/' job.yaml >wrong.yaml
fails 2 "'history' shares the rows of 'items', which is not an id field" train wrong.yaml --out other
