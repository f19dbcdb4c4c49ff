#!/bin/sh
# tools/scaling.py on a small staircase and a few steps: it makes the data, trains both parts, writes the page and the
# plots, and does not repeat what is finished.
# shellcheck source=tests/system/support.sh
. "$PH_SOURCE_DIR/tests/system/support.sh"

if ! command -v python3 >/dev/null; then
    echo 'test_scaling: skipped: python3 is not there'
    exit 77
fi

mkdir -p tools docs build/release configs
cp "$PH_SOURCE_DIR"/tools/scaling.py "$PH_SOURCE_DIR"/tools/bench_plots.py tools
cp -R "$PH_SOURCE_DIR"/configs/staircase "$PH_SOURCE_DIR"/configs/synthetic configs
ln -s "$PH_BINARY_DIR/phloem" build/release/phloem
sed -i 's/^  \(train\|valid\|test\)_rows: .*/  \1_rows: 2000/' configs/synthetic/staircase.yaml

# scale ARGUMENTS...: leaves what was printed in ./stdout and ./stderr.
scale() {
    status=0
    python3 tools/scaling.py --threads 1 --set train.max_steps=2 --set train.epochs=1 "$@" >stdout 2>stderr || status=$?
    [ "$status" -eq 0 ] || complain "scaling.py $* ended with $status"
}

runs() {
    find runs -name summary.json -exec stat -c '%n %y' {} + | sort
}

scale --seeds 1,2 --models dlrm,dcn_v2
contains stdout 'making build/synthetic/staircase'
for text in '| up to 8 | ' '| 4 | ' '| dlrm | embedding_dim 16, top_units 512,512,256 | ' '| dcn_v2 | ' 'Seeds 1,2.'; do
    contains docs/SCALING.md "$text"
done
for plot in layers flops; do
    python3 -c 'import sys, xml.dom.minidom; xml.dom.minidom.parse(sys.argv[1])' "docs/plots/staircase-$plot.svg" ||
        complain "docs/plots/staircase-$plot.svg is no XML"
done
[ "$(runs | wc -l)" -eq 18 ] || complain "wanted 8 runs of layers and 10 of sizes: $(runs)"

# What is finished stays, and the page comes out the same; other settings are other runs.
runs >first
cp docs/SCALING.md first.md
scale --seeds 1,2 --models dlrm,dcn_v2
runs | cmp -s first - || complain 'a finished run was repeated'
cmp -s first.md docs/SCALING.md || complain 'the page is another one'
scale --seeds 1 --parts layers --set optimizer.learning_rate=0.002
[ "$(runs | wc -l)" -eq 22 ] || complain 'another learning rate was taken for the same run'

# Data of another config are made again.
sed -i 's/^  scale: .*/  scale: 2/' configs/synthetic/staircase.yaml
scale --seeds 1 --parts layers
contains stdout 'making build/synthetic/staircase'
contains build/synthetic/staircase/truth.json '"scale": 2'
