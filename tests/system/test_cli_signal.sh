#!/bin/sh
# What is stopped by a signal ends by itself, with the signal's exit code; a training keeps the best model.
# shellcheck source=tests/system/support.sh
. "$PH_SOURCE_DIR/tests/system/support.sh"

make_small_job

# trains COMMAND...: a long training by COMMAND in the background, which has left a first model.
trains() {
    rm -rf run
    "$@" train job.yaml --out run --set train.epochs=100000 --set train.patience=0 --set train.schedule=constant \
        >stdout 2>stderr </dev/null &
    process=$!
    tries=0
    until [ -s run/model.safetensors ] || [ "$tries" -ge 600 ]; do
        sleep 0.1
        tries=$((tries + 1))
    done
}

# stopped SIGNAL STATUS
stopped() {
    # A background process of a shell ignores SIGINT, which a program inherits: env gives it back.
    trains env --default-signal=INT "$PH_BINARY_DIR/phloem"
    kill -s "$1" "$process"
    status=0
    wait "$process" || status=$?
    [ "$status" -eq "$2" ] || complain "after SIG$1 the program ended with $status; wanted $2"
    [ -s run/model.safetensors ] || complain "after SIG$1 there is no model"
    succeeds inspect run/model.safetensors
}

stopped INT 130
stopped TERM 143

# A signal that the program was started to ignore stays ignored, before the first one that counts and after it.
trains "$PH_BINARY_DIR/phloem"
kill -s INT "$process"
kill -s TERM "$process"
kill -s INT "$process" 2>/dev/null || true
ends 143
succeeds inspect run/model.safetensors

# predicting_stopped SIGNAL STATUS: a prediction that waits for rows leaves no file.
predicting_stopped() {
    rm -f rows.fifo
    mkfifo rows.fifo
    begins predict run rows.fifo --out predictions.csv
    exec 3>rows.fifo
    head -n 20 data/test.tsv >&3
    waits_for test -e predictions.csv.tmp
    kill -s "$1" "$process"
    ends "$2"
    exec 3>&-
    [ ! -e predictions.csv ] && [ ! -e predictions.csv.tmp ] || complain 'a stopped prediction has left a file'
    contains stderr 'predictions.csv is not written'
}

predicting_stopped INT 130
predicting_stopped TERM 143
