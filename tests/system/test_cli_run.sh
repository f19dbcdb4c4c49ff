#!/bin/sh
# One job from data to predictions, and what each verb leaves.
# shellcheck source=tests/system/support.sh
. "$PH_SOURCE_DIR/tests/system/support.sh"

make_small_job
for file in train.tsv valid.tsv test.tsv truth.json synth.yaml; do
    [ -s "data/$file" ] || complain "synth left no data/$file"
done
contains stdout 'auc'
fails 2 'data: the folder is not empty' synth job.yaml --out data
mkdir named
cp job.yaml named/synth.yaml
fails 2 'named: the folder is not empty' synth named/synth.yaml --out named
cmp -s job.yaml named/synth.yaml || complain 'synth has overwritten its own config'

# Paths may name the environment; --set wins over the file.
export PH_TEST_DATA="$work/data"
succeeds train job.yaml --out run --set seed=7 --set "data.train=\$PH_TEST_DATA/train.tsv"
for file in summary.json metrics.jsonl model.safetensors encoder.json config.yaml; do
    [ -s "run/$file" ] || complain "train left no run/$file"
done
for key in model seed world_size threads epochs samples_per_s reader_wait_share peak_rss_bytes parameters flops_per_sample \
    valid test auc logloss ne calibration checkpoint checkpoint_sha256; do
    contains run/summary.json "\"$key\":"
done
contains run/summary.json '"model": "dlrm"'
contains run/summary.json '"seed": 7'
[ "$(value run/summary.json checkpoint)" = run/model.safetensors ] || complain 'the summary names another checkpoint'

# What ended a training is said, of one that is finished, too.
succeeds train job.yaml --out patient --quiet --set train.epochs=9 --set train.patience=1 --set optimizer.learning_rate=0
contains stdout 'ended by train.patience: 1 evaluation in a row'
contains patient/summary.json '"ended_by": "patience"'
succeeds train job.yaml --out patient --quiet --resume --set train.epochs=9 --set train.patience=1 \
    --set optimizer.learning_rate=0
contains stdout 'ended by train.patience: 1 evaluation in a row'
contains run/summary.json '"ended_by": "epochs"'

peak=$(value run/summary.json peak_anonymous_bytes)
limit=$(value run/summary.json limit_bytes)
[ "$peak" -le "$limit" ] || complain "peak anonymous memory $peak is above the promised $limit"

# Where the output is no terminal, progress is plain lines.
contains stdout 'samples/s'
if LC_ALL=C grep -q "$(printf '[\033\r]')" stdout; then
    complain 'progress to a file holds control characters'
fi
succeeds train job.yaml --out quiet --quiet
[ "$(grep -c 'samples/s  loss' stdout)" -eq 0 ] || complain '--quiet shows progress'

# A training whose progress finds no room or no reader goes on to its end, and then says that something was not printed.
status=0
"$PH_BINARY_DIR/phloem" train job.yaml --out unseen >/dev/full 2>stderr </dev/null || status=$?
[ "$status" -eq 5 ] || complain "train to a full device ended with $status; wanted 5"
contains stderr 'standard output'
mkfifo pipe
exec 3<>pipe 4>pipe 3<&-
status=0
"$PH_BINARY_DIR/phloem" train job.yaml --out left >&4 2>stderr </dev/null || status=$?
exec 4>&-
[ "$status" -eq 5 ] || complain "train to a pipe without a reader ended with $status; wanted 5"
cmp -s quiet/model.safetensors unseen/model.safetensors || complain 'a full device has changed the model'
cmp -s quiet/model.safetensors left/model.safetensors || complain 'a pipe without a reader has changed the model'

# A metric that the config names no data for is null.
succeeds train job.yaml --out untested --set data.test= --quiet
contains untested/summary.json '"test": null'

# The config that a run leaves trains the same model again.
succeeds train run/config.yaml --out again --quiet
[ "$(value run/summary.json checkpoint_sha256)" = "$(value again/summary.json checkpoint_sha256)" ] ||
    complain 'the config of a run gives another model'

# The trained model measures as it did when it was trained.
succeeds eval run
[ "$(value stdout auc)" = "$(value run/summary.json auc | tail -n 1)" ] || complain 'eval and train disagree on test'
succeeds eval run data/valid.tsv

succeeds predict run data/test.tsv --out test.csv
[ "$(grep -c '^[01]\.[0-9]\|^[0-9.]*e-' test.csv)" -eq 1000 ] || complain 'not one prediction a row'
succeeds predict run data/test.tsv --out test.npy
[ "$(head -c 6 test.npy | tail -c 5)" = NUMPY ] || complain 'test.npy is no npy file'

# "-" is CSV on standard output, and what is said besides goes to standard error.
phloem predict run data/test.tsv --out -
[ "$status" -eq 0 ] || complain "predict --out - ended with $status; wanted 0"
cmp -s stdout test.csv || complain 'predictions on standard output differ from those in a file'
[ "$(cat stderr)" = 'standard output: 1000 predictions' ] || complain 'wanted the number of predictions'
status=0
"$PH_BINARY_DIR/phloem" predict run data/test.tsv --out - 2>stderr >/dev/full || status=$?
[ "$status" -eq 5 ] || complain "predict --out - to a full disk ended with $status; wanted 5"
fails 2 'the name must end in .csv or .npy' predict run data/test.tsv --out test.txt

