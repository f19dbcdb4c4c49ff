#!/bin/sh
# Each kind of failure has its exit code and one line that says where it is.
# shellcheck source=tests/system/support.sh
. "$PH_SOURCE_DIR/tests/system/support.sh"

make_small_job
succeeds train job.yaml --out run --quiet

# 2: usage or config.
fails 2 'model.kind' train job.yaml --out x --set model.kind=oracle
fails 2 'data.train' train job.yaml --out x --set data.train=
fails 2 'PH_TEST_NOT_SET' train job.yaml --out x --set "data.train=\$PH_TEST_NOT_SET/train.tsv"

# 3: data; file and line are named.
fails 3 'data/absent.tsv' train job.yaml --out x --set data.train=data/absent.tsv
head -n 20 data/train.tsv >broken.tsv
printf '1\t1\t2\n' >>broken.tsv
fails 3 'broken.tsv:21' train job.yaml --out x --set data.train=broken.tsv
sed '3s/^[01]/maybe/' data/train.tsv >label.tsv
fails 3 'label.tsv:3' train job.yaml --out x --set data.train=label.tsv
fails 3 'label.tsv:3' eval run label.tsv
: >empty.tsv
fails 3 'empty.tsv' train job.yaml --out x --set data.train=empty.tsv

# A model may be finite, and what it gives not.
succeeds train job.yaml --out nan --quiet --set data.valid= --set data.test= --set train.non_finite=skip \
    --set optimizer.kind=sgd --set optimizer.learning_rate=1e6 --set train.max_steps=4
fails 3 'data/test.tsv: the model gives scores that are not numbers' eval nan data/test.tsv
fails 3 'the model gives a score that is not a number' predict nan data/test.tsv --out nan.csv
[ ! -e nan.csv ] || complain 'predictions were written although they are no numbers'

# 4: a checkpoint that is not whole, or no checkpoint at all.
fails 4 'nowhere' eval nowhere
cp -R run cut
head -c 1000 run/model.safetensors >cut/model.safetensors
fails 4 'cut/model.safetensors' eval cut
fails 4 'cut/model.safetensors' inspect cut/model.safetensors
cp -R run flipped
printf '\377' | dd of=flipped/model.safetensors bs=1 seek=5000 conv=notrunc 2>/dev/null
fails 4 'flipped/model.safetensors' eval flipped
fails 4 'flipped/model.safetensors' inspect flipped/model.safetensors
contains stdout 'embedding.C26'
cp -R run changed
echo 'not JSON' >changed/encoder.json
fails 4 'changed/encoder.json' eval changed
sed 's/"training_rows": 4/"training_rows": 5/' run/encoder.json >changed/encoder.json
fails 4 'changed/encoder.json' eval changed
# The config that a training has left, which it cannot go on without; for scoring, the weights stand in. What the user adds to it is another matter.
# each STATUS TEXT [ARGUMENTS...]: whatever begins with the folder ./kept ends so.
each() {
    wanted_of_each=$1 text_of_each=$2
    shift 2
    for command in 'eval kept' 'predict kept data/test.tsv --out x.csv' 'inspect model kept' 'inspect data kept'; do
        # shellcheck disable=SC2086 # a list of words
        fails "$wanted_of_each" "$text_of_each" $command "$@"
    done
}
cp -R run kept
rm kept/config.yaml
succeeds inspect model kept
fails 4 'kept/config.yaml: cannot open' train job.yaml --out kept --resume
for damage in 'model: {kind: dlmr}' 'data: {oops: 1}' 'model: ['; do
    echo "$damage" >kept/config.yaml
    each 4 "kept/config.yaml:"
    contains stderr "this file of the run folder is damaged"
    fails 4 "this file of the run folder is damaged" export kept --onnx x.onnx
    fails 4 "this file of the run folder is damaged" train job.yaml --out kept --resume
done
cp run/config.yaml kept/config.yaml
each 2 'model.kind' --set model.kind=dlmr
rm kept/config.yaml kept/model.safetensors
each 4 'kept/config.yaml does not exist'
fails 4 'kept/config.yaml does not exist' export kept --onnx x.onnx
# A config that asks for another model than the checkpoint holds, or that somebody has changed.
fails 4 'run/model.safetensors' eval run --set model.embedding_dim=8
cp -R run edited
sed 's/^  activation: relu/  activation: sigmoid/' run/config.yaml >edited/config.yaml
cmp -s run/config.yaml edited/config.yaml && complain 'config.yaml has no activation: relu'
fails 4 'edited/model.safetensors: was not trained with model.activation=sigmoid' eval edited
sed 's/^  negative_rate: .*/  negative_rate: 0.5/' run/config.yaml >edited/config.yaml
fails 4 'was not trained with data.negative_rate=0.5' predict edited data/test.tsv --out edited.csv
fails 4 'was not trained with data.negative_rate=0.5' export edited --onnx edited.onnx

# 5: memory that the machine does not have, said before the first step.
fails 5 'GiB' train job.yaml --out x --set model.embedding_dim=65536 --set data.encoding=hash \
    --set data.rows=100000000
echo 'a file' >taken

# 2: a file where a folder is wanted, a folder where a file is.
for verb in train synth prepare compare; do
    fails 2 'taken: must be a folder, not a file' "$verb" job.yaml --out taken
    fails 2 "taken/below: 'taken' must be a folder, not a file" "$verb" job.yaml --out taken/below
done
fails 2 'taken' predict run data/test.tsv --out taken/test.csv
mkdir folder.csv folder.onnx folder.json folder.yaml
fails 2 'folder.csv: must be a file, not a folder' predict run data/test.tsv --out folder.csv
fails 2 'folder.onnx: must be a file, not a folder' export run --onnx folder.onnx
fails 2 'folder.json: must be a file, not a folder' train job.yaml --out untraced --quiet --trace folder.json
fails 2 'folder.yaml: must be a file, not a folder' plan job.yaml --world 2 --out folder.yaml
[ -z "$(find folder.csv folder.onnx folder.json folder.yaml -mindepth 1)" ] || complain 'a folder has got files'
[ ! -e folder.csv.tmp ] && [ ! -e folder.onnx.tmp ] || complain 'a temporary file is left'
