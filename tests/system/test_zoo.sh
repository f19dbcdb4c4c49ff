#!/bin/sh
# Every model of the zoo trains from real lines of Criteo as they are, learns something, and scores the file again.
# shellcheck source=tests/system/support.sh
. "$PH_SOURCE_DIR/tests/system/support.sh"

PHLOEM_DATA=${PHLOEM_DATA:-$PH_SOURCE_DIR/../shared/data}
export PHLOEM_DATA
lines=$PHLOEM_DATA/criteo/first10k.tsv.zst
[ -r "$lines" ] || {
    echo "$name: skipped: there is no file $lines (\$PHLOEM_DATA)" >&2
    exit 77
}

succeeds models
kinds=$(sed -n 's/^  \([a-z0-9_]*\) .*/\1/p' stdout)
[ "$(echo "$kinds" | wc -l)" -ge 17 ] || complain "phloem models lists too few: $kinds"
for kind in $kinds; do
    rate=0.01
    [ "$kind" != lr ] || rate=0.03 # its weights go far
    succeeds train "$PH_SOURCE_DIR/configs/criteo/sample.yaml" --out "$kind" --quiet --set model.kind="$kind" \
        --set seed="$seed" --set optimizer.learning_rate="$rate" --set train.batch_size=250 --set train.epochs=1
    sed -n '/"valid": {/,/}/p' "$kind/summary.json" >valid.json
    auc=$(value valid.json auc)
    learned "zoo.$kind.auc" "$auc" '>=' 0.7 # on the lines that it was trained on
    learned "zoo.$kind.auc" "$auc" '<=' 0.999
    succeeds predict "$kind" "$lines" --out predictions.csv
    [ "$(wc -l <predictions.csv)" -eq 10001 ] || complain "$kind: wanted 10000 predictions"
done
