#!/bin/sh
# Prints the exit code of each command below, a tab, and the command: what the program makes of mistakes. baseline_facts.py runs
# it in a folder with data/ and a job.yaml that trains on them; phloem is the first in PATH.
set -eu

# tries ARGUMENTS...: of phloem.
tries() {
    code=0
    rm -rf x
    timeout 60 phloem "$@" >/dev/null 2>&1 </dev/null || code=$?
    printf '%s\t%s\n' "$code" "$*"
}

# gives COMMAND: of a shell, which may limit, pipe and redirect.
gives() {
    code=0
    timeout 60 sh -c "$1" >/dev/null 2>&1 </dev/null || code=$?
    printf '%s\t%s\n' "$code" "$1"
}

# ---- the command line ----
tries
for verb in --help --version help trian; do tries "$verb"; done
for verb in train compare tune prepare synth eval predict export plan inspect models hub; do
    tries "$verb" --no-such-flag
done
for verb in train compare tune prepare eval predict export plan inspect; do tries "$verb"; done
tries models no_such_model
tries train job.yaml
tries train nowhere.yaml --out x
tries train job.yaml --out ''
gives 'phloem config >/dev/full'
gives 'phloem --help >&-'

# ---- config ----
echo 'model: [' >broken.yaml
printf 'model:\n\tkind: lr\n' >tab.yaml
echo 'modle: {kind: lr}' >unknown.yaml
for config in broken tab unknown; do tries train $config.yaml --out x; done
for set in model.kind=oracle model.knid=lr seed=-1 seed=1e39 threads=1025 threads=two data.train= data.format=parquet \
    data.train=- data.valid=- data.negative_rate=0 train.epochs=0 train.batch_size=0 train.batch_size=4.5 train.max_steps=-1 \
    train.precision=fp8 train.row_format=int8 train.accumulation_steps=201 train.progressive=true train.schedule=often \
    optimizer.kind=lion optimizer.learning_rate=1e39 optimizer.learning_rate=nan parallel.plan=nowhere.yaml parallel.sync=hub \
    parallel.transport=udp tune.ranges= published.auc=2 synth.sparse=0; do
    tries train job.yaml --out x --set train.max_steps=2 --set "$set"
done
tries train job.yaml --out x --set 'data.train=$NOT_SET/train.tsv'
gives 'PHLOEM_ISA=mmx phloem train job.yaml --out x'

# ---- data ----
head -n 20 data/train.tsv >cut.tsv
printf '1\t1\n' >>cut.tsv
sed '3s/^[01]/maybe/' data/train.tsv >label.tsv
sed '1s/C1/E1/' data/train.tsv >column.tsv
sed '2,$s/^[01]//' data/train.tsv >blank.tsv
head -n 1 data/train.tsv >header.tsv
: >empty.tsv
for file in absent cut label column blank header empty; do
    tries train job.yaml --out x --set train.max_steps=2 --set data.train=$file.tsv
    tries prepare job.yaml --out x --set data.train=$file.tsv
done
tries train job.yaml --out x --set data.train=cut.tsv --set data.max_bad_rows=1 --set train.max_steps=2

# ---- a run's folder ----
tries train job.yaml --out run --quiet --set train.epochs=2
tries train job.yaml --out run
tries train job.yaml --out run --resume
tries train job.yaml --out run --resume --set seed=6
tries train job.yaml --out run --resume --set train.epochs=1
tries train job.yaml --out data --resume
tries eval run
tries eval run label.tsv
tries eval run column.tsv
tries eval run --set model.embedding_dim=8
tries eval nowhere
tries eval data
tries predict run data/test.tsv --out -
tries predict run data/test.tsv --out data/test.tsv
tries predict run data/test.tsv --out nowhere/x.csv
tries predict run data/test.tsv --out x.csv --precision fp16
tries export run
tries export run --onnx run/model.safetensors
tries inspect run/model.safetensors
tries inspect run
tries inspect prepared
for damage in changed short; do
    for file in encoder.json model.safetensors config.yaml checkpoints; do
        folder=$damage.$file
        cp -R run "$folder"
        for part in run/$file run/$file/*; do
            case $damage in changed) edit='s/:/;/' ;; short) edit='$d' ;; esac
            [ ! -f "$part" ] || LC_ALL=C sed "$edit" "$part" >"$folder/${part#run/}"
        done
        tries inspect "$folder/$file"
        tries eval "$folder"
        tries train job.yaml --out "$folder" --resume
    done
done

# ---- folders and memory ----
echo 'a file' >taken
tries train job.yaml --out taken
tries synth synth.yaml --out taken
tries synth synth.yaml --out data
tries prepare job.yaml --out data
tries prepare job.yaml --out prepared --quiet
tries prepare job.yaml --out prepared
tries prepare job.yaml --out prepared --resume
tries train job.yaml --out /dev/null/x
tries train job.yaml --out x --set model.top_units=1048576,1048576
tries train job.yaml --out x --set data.prepared=data
gives 'ulimit -n 40; timeout 2 phloem hub --address 127.0.0.1:0'

# ---- the other verbs ----
tries plan job.yaml
tries plan job.yaml --world 0
tries plan job.yaml --world 2 --rank-memory 1000
tries plan job.yaml --world 4 --ranks-per-host 3
tries compare job.yaml --out x --seeds 0
tries compare job.yaml job.yaml --out x
tries tune job.yaml --out x --runs 0
tries hub --address nonsense
tries hub --address 0.0.0.0:0
tries hub --set hub.chunk_bytes=100
tries hub status nonsense
tries hub status 127.0.0.1:1
tries hub bench 127.0.0.1:1
tries hub destroy 127.0.0.1:1 job

# ---- signals ----
for signal in INT TERM; do
    gives "timeout --preserve-status -s $signal 2 phloem train job.yaml --out stopped.$signal --quiet --set train.epochs=1000000"
done