# Tables in smaller formats: nearly the same predictions; how near, of a trained model, is said here.
# near FILE TOLERANCE: each prediction is so near to that of test.csv, and not all are the same.
near() {
    ! cmp -s test.csv "$1" || complain "$1 is the predictions of fp32"
    [ "$(wc -l <"$1")" -ge 1000 ] || complain "$1 lacks predictions"
    learned "cli_run.${1%.csv}" "$(paste -d' ' test.csv "$1" | awk '
        { off = $1 - $2; off = off < 0 ? -off : off; most = off > most ? off : most }
        END { print most }')" '<=' "$2"
}
succeeds predict run data/test.tsv --out fp32.csv --row-format fp32
cmp -s test.csv fp32.csv || complain '--row-format fp32 is another prediction'
while read -r format tolerance; do
    succeeds predict run data/test.tsv --out "$format.csv" --row-format "$format"
    near "$format.csv" "$tolerance"
    succeeds eval run --row-format "$format"
done <<END
fp16 2e-5
bf16 2e-4
int8 2e-4
int4 2e-3
END
fails 2 "--row-format 'int2' must be one of fp32 fp16 bf16 bf16_split int8 int4" predict run data/test.tsv --out two.csv --row-format int2

# Tables that are learnt in fewer bytes: files of 16 bits a number, and what is measured is what the files score.
for format in fp16 bf16 bf16_split; do
    rm -rf narrow
    succeeds train job.yaml --out narrow --quiet --set train.row_format="$format"
    succeeds eval narrow
    for key in auc logloss calibration; do
        [ "$(value stdout "$key")" = "$(value narrow/summary.json "$key" | tail -n 1)" ] ||
            complain "eval and train disagree on test: $key in $format"
    done
    succeeds inspect narrow/model.safetensors
    contains stdout "$(echo "$format" | sed 's/^fp/F/; s/^bf16$/BF16/; s/^bf16_split$/F32/') "
    succeeds export narrow --onnx narrow.onnx
    fails 2 "train.row_format was '$format' and is now 'fp32'" train job.yaml --out narrow --resume \
        --set train.row_format=fp32
    cp -R narrow narrower
    rm narrower/config.yaml
    succeeds predict narrow data/test.tsv --out narrow.csv
    succeeds predict narrower data/test.tsv --out narrower.csv
    cmp -s narrow.csv narrower.csv || complain "$format: without config.yaml the predictions are others"
    rm -rf narrower
done
fails 2 'train.row_format' train job.yaml --out levels --set train.row_format=int8

# The same with layers in bf16.
succeeds predict run data/test.tsv --out layers.csv --precision bf16
near layers.csv 1e-2
succeeds eval run --precision bf16
fails 2 "--precision 'fp16' must be one of fp32 bf16" predict run data/test.tsv --out two.csv --precision fp16

# A folder without config.yaml: the weights say themselves what they are.
cp -R run bare
rm bare/config.yaml
succeeds predict bare data/test.tsv --out bare.csv
cmp -s test.csv bare.csv || complain 'without config.yaml the predictions are others'
succeeds eval run data/test.tsv
mv stdout eval.run
succeeds eval bare data/test.tsv
cmp -s eval.run stdout || complain 'without config.yaml the metrics are others'
fails 2 'the config has no data.test' eval bare
succeeds export run --onnx run.onnx
succeeds export bare --onnx bare.onnx
cmp -s run.onnx bare.onnx || complain 'without config.yaml the export is another'

# What is read is never written over, whatever it is called and however it is named.
mkdir rows
head -n 10 data/test.tsv >rows/a.csv
cp rows/a.csv rows/b.csv
cp rows/a.csv rows/c.csv.tmp
ln -s rows/a.csv link.csv
ln rows/a.csv rows/d.csv
fails 2 'would overwrite the input rows/a.csv' predict run rows/a.csv --out rows/a.csv
fails 2 'would overwrite the input rows/a.csv' predict run rows/a.csv --out ./rows/../rows/a.csv
fails 2 'would overwrite the input rows/a.csv' predict run rows/a.csv --out link.csv
fails 2 'would overwrite the input rows/b.csv' predict run 'rows/[abd].csv' --out rows/b.csv
fails 2 'would overwrite the input rows/c.csv.tmp' predict run rows/c.csv.tmp --out rows/c.csv
status=0
"$PH_BINARY_DIR/phloem" predict run - --out rows/b.csv >stdout 2>stderr <rows/b.csv || status=$?
[ "$status" -eq 2 ] || complain "predict over its standard input ended with $status; wanted 2"
for file in a.csv b.csv c.csv.tmp d.csv; do
    head -n 10 data/test.tsv | cmp -s - "rows/$file" || complain "rows/$file, which was read, is another"
done
succeeds predict run 'rows/[ab].csv' --out rows/e.csv
succeeds predict run 'rows/[ab].csv' --out rows/e.csv

succeeds inspect run/model.safetensors
contains stdout 'embedding.C26'
contains stdout 'seal: valid'
is_sealed run/model.safetensors
is_sealed run/encoder.json
succeeds inspect model run
succeeds inspect model run --dot
contains stdout 'digraph'
succeeds inspect data job.yaml
contains stdout 'C26'
succeeds inspect config job.yaml
contains stdout 'embedding_dim: 4'
succeeds train job.yaml --out profiled --quiet --profile --trace trace.json
contains stdout 'GFLOP/s'
contains trace.json 'traceEvents'
# A trace that cannot be written is found before the training, and none is written over what the training reads.
fails 5 'nowhere/trace.json' train job.yaml --out untraced --quiet --trace nowhere/trace.json
[ ! -e untraced/model.safetensors ] || complain 'the training came before the trace was found impossible'
succeeds train job.yaml --out untraced --quiet --trace untraced/trace.json
contains untraced/trace.json 'traceEvents'
fails 2 'would overwrite the input data/valid.tsv' train job.yaml --out spared --quiet --trace data/valid.tsv
