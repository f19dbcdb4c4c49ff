#!/bin/sh
# ./run bench behind its build: stand-ins for the programs leave figures; the report shows them, with every kind of plot,
# and figures of an earlier run find what has become worse.
# shellcheck source=tests/system/support.sh
. "$PH_SOURCE_DIR/tests/system/support.sh"

if ! command -v python3 >/dev/null; then
    echo 'test_bench_report: skipped: python3 is not there'
    exit 77
fi

mkdir tools
cp "$PH_SOURCE_DIR"/tools/bench.sh "$PH_SOURCE_DIR"/tools/bench_report.py "$PH_SOURCE_DIR"/tools/bench_plots.py tools

# stand_in ROOM: its program, which leaves the figures of standard input and keeps the arguments that it got.
stand_in() {
    mkdir -p "bench/$1" "build/release/bench/$1"
    touch "bench/$1/bench_$1.c"
    cat >"$1.figures"
    program=build/release/bench/$1/bench_$1
    # shellcheck disable=SC2016 # the program expands it
    printf '#!/bin/sh\necho "$*" >%s.arguments\ncp %s.figures "$2"\n' "$1" "$1" >"$program"
    chmod +x "$program"
}

# bench ARGUMENTS...: leaves status, and what was printed in ./stdout and ./stderr.
bench() {
    status=0
    sh tools/bench.sh "$@" >stdout 2>stderr || status=$?
}

# ended STATUS FILE TEXT: so did the last bench, and TEXT is in FILE.
ended() {
    [ "$status" -eq "$1" ] || complain "bench.sh ended with $status; wanted $1"
    contains "$2" "$3"
}

stand_in machine <<'END'
[{"name": "machine.fp32_peak.threads1", "unit": "GFLOP/s", "value": 90.5, "label": "measured"},
 {"name": "machine.copy.threads1", "unit": "GB/s", "value": 14, "spread": 0.05, "label": "measured"}]
END
stand_in train <<'END'
[{"name": "train.step.threads1", "unit": "samples/s", "value": 20000, "peer": "torch 2", "peer_value": 10000,
  "ratio": 2.0, "limit": "the floor's formula", "of_limit": 0.8, "label": "measured", "spread": 0.05},
 {"name": "train.step.threads1.op.linear", "unit": "ms", "value": 5, "label": "measured",
  "of_step": "train.step.threads1", "share": 0.6, "flops": 4e8, "bytes": 1e7, "seconds": 0.005},
 {"name": "train.step.threads1.op.seed", "unit": "ms", "value": 0.0005, "label": "measured",
  "of_step": "train.step.threads1", "share": 6e-5},
 {"name": "train.latency.batch1", "unit": "us", "value": 90, "label": "measured", "sweep": "batch", "at": 1,
  "series": "one core", "peer": "torch 2", "peer_value": 300, "ratio": 3.3},
 {"name": "train.latency.batch64", "unit": "us", "value": 900, "label": "measured", "sweep": "batch", "at": 64,
  "series": "one core", "peer": "torch 2", "peer_value": 1500, "ratio": 1.7},
 {"name": "train.elsewhere", "unit": "samples/s", "value": 7, "label": "published"},
 {"name": "train.cluster", "unit": "samples/s", "value": null, "label": "simulated"}]
END

# Everything that the rooms left is in the report, with each kind of plot.
bench
ended 0 stdout 'build/bench/report.md'
for text in 'machine.fp32_peak.threads1' '20,000' 'torch 2' '80% [1]' "1. the floor's formula" '**published**' \
    '**simulated**' 'plots/scaling.train.batch.us.svg' 'plots/share.train.step.threads1.svg' \
    'plots/roofline.train.step.threads1.svg'; do
    contains build/bench/report.md "$text"
