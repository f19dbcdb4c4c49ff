#!/bin/sh
# tools/scaling.py on a small staircase and a few steps: it makes the data, trains both parts, writes the page and the
# plots, and does not repeat what is finished; a page without all of it goes where it is told to, or nowhere.
# shellcheck source=tests/system/support.sh
. "$PH_SOURCE_DIR/tests/system/support.sh"

if ! command -v python3 >/dev/null; then
    echo 'test_scaling: skipped: python3 is not there'
    exit 77
fi

mkdir -p tools docs build/release configs
for tool in scaling comparisons bench_plots; do
    cp "$PH_SOURCE_DIR/tools/$tool.py" tools
done
cp -R "$PH_SOURCE_DIR"/configs/staircase "$PH_SOURCE_DIR"/configs/synthetic configs
ln -s "$PH_BINARY_DIR/phloem" build/release/phloem
sed -i 's/^  \(train\|valid\|test\)_rows: .*/  \1_rows: 2000/' configs/synthetic/staircase.yaml

# scale ARGUMENTS...: leaves what was printed in ./stdout and ./stderr.
scale() {
    status=0
    python3 tools/scaling.py --threads 1 --set train.max_steps=2 --set train.epochs=1 "$@" >stdout 2>stderr || status=$?
}

# makes ARGUMENTS...: scale ends with 0.
makes() {
    scale "$@"
    [ "$status" -eq 0 ] || complain "scaling.py $* ended with $status"
}

# refuses TEXT ARGUMENTS...: scale ends with 2, one line that contains TEXT, and nothing made.
refuses() {
    text=$1
    shift
    scale "$@"
    [ "$status" -eq 2 ] || complain "scaling.py $* ended with $status; wanted 2"
    contains stderr "$text"
    [ "$(wc -l <stderr)" -eq 1 ] || complain "scaling.py $*: wanted one line on stderr"
    [ ! -e build/synthetic ] && [ ! -e runs ] && [ ! -e docs/SCALING.md ] || complain "scaling.py $* has made something"
}

runs() {
    find runs -name summary.json -exec stat -c '%n %y' {} + | sort
}

refuses "argument --parts: 'layer' is none of layers, curve" --parts layer --write page.md
refuses "argument --models: 'dlmr' is none of wukong, dcn_v2, dlrm" --models wukong,dlmr --write page.md
refuses 'the page is a part of docs/SCALING.md' --parts layers
refuses 'the page is a part of docs/SCALING.md' --models dlrm,wukong

makes --seeds 1,2
contains stdout 'making build/synthetic/staircase'
for text in '| up to 8 | ' '| 4 | ' '| dlrm | embedding_dim 16, top_units 512,512,256 | ' '| dcn_v2 | ' '| wukong | ' \
    'Seeds 1, 2.' 'Everything with `train.max_steps=2`, `train.epochs=1`'; do
    contains docs/SCALING.md "$text"
done
for plot in layers flops; do
    python3 -c 'import sys, xml.dom.minidom; xml.dom.minidom.parse(sys.argv[1])' "docs/plots/staircase-$plot.svg" ||
        complain "docs/plots/staircase-$plot.svg is no XML"
done
[ "$(runs | wc -l)" -eq 23 ] || complain "wanted 8 runs of layers and 15 of sizes: $(runs)"

# The tables again, from the summaries alone; 12.706 is Student's t of one degree of freedom.
python3 - <<'END_OF_CHECK' || complain 'the page is not what the runs say'
import glob, json, math, re, statistics

def summaries(folder, stem):
    return [json.load(open(path)) for path in sorted(glob.glob(f"runs/scaling/{folder}/runs/{stem}-*-seed*/summary.json"))]

def near(text, value):
    return math.isclose(float(text), value, abs_tol=5.1e-5)

