#!/bin/sh
# A training that is stopped by a signal ends by itself, with the signal's exit code and the best model kept.
# shellcheck source=tests/system/support.sh
. "$PH_SOURCE_DIR/tests/system/support.sh"

make_small_job

# stopped SIGNAL STATUS
stopped() {
    rm -rf run
    # A background process of a shell ignores SIGINT, which a program inherits: env gives it back.
    env --default-signal=INT "$PH_BINARY_DIR/phloem" train job.yaml --out run --set train.epochs=100000 \
        --set train.patience=0 --set train.schedule=constant >stdout 2>stderr </dev/null &
    process=$!
    tries=0
    until [ -s run/model.safetensors ] || [ "$tries" -ge 600 ]; do
        sleep 0.1
        tries=$((tries + 1))
    done
    kill -s "$1" "$process"
    status=0
    wait "$process" || status=$?
    [ "$status" -eq "$2" ] || complain "after SIG$1 the program ended with $status; wanted $2"
    [ -s run/model.safetensors ] || complain "after SIG$1 there is no model"
    succeeds inspect run/model.safetensors
}

stopped INT 130
stopped TERM 143
