#!/bin/sh
# The same seed gives the same bits, with 1, 2 and 3 threads, for every model and its variants; and in two runs with as many
# threads. test_team.sh tries both kinds of threads.
# shellcheck source=tests/system/support.sh
. "$PH_SOURCE_DIR/tests/system/support.sh"

# digest CONFIG THREADS KEY=VALUE...: of the model that such a training ends with.
digest() {
    config=$1 threads=$2
    shift 2
    rm -rf run
    # shellcheck disable=SC2046 # two words of each
    succeeds train "$config" --out run --quiet --threads "$threads" $(printf ' --set %s' "$@") \
        --set model.hidden_units=200,72 --set model.batch_norm=true --set train.batch_size=1000 \
        --set train.max_gradient_norm=1 --set optimizer.embedding_l2=0.01 --set optimizer.embedding_scope=whole \
        --set train.report=false --set train.tensorboard=false
    value run/summary.json checkpoint_sha256
}

# same_bits CONFIG KEY=VALUE...
others='1 2 3'
same_bits() {
    config=$1
    shift
    first=$(digest "$config" 2 "$@")
    [ "${#first}" -eq 64 ] || complain "$*: '$first' is no digest"
    for threads in $others; do
        [ "$(digest "$config" "$threads" "$@")" = "$first" ] || complain "$*: $threads threads give another model"
    done
}

make_small_job
models=$(sed -n 's/^MODEL(\([a-z0-9_]*\)).*/\1/p' "$PH_SOURCE_DIR/src/model/models.def")
[ -n "$models" ] || complain 'no models found'
for kind in $models; do
    same_bits job.yaml train.epochs=1 model.kind="$kind"
    others='1 3'
done

# Variants name the features of this data set, some of which are lists.
cat >lists.yaml <<'END'
synth: {train_rows: 3500, valid_rows: 500, test_rows: 500, dense: 3, sparse: 3, planted: 3, table_rows: 40, bag_sizes: [1, 2, 3]}
END
succeeds synth lists.yaml --out lists
grep -v '^#' "$PH_SOURCE_DIR/tests/support/model_variants.txt" >variants
[ -s variants ] || complain 'no variants found'
while read -r variant; do
    # shellcheck disable=SC2086 # a list of words
    same_bits lists/synth.yaml train.epochs=1 model.dropout=0.1 $variant
done <variants
