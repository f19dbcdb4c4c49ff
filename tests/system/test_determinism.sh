#!/bin/sh
# The same seed gives the same bits: twice, and with 1, 2 and 3 threads, for every model.
# shellcheck source=tests/system/support.sh
. "$PH_SOURCE_DIR/tests/system/support.sh"

make_small_job

# digest THREADS KIND: of the model that such a training ends with.
digest() {
    rm -rf run
    succeeds train job.yaml --out run --quiet --threads "$1" --set model.kind="$2" \
        --set model.hidden_units=200,72 --set model.batch_norm=true --set train.batch_size=1000 \
        --set train.max_gradient_norm=1 --set optimizer.embedding_l2=0.01 --set optimizer.embedding_scope=whole
    value run/summary.json checkpoint_sha256
}

models=$(sed -n 's/^MODEL(\([a-z0-9_]*\)).*/\1/p' "$PH_SOURCE_DIR/src/model/models.def")
[ -n "$models" ] || complain 'no models found'
for kind in $models; do
    first=$(digest 2 "$kind")
    [ "${#first}" -eq 64 ] || complain "$kind: '$first' is no digest"
    for threads in 1 2 3; do
        [ "$(digest "$threads" "$kind")" = "$first" ] || complain "$kind: $threads threads give another model"
    done
done
