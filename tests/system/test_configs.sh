#!/bin/sh
# Every config that we ship is understood, and says the same again once all its defaults are written out. MLPerf's, whose data no
# test can have, trains on a miniature of them.
# shellcheck source=tests/system/support.sh
. "$PH_SOURCE_DIR/tests/system/support.sh"

PHLOEM_DATA=${PHLOEM_DATA:-$PH_SOURCE_DIR/../shared/data}
MLPERF_DATA=$work/mlperf
export PHLOEM_DATA MLPERF_DATA

for config in "$PH_SOURCE_DIR"/configs/*/*.yaml; do
    case $config in */configs/topology/*) continue ;; esac # clusters, which test_cli_sim.sh reads
    succeeds config "$config"
    cp stdout whole.yaml
    succeeds config whole.yaml
    cmp -s stdout whole.yaml || complain "$config: with all defaults written out it is another config"
done

# ---- MLPerf's DLRM-DCNv2: its own widths, all tables of at most 100 rows ----
mkdir -p mlperf/valid
python3 "$PH_SOURCE_DIR/tests/system/mlperf_arrays.py" mlperf/day_0 2048 $((2 * seed - 1))
python3 "$PH_SOURCE_DIR/tests/system/mlperf_arrays.py" mlperf/valid/day_23 1024 $((2 * seed))
set -- "$PH_SOURCE_DIR/configs/criteo/dlrm_dcnv2.yaml" --set train.batch_size=128 --set train.evaluate_steps=0 \
    --set train.epochs=3 --set seed="$seed"
rows=$((3 + 63 + 10 + 4 + 14 + 36))
for feature in 1 2 3 4 5 7 8 10 11 12 14 15 16 18 20 21 22 23 24 25; do
    set -- "$@" --set "data.fields[C$feature].rows=100"
    rows=$((rows + 100))
done
succeeds train "$@" --out run --quiet

# MLPerf's count of parameters: bottom 13-512-256-128, three cross layers of rank 512 over 27 vectors of 128, top.
width=$((27 * 128))
wanted=$((rows * 128 + 13 * 512 + 512 + 512 * 256 + 256 + 256 * 128 + 128 + 3 * (2 * width * 512 + width) + \
    width * 1024 + 1024 + 1024 * 1024 + 1024 + 1024 * 512 + 512 + 512 * 256 + 256 + 256 + 1))
parameters=$(value run/summary.json parameters)
[ "$parameters" -eq "$wanted" ] || complain "DLRM-DCNv2 has $parameters parameters; wanted $wanted"
sed -n '/"valid": {/,/}/p' run/summary.json >valid.json
auc=$(value valid.json auc)
learned configs.dlrm_dcnv2.auc "$auc" '>=' 0.9 # which can be .95
