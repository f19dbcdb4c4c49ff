#!/bin/sh
# The demo behind ./run demo: makes a synthetic data set whose best possible model is known, trains a small DLRM on it,
# and shows the test metrics beside that bound. Called at the root of the tree, after the build.
set -eu

phloem=build/release/phloem
data=build/demo
out=runs/demo

# number FILE KEY KEY: the number at two nested keys of a JSON file that phloem wrote, one key a line.
number() {
    sed -n "/^ *\"$2\": *{/,/}/ s/^ *\"$3\": *\([-+.0-9eE]*\),*\$/\1/p" "$1"
}

if [ ! -e "$data/truth.json" ]; then
    echo "demo: making a Criteo-like data set in $data"
    "$phloem" synth --out "$data" --set synth.format=criteo
fi

echo "demo: training the DLRM of configs/demo/dlrm.yaml"
"$phloem" train configs/demo/dlrm.yaml --out "$out"

auc=$(number "$out/summary.json" test auc)
logloss=$(number "$out/summary.json" test logloss)
best_auc=$(number "$data/truth.json" test auc)
best_logloss=$(number "$data/truth.json" test logloss)
cat <<END

On the test rows        AUC      logloss
  this model         $(printf '%.4f   %.4f' "$auc" "$logloss")
  the true model     $(printf '%.4f   %.4f' "$best_auc" "$best_logloss")   (which drew the labels: nothing can do better for long)

The model is in       $out/model.safetensors
the metrics are in    $out/summary.json and $out/metrics.jsonl

What to try next
  $phloem train configs/demo/dlrm.yaml --out runs/deepfm --set model.kind=deepfm
  $phloem inspect $out/model.safetensors
  $phloem config --help
END
