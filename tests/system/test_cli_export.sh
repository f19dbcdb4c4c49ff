#!/bin/sh
# phloem export: what it leaves, and how it ends where it cannot.
# shellcheck source=tests/system/support.sh
. "$PH_SOURCE_DIR/tests/system/support.sh"

make_small_job
succeeds train job.yaml --out run --quiet --set train.epochs=1

succeeds export run --onnx model.onnx
contains stdout 'dlrm'
contains model.onnx 'embedding.table'
contains model.onnx 'probability'
succeeds export run --onnx again.onnx
cmp -s model.onnx again.onnx || complain 'two exports of one model differ'

fails 2 'export requires --onnx FILE' export run
fails 4 'nowhere/config.yaml does not exist' export nowhere --onnx model.onnx
cp -R run kept
for file in config.yaml encoder.json model.safetensors; do
    fails 2 "would overwrite the input run/$file" export run --onnx "run/$file"
    cmp -s "run/$file" "kept/$file" || complain "an export has overwritten run/$file"
done
fails 5 'nowhere/model.onnx' export run --onnx nowhere/model.onnx
[ ! -e model.onnx.tmp ] || complain 'a temporary file is left'
cmp -s model.onnx again.onnx || complain 'a failed export has changed the file'

# What looks ids up one by one trains but has no ONNX.
rm -rf other
succeeds train job.yaml --out other --quiet --set train.max_steps=1 --set model.kind=din --set model.din.targets=C1 \
    --set model.din.histories=C2
fails 2 "operator 'embedding_rows', which ONNX lacks" export other --onnx other.onnx
[ ! -e other.onnx ] || complain 'an export that failed has left its file'
