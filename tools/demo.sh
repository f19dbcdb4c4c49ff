#!/bin/sh
# The demo behind ./run demo: makes a synthetic data set whose best possible model is known, trains a small DLRM on it,
# and shows the test metrics beside that bound. Called at the root of the tree, after the build.
#
# usage: demo.sh [ARGUMENTS OF PHLOEM TRAIN...]
set -eu

phloem=build/release/phloem
config=configs/demo/dlrm.yaml
data=build/demo
out=runs/demo

# test_number FILE KEY: from the object "test" of a JSON file that phloem wrote, one member a line.
test_number() {
    sed -n "/^ *\"test\": {/,/}/ s/^ *\"$2\": \([-+.0-9eE]*\),\{0,1\}\$/\1/p" "$1"
}

# The data is made once; a changed config makes it anew.
if ! cmp -s "$config" "$data/made_by.yaml"; then
    echo "demo: making Criteo-like data in $data: a known model draws the labels"
    rm -rf "$data"
    "$phloem" synth "$config" --out "$data"
    cp "$config" "$data/made_by.yaml"
    echo
fi

echo "demo: training by $config"
rm -rf "$out" # of the last demo: train leaves a folder that is not empty alone
"$phloem" train "$config" --out "$out" "$@"

ours=$out/summary.json best=$data/truth.json
cat <<END

On the test rows          AUC   logloss
  this model           $(printf '%.4f    %.4f' "$(test_number "$ours" auc)" "$(test_number "$ours" logloss)")
  the true model       $(printf '%.4f    %.4f' "$(test_number "$best" auc)" "$(test_number "$best" logloss)")   it drew the labels: nothing can do better but by luck

model    $out/model.safetensors
metrics  $out/summary.json, and $out/metrics.jsonl as it went

What to try next
  $phloem train $config --out runs/deepfm --set model.kind=deepfm
  $phloem train $config --out runs/profiled --profile
  $phloem eval $out $data/valid.tsv
  $phloem inspect model $out
  $phloem config --docs
END