done
for plot in build/bench/plots/*.svg; do
    python3 -c 'import sys, xml.dom.minidom; xml.dom.minidom.parse(sys.argv[1])' "$plot" || complain "$plot is no XML"
done
contains build/bench/plots/scaling.train.batch.us.svg 'one core, torch 2'
contains build/bench/plots/share.train.step.threads1.svg '60.0%, 5 ms'
contains build/bench/plots/share.train.step.threads1.svg '1 others'
contains build/bench/plots/roofline.train.step.threads1.svg '90.5 GFLOP/s, 14 GB/s'
contains build/bench/plots/roofline.train.step.threads1.svg 'arithmetic intensity, FLOP/byte'

# One room, with arguments for its programs. The same figures are no regression, even where the base is overwritten.
bench train --base build/bench/train.json --rounds 3
ended 0 stdout '4 figures compared with the base, 0 worse'
contains train.arguments '--rounds 3'
[ "$(cat machine.arguments)" != "$(cat train.arguments)" ] || complain 'another room was measured'

# One program of a room, which alone gets the arguments.
touch bench/train/bench_other.c
printf '#!/bin/sh\nexit 9\n' >build/release/bench/train/bench_other
chmod +x build/release/bench/train/bench_other
bench train bench_train --case small
ended 0 stdout 'build/bench/train.json'
contains train.arguments '--case small'
bench train bench_none
ended 2 stderr 'there is no bench_none among the benchmarks of train: bench_other bench_train'
rm build/release/bench/train/bench_other bench/train/bench_other.c

# A room of scripts, of which one leaves figures and one is skipped; --peers comes behind --json.
mkdir bench/python
printf 'import sys\nopen(sys.argv[2], "w").write("""[{"name": "python.other", "value": 3}]""")\n' >bench/python/bench_figures.py
printf 'import sys\nprint("skipped: nothing is there")\nsys.exit(77)\n' >bench/python/bench_skipped.py
bench python
ended 0 stdout 'skipped: nothing is there'
contains build/bench/report.md 'python.other'
bench python bench_skipped --quick
ended 0 stdout 'build/bench/python.json'
PHLOEM_BENCH_PYTHON=./none bench python bench_figures
ended 0 stdout 'bench/python/bench_figures.py: skipped: ./none is not there'
bench python bench_none
ended 2 stderr 'there is no bench_none among the benchmarks of python: bench_figures bench_skipped'
rm -r bench/python build/bench/python build/bench/python.json

# worse ROOM EXPRESSION: the room's figures changed by sed, compared with those before.
worse() {
    cp "$1.figures" former
    sed "$2" former >"$1.figures"
    bench "$1" --base former
    cp former "$1.figures"
}
worse train 's/"value": 20000/"value": 19000/' # no more than both spreads together
ended 0 stdout ', 0 worse'
worse train 's/"value": 20000/"value": 17000/'
ended 1 stdout 'regression: train.step.threads1: 20,000 -> 17,000 samples/s (15% worse, 10% allowed; ratio to the peer'
worse train 's/"value": 20000/"value": 27000/'
ended 0 stdout ', 0 worse'
worse train 's/"value": 900/"value": 1200/' # microseconds: more are worse
ended 1 stdout 'regression: train.latency.batch64'
worse train 's/"value": 900/"value": 600/'
ended 0 stdout ', 0 worse'
worse train 's/"value": 0.0005/"value": 0.002/' # next to nothing of its step
ended 0 stdout ', 0 worse'
worse train 's/"value": 7,/"value": 3,/' # published elsewhere
ended 0 stdout ', 0 worse'
worse machine 's/90.5/45/' # a machine that has become slower is no fault of ours
ended 0 stdout '0 figures compared'

# What cannot be done ends in one line, before anything is measured.
rm train.arguments
bench train --base nowhere.json
ended 2 stderr 'nowhere.json is not there'
bench train --base
ended 2 stderr 'the file is missing'
bench kitchen
ended 2 stderr 'there are no benchmarks of kitchen; there are: machine train'
[ ! -e train.arguments ] || complain 'something was measured'
echo 'no figures' >broken.json
bench train --base broken.json
ended 1 stderr 'base/1.json'
