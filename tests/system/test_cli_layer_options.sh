#!/bin/sh
# Block norm, hard swish and biases of the logits alone, all at once: a model learns, in fp32, bf16 and with products of bytes, and is
# scored by phloem predict as phloem eval says; what contradicts itself is refused.
# shellcheck source=tests/system/support.sh
. "$PH_SOURCE_DIR/tests/system/support.sh"

cat >job.yaml <<END
seed: $seed
threads: 2
data: {train: data/train.tsv, valid: data/valid.tsv, test: data/test.tsv, format: criteo}
model:
  {kind: dlrm, embedding_dim: 8, bottom_units: [32], top_units: [300, 32], block_norm: true, bias: last,
    activation: hard_swish}
optimizer: {kind: adam, learning_rate: 0.003}
train: {epochs: 2, batch_size: 250, report_seconds: 0}
synth: {seed: $seed, train_rows: 12000, valid_rows: 3000, test_rows: 3000, table_rows: 100, format: criteo}
END
echo '{"sites": [{"weight": "*", "forward": "int8", "backward": "int8"}]}' >all.json
succeeds synth job.yaml --out data

# learns FOLDER ARGUMENTS...
learns() {
    folder=$1
    shift
    succeeds train job.yaml --out "$folder" --quiet "$@"
    sed -n '/"test": {/,/}/p' "$folder/summary.json" >test.json
    learned "layer_options.$folder.auc" "$(value test.json auc)" '>=' 0.6
}

learns whole --set model.block_norm=false --set model.bias=all --set model.activation=relu
learns fp32
learns bf16 --set train.precision=bf16
learns bytes --set train.recipes=all.json
learns thread --set threads=1
[ "$(value fp32/summary.json checkpoint_sha256)" = "$(value thread/summary.json checkpoint_sha256)" ] ||
    complain 'bits depend on the number of threads'

# Hidden layers have no bias, the logits' layer has one.
LC_ALL=C grep -a -o '"[a-z0-9.]*\.bias"' fp32/model.safetensors >biases
[ "$(cat biases)" = '"output.bias"' ] || complain "biases: $(cat biases)"
[ "$(LC_ALL=C grep -a -o '"[a-z0-9.]*\.bias"' whole/model.safetensors | wc -l)" -eq 5 ] || complain 'whole lacks biases'

# The log loss of what predict writes is that of eval.
succeeds eval fp32 data/test.tsv && cp stdout eval.json
succeeds predict fp32 data/test.tsv --out scores.csv
cut -f 1 data/test.tsv >labels
sed 1d scores.csv | paste labels - | tr , '\t' | awk -v wanted="$(value eval.json logloss)" '
    { p = $NF; sum -= $1 > 0 ? log(p) : log(1 - p) }
    END { d = sum / NR - wanted; exit !(NR == 3000 && d * d < 1e-10) }' || complain 'predict and eval differ'

fails 2 'model.batch_norm and model.block_norm are both true; choose one of them' train job.yaml --out x --set model.batch_norm=true
fails 2 "model.bias" train job.yaml --out x --set model.bias=none
fails 2 "model.activation" train job.yaml --out x --set model.activation=swish
