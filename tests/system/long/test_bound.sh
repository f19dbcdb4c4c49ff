#!/bin/sh
# A trained DLRM comes within .005 AUC of the best that the true model reaches, on data where every id of the planted
# features occurs more than 1,000 times; and its memory stays within what the run promises.
# shellcheck source=tests/system/support.sh
. "$PH_SOURCE_DIR/tests/system/support.sh"

config=$PH_SOURCE_DIR/configs/synthetic/bound.yaml
succeeds synth "$config" --out build/synthetic/bound --set synth.seed="$seed"
succeeds train "$config" --out run --quiet --set seed="$seed"

# test_number FILE KEY: from the object "test".
test_number() {
    sed -n "/^ *\"test\": {/,/}/ s/^ *\"$2\": \([-+.0-9eE]*\),\{0,1\}\$/\1/p" "$1"
}

# The rarest id of each planted feature (all columns C*) in the training file.
rarest=$(awk -F '\t' 'NR == 1 { for (i = 1; i <= NF; i++) if ($i ~ /^C/) ids[i]; next }
    { for (i in ids) count[i, $i]++ }
    END { for (key in count) if (least == 0 || count[key] < least) least = count[key]; print least }' \
    build/synthetic/bound/train.tsv)
[ "$rarest" -ge 1000 ] || complain "an id occurs only $rarest times"

ours=$(test_number run/summary.json auc)
best=$(test_number build/synthetic/bound/truth.json auc)
echo "$name: test AUC $ours, of the true model $best, rarest id $rarest times"
learned bound.auc_distance "$(awk -v ours="$ours" -v best="$best" \
    'BEGIN { print (ours > best ? ours - best : best - ours) }')" '<=' 0.005

peak=$(value run/summary.json peak_anonymous_bytes)
limit=$(value run/summary.json limit_bytes)
echo "$name: peak anonymous memory $peak bytes, promised $limit"
[ "$peak" -le "$limit" ] || complain "peak anonymous memory $peak is above $limit"
