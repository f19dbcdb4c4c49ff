#!/bin/sh
# A training that is stopped by a signal or killed at any moment, and resumed, ends as one that was not; what may not be
# resumed is refused.
# shellcheck source=tests/system/support.sh
. "$PH_SOURCE_DIR/tests/system/support.sh"

make_resume_job
succeeds train job.yaml --out whole --quiet

# ---- signals: the step is finished and saved ----
# stopped SIGNAL STATUS: behind some step of the second epoch.
stopped() {
    rm -rf run
    begins train job.yaml --out run --quiet
    waits_for grep -q '"step":2[0-9]' run/metrics.jsonl
    kill -s "$1" "$process" 2>/dev/null || complain "the training has ended before SIG$1"
    ends "$2"
    contains stderr 'run/checkpoints/step-0000000000'
    contains stderr '--resume'
    [ "$(wc -l <stderr)" -eq 1 ] || complain 'wanted one line on stderr'
    succeeds train job.yaml --out run --resume
    contains stdout 'resumed at step'
    same_run whole run
}
stopped INT 130
stopped TERM 143

# A second signal ends it at once, without harm.
rm -rf run
begins train job.yaml --out run --quiet
waits_for test -s run/checkpoints/step-000000000009.safetensors
kill -s TERM "$process" 2>/dev/null || true
kill -s INT "$process" 2>/dev/null || true
wait "$process" || true
succeeds train job.yaml --out run --resume --quiet
same_run whole run

# ---- kill -9 ----
# killed COMMAND...: once the command succeeds.
killed() {
    begins train job.yaml --out run --resume --quiet
    waits_for "$@"
    kill -s KILL "$process" 2>/dev/null || true
    wait "$process" 2>/dev/null || true
}
is_saving() {
    for file in run/checkpoints/step-*.tmp; do
        [ -e "$file" ] && return 0
    done
    return 1
}
has_step() {
    grep -q "\"step\":$1," run/metrics.jsonl
}
# killed_amid PATTERN COMMAND...: tries until the kill has left a file of that pattern half written.
killed_amid() {
    pattern=$1 tries=0
    shift
    while [ "$tries" -lt 20 ]; do
        killed "$@"
        tries=$((tries + 1))
        [ -z "$(find run -name "$pattern")" ] || break
    done
    echo "$name: left $(find run -name "$pattern" | head -n 1) after $tries tries"
}
rm -rf run
killed true                                 # before it has done anything
killed test -e run/encoder.json             # without a checkpoint
killed has_step 2                           # in an epoch, without a checkpoint
killed_amid 'step-*.tmp' is_saving          # while a checkpoint is written
killed has_step 17                          # in an epoch
killed_amid 'model.safetensors.tmp' test -e run/model.safetensors.tmp # while the best model is written
killed has_step 40                          # at the end of an epoch
killed has_step 65
killed test -e run/summary.json             # at the end, or while it ends
succeeds train job.yaml --out run --resume --quiet
same_run whole run
[ -z "$(find run -name '*.tmp')" ] || complain 'half-written files were left'

# ---- nothing left to do, and more to do ----
cp -R run before
succeeds train job.yaml --out run --resume
contains stdout 'holds a finished training: nothing to do'
diff -r run before || complain 'a finished training was changed'
rm -rf run
succeeds train job.yaml --out run --quiet --set train.epochs=1
succeeds train job.yaml --out run --quiet --resume --set train.max_steps=33
succeeds train job.yaml --out run --quiet --resume
same_run whole run

# ---- what may change ----
rm -rf run
succeeds train job.yaml --out run --quiet --set train.max_steps=30
cp -R data elsewhere
succeeds train job.yaml --out run --quiet --resume --threads 1 --set data.train=elsewhere/train.tsv \
    --set data.valid=elsewhere/valid.tsv --set data.prefetch=0 --set train.checkpoint_steps=0
same_run whole run
contains run/config.yaml 'elsewhere/train.tsv'
fails 2 "train.batch_size was '200' and is now '100'" train job.yaml --out run --resume --set train.batch_size=100
fails 2 "seed was '5' and is now '6'" train job.yaml --out run --resume --set seed=6
fails 2 'train.epochs is 2' train job.yaml --out run --resume --set train.epochs=2

# ---- a folder that is not empty ----
fails 2 '--resume' train job.yaml --out run
fails 4 'holds no training' train job.yaml --out data --resume
mkdir empty
succeeds train job.yaml --out empty --resume --quiet
same_run whole empty

# ---- damage ----
flip_last_byte() {
    size=$(wc -c <"$1")
    last=$(tail -c 1 "$1" | od -An -tu1)
    # shellcheck disable=SC2059
    printf "$(printf '\\%03o' $(((last + 1) % 256)))" | dd of="$1" bs=1 seek=$((size - 1)) conv=notrunc 2>/dev/null
}
rm -rf run
succeeds train job.yaml --out run --quiet --set train.max_steps=44
flip_last_byte run/checkpoints/step-000000000044.safetensors
phloem train job.yaml --out run --resume --quiet
[ "$status" -eq 0 ] || complain 'one damaged checkpoint is too much'
[ "$(wc -l <stderr)" -eq 1 ] || complain 'wanted one line on stderr'
contains stderr 'step-000000000044.safetensors'
contains stderr 'resuming from step 42'
same_run whole run
for file in run/checkpoints/step-*; do
    flip_last_byte "$file"
done
fails 4 'no valid checkpoint' train job.yaml --out run --resume
cp run/model.safetensors run/checkpoints/step-000000000080.safetensors
fails 4 'not a checkpoint to resume from' train job.yaml --out run --resume
echo 'not a checkpoint' >run/checkpoints/step-000000000081.safetensors
fails 4 'step-000000000081.safetensors' train job.yaml --out run --resume

# ---- nothing to learn ----
fails 2 'train.epochs' train job.yaml --out none --set train.epochs=0
succeeds train job.yaml --out one --quiet --set train.batch_size=16777216
[ "$(value one/summary.json steps)" -eq 4 ] || complain 'a batch of all the data is not one step an epoch'
