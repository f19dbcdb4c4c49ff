#!/bin/sh
# tools/dhen_pairs.py on a small synthetic set and a few steps: DHEN trains with each module, with every pair and with
# all of them, the page says what the runs say, and what is finished is not repeated.
# shellcheck source=tests/system/support.sh
. "$PH_SOURCE_DIR/tests/system/support.sh"

if ! command -v python3 >/dev/null; then
    echo "$name: skipped: python3 is not there"
    exit 77
fi

make_small_job
sed "s|data/|$work/data/|g; s/kind: dlrm, embedding_dim: 4/kind: dhen/" job.yaml >dhen.yaml
mkdir -p tools docs build/release
for tool in dhen_pairs comparisons bench_plots; do
    cp "$PH_SOURCE_DIR/tools/$tool.py" tools
done
ln -s "$PH_BINARY_DIR/phloem" build/release/phloem

# trains ARGUMENTS...: leaves what was printed in ./stdout and ./stderr.
trains() {
    status=0
    python3 tools/dhen_pairs.py --config dhen.yaml --threads 1 --seeds 1,2 --l2 0.02,0.5 --set train.max_steps=3 "$@" \
        >stdout 2>stderr || status=$?
}

trains
[ "$status" -eq 0 ] || complain "dhen_pairs.py ended with $status"
contains docs/DHEN.md '`train.max_steps=3`'
[ "$(grep -o 'train.max_steps=[0-9]*' docs/DHEN.md | wc -l)" -eq 1 ] || complain 'a setting is told twice'
contains docs/DHEN.md 'Seeds 1, 2: 64 runs finished'
python3 -c 'import sys, xml.dom.minidom; xml.dom.minidom.parse(sys.argv[1])' docs/plots/dhen-pairs.svg ||
    complain 'dhen-pairs.svg is no XML'

# The table again, from the summaries alone; 12.706 is Student's t of one degree of freedom.
python3 - <<'END_OF_CHECK' || complain 'the page is not what the runs say'
import glob, itertools, json, math, re, statistics

modules = ["dot", "attention", "convolution", "linear", "cross"]
choices = modules + ["+".join(pair) for pair in itertools.combinations(modules, 2)] + ["all"]
ne, valid, l2s = {}, {}, {}
for choice, l2 in itertools.product(choices, ("0.02", "0.5")):
    stem = f"{choice}-{l2}"
    runs = [json.load(open(path)) for path in sorted(glob.glob(f"runs/dhen_pairs/runs/{stem}-*-seed*/summary.json"))]
    assert [run["seed"] for run in runs] == [1, 2], stem
    for run in runs:
        assert run["model"] == "dhen" and 0 <= run["test"]["auc"] <= 1 and run["parameters"] > 0, stem
    config = open(f"runs/dhen_pairs/configs/{stem}.yaml").read()
    wanted = ", ".join(f'"{module}"' for module in (modules if choice == "all" else choice.split("+")))
    assert f'modules: [{wanted}]' in config and f"embedding_l2: {l2}" in config, config
    logloss = statistics.mean(run["valid"]["logloss"] for run in runs)
    if choice not in valid or logloss < valid[choice]:
        ne[choice], valid[choice], l2s[choice] = [run["test"]["ne"] for run in runs], logloss, l2
best = min(modules, key=valid.get)
pair = min((choice for choice in choices if "+" in choice), key=valid.get)
page = open("docs/DHEN.md").read()
assert f"validation data, {best} and {pair}." in page
rows = re.findall(r"^\| ([a-z+]+) \| (\S+) \| (\d\.\d+) ± (\d\.\d+) \|.*\| (\S+)(?: ± (\S+))? \|$", page, re.MULTILINE)
assert [row[0] for row in rows] == sorted(choices, key=lambda choice: statistics.mean(ne[choice])), rows
for choice, l2, mean, deviation, difference, half_width in rows:
    assert l2 == l2s[choice], choice
    assert math.isclose(float(mean), statistics.mean(ne[choice]), abs_tol=5.1e-5), choice
    assert math.isclose(float(deviation), statistics.stdev(ne[choice]), abs_tol=5.1e-5), choice
    if choice == best:
        assert difference == "–"
        continue
    differences = [ours - theirs for ours, theirs in zip(ne[choice], ne[best])]
    assert math.isclose(float(difference), statistics.mean(differences), abs_tol=5.1e-5), choice
    width = 12.7062047 * statistics.stdev(differences) / math.sqrt(2)
    assert math.isclose(float(half_width), width, abs_tol=5.1e-5), choice
END_OF_CHECK

# What is finished stays, and the page comes out the same.
runs() {
    find runs -name summary.json -exec stat -c '%n %y' {} + | sort
}
runs >first
cp docs/DHEN.md first.md
trains
[ "$status" -eq 0 ] || complain "dhen_pairs.py ended with $status"
runs | cmp -s first - || complain 'a finished run was repeated'
cmp -s first.md docs/DHEN.md || complain 'the page is another one'

# A setting that cannot be ends it with the line of the program.
trains --set model.dhen.kernel=2
[ "$status" -eq 1 ] || complain "with an even kernel it ended with $status; wanted 1"
contains stderr 'model.dhen.kernel: 2 must be odd'

# So does an option that is none, with one line of its own.
trains --step 1
[ "$status" -eq 2 ] || complain "with --step it ended with $status; wanted 2"
contains stderr 'dhen_pairs: '
[ "$(wc -l <stderr)" -eq 1 ] || complain 'wanted one line on stderr'