page = open("docs/SCALING.md").read()
rows = re.findall(r"^\| (\d) \| (\S+) ± (\S+) \| (\S+) ± (\S+) \| (\S+)(?: ± (\S+))? \| (\S+) \| (\S+) \|$", page, re.MULTILINE)
assert [row[0] for row in rows] == ["1", "2", "3", "4"], rows
fewer = None
for layers, logloss, deviation, ne, ne_deviation, difference, half_width, parameters, flops in rows:
    runs = summaries("layers", f"layers-{layers}")
    assert [run["seed"] for run in runs] == [1, 2], layers
    assert f"layers: {layers}\n" in open(f"runs/scaling/configs/layers-{layers}.yaml").read()
    tests = [run["test"]["logloss"] for run in runs]
    assert near(logloss, statistics.mean(tests)) and near(deviation, statistics.stdev(tests)), layers
    nes = [run["test"]["ne"] for run in runs]
    assert near(ne, statistics.mean(nes)) and near(ne_deviation, statistics.stdev(nes)), layers
    assert parameters == f"{runs[0]['parameters']:,}" and flops == f"{runs[0]['flops_per_sample']:,.0f}", layers
    if fewer is None:
        assert difference == "–"
    else:
        differences = [ours - theirs for ours, theirs in zip(tests, fewer)]
        assert near(difference, statistics.mean(differences)), layers
        assert near(half_width, 12.7062047 * statistics.stdev(differences) / math.sqrt(2)), layers
    fewer = tests

rows = re.findall(r"^\| (wukong|dcn_v2|dlrm) \| (.*) \| (\S+) \| (\S+) \| (\S+) \| (\S+) \|$", page, re.MULTILINE)
assert [row[0] for row in rows] == ["wukong"] * 5 + ["dcn_v2"] * 5 + ["dlrm"] * 5, rows
for i, (model, size, parameters, flops, ne, logloss) in enumerate(rows):
    [run] = summaries("curve", f"{model}-{i % 5 + 1}")
    assert run["model"] == model and run["seed"] == 1, model
    assert parameters == f"{run['parameters']:,}" and flops == f"{run['flops_per_sample']:,.0f}", size
    assert near(ne, run["test"]["ne"]) and near(logloss, run["test"]["logloss"]), size
    dim = re.search(r"embedding_dim (\d+)", size)[1]
    assert f"embedding_dim: {dim}\n" in open(f"runs/scaling/configs/{model}-{i % 5 + 1}.yaml").read(), size
END_OF_CHECK

# What is finished stays, and the page comes out the same; other settings are other runs.
runs >first
cp docs/SCALING.md first.md
makes --seeds 1,2
runs | cmp -s first - || complain 'a finished run was repeated'
cmp -s first.md docs/SCALING.md || complain 'the page is another one'
cp docs/plots/staircase-layers.svg first.svg
makes --seeds 1 --parts layers --set optimizer.learning_rate=0.002 --write part/page.md
[ "$(runs | wc -l)" -eq 27 ] || complain 'another learning rate was taken for the same run'
cmp -s first.md docs/SCALING.md || complain 'a part of the page went over the whole one'
cmp -s first.svg docs/plots/staircase-layers.svg || complain 'the plot of a part went over that of the whole'
contains part/page.md '](plots/staircase-layers.svg)'
contains part/plots/staircase-layers.svg 'seed 1'

# Data of another config are made again, and so are those of another program and those that are gone.
sed -i 's/^  scale: .*/  scale: 2/' configs/synthetic/staircase.yaml
makes --seeds 1 --parts layers --write page.md
contains stdout 'making build/synthetic/staircase'
contains build/synthetic/staircase/truth.json '"scale": 2'
rm build/release/phloem build/synthetic/staircase/valid.tsv
cp "$PH_BINARY_DIR/phloem" build/release/phloem
makes --seeds 1 --parts layers --write page.md
contains stdout 'making build/synthetic/staircase'
printf 'x' >>build/release/phloem
makes --seeds 1 --parts layers --write page.md
contains stdout 'making build/synthetic/staircase'
