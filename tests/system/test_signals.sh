#!/bin/sh
# Signals at any moment: each verb ends soon with the signal's exit code, and leaves nothing half written. The moments are drawn by
# PH_TEST_SEED; PH_TEST_SIGNALS says how many of them each verb gets.
# shellcheck source=tests/system/support.sh
. "$PH_SOURCE_DIR/tests/system/support.sh"

seed=${PH_TEST_SEED:-$$}
signals=${PH_TEST_SIGNALS:-1}
echo "$name: PH_TEST_SEED=$seed"

# draws MOST: the next number below MOST, in $drawn.
drawn=0
draws() {
    seed=$(((seed * 1103515245 + 12345) % 2147483648))
    drawn=$((seed / 65536 % $1))
}

# hears SIGNAL STATUS MOST_MS ARGUMENTS...: phloem gets SIGNAL within MOST_MS of its start and ends with STATUS, or with 0 where it was
# at its end.
hears() {
    signal=$1 wanted=$2
    draws "$3"
    shift 3
    begins "$@"
    sleep "$(printf '%d.%03d' $((drawn / 1000)) $((drawn % 1000)))"
    kill -s "$signal" "$process" 2>/dev/null || true
    status=0
    wait "$process" || status=$?
    if [ "$status" -ne "$wanted" ] && [ "$status" -ne 0 ]; then
        complain "SIG$signal after $drawn ms of phloem $*: ended with $status; wanted $wanted"
    fi
}

# hears_endless SIGNAL STATUS ARGUMENTS...: the same of phloem that reads rows without end, and so ends with STATUS alone.
hears_endless() {
    signal=$1 wanted=$2
    shift 2
    mkfifo endless
    { while tail -n +2 data/train.tsv; do :; done; } >endless 2>feeding &
    env --default-signal=INT "$PH_BINARY_DIR/phloem" "$@" <endless >stdout 2>stderr &
    process=$!
    draws 900
    sleep "$(printf '0.%03d' "$drawn")"
    kill -s "$signal" "$process"
    ends "$wanted"
    rm endless
}

# both MOST_MS ARGUMENTS...: the same with both signals, again and again.
both() {
    turn=0
    while [ "$turn" -lt "$signals" ]; do
        reset
        hears TERM 143 "$@"
        check
        reset
        hears INT 130 "$@"
        check
        turn=$((turn + 1))
    done
}
reset() { rm -rf out; }
check() {
    left=$(find . -name '*.tmp')
    [ -z "$left" ] || complain "a signal has left $left"
}

cat >job.yaml <<'END'
seed: 1
threads: 2
data: {train: data/train.tsv, valid: data/valid.tsv, test: data/test.tsv, format: criteo}
model: {kind: dlrm, embedding_dim: 16, bottom_units: [256, 64], top_units: [256, 128]}
train: {epochs: 2, batch_size: 1024, report_seconds: 1, checkpoint_steps: 20}
synth: {train_rows: 30000, valid_rows: 20000, test_rows: 20000, table_rows: 20000, format: criteo}
END
succeeds synth job.yaml --out data
succeeds train job.yaml --out run --quiet --set train.max_steps=10
succeeds prepare job.yaml --out prepared

# Tables that take seconds to fill.
cat >wide.yaml <<'END'
seed: 1
threads: 2
data:
  train: ids.csv
  format: csv
  encoding: hash
  rows: 1000000
  fields: [{name: label, kind: label}, {name: user, kind: id}]
model: {kind: dnn, embedding_dim: 64, hidden_units: [8]}
train: {epochs: 1000, batch_size: 100, report_seconds: 1}
END
awk 'BEGIN { print "label,user"; for (i = 0; i < 1000; i++) printf "%d,%d\n", i % 3 == 0, i }' >ids.csv
both 1000 train wide.yaml --out out

# What a training has left, if anything, can be gone on with.
check_training() {
    check
    [ -d out/checkpoints ] || return 0
    cp -R out resumed
    succeeds train job.yaml --out resumed --quiet --resume
    rm -rf resumed
}
turn=0
while [ "$turn" -lt $((2 * signals)) ]; do
    reset
    hears TERM 143 800 train job.yaml --out out
    check_training
    turn=$((turn + 1))
done

both 400 eval run data/train.tsv
hears_endless TERM 143 eval run -
hears_endless INT 130 predict run - --out -
both 400 inspect data job.yaml
both 200 inspect run/model.safetensors
check_predictions() {
    check
    [ "$status" -eq 0 ] || [ ! -e out.csv ] || complain 'a stopped prediction has left a file'
}
turn=0
while [ "$turn" -lt "$signals" ]; do
    rm -f out.csv
    hears TERM 143 400 predict run data/train.tsv --out out.csv
    check_predictions
    turn=$((turn + 1))
done
both 300 export run --onnx out.onnx

# What goes on later may be killed at a bad moment, and cleans up then.
check() { :; }
both 600 prepare job.yaml --out out --quiet
both 1200 compare job.yaml --out out --seeds 3 --set train.max_steps=15
rm -rf out
hears TERM 143 700 prepare job.yaml --out out --quiet
succeeds prepare job.yaml --out out --resume --quiet
cmp -s out/encoder.json prepared/encoder.json || complain 'stopped by a signal and resumed, the encoder is another'
