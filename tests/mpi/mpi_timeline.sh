#!/bin/sh
# What a training under mpirun says of its ranks: mpi_timeline.sh openmpi|mpich PHLOEM. Three ranks on emulated hosts leave
# one trace and one summary.json, which timeline_check.py looks into, and rank 0 prints their figures.
. "$(dirname "$0")/mpi_support.sh"
phloem=$2 here=$(cd "$(dirname "$0")" && pwd)
command -v python3 >/dev/null || skip 'python3 is not there'
cd "$work"

cat >plan.yaml <<'END'
version: 1
world_size: 3
ranks_per_host: 1
tables:
  embedding.C1: {kind: row_wise}
  embedding.C2: {kind: data_parallel}
default: {kind: table_wise}
END
cat >job.yaml <<'END'
seed: 1
threads: 2
data: {train: data/train.tsv, valid: data/valid.tsv, format: criteo}
model: {kind: dlrm, embedding_dim: 8, bottom_units: [16], top_units: [16]}
optimizer: {kind: adam, learning_rate: 0.02, embedding_kind: rowwise_adagrad}
train: {epochs: 1, batch_size: 200, evaluate_steps: 4}
parallel: {plan: plan.yaml, ranks_per_host: 1}
synth: {train_rows: 2000, valid_rows: 200, test_rows: 200, table_rows: 50, format: criteo}
END
"$phloem" synth job.yaml --out data >stdout 2>stderr || complain 'synth has failed'
launch 3 "$phloem" train job.yaml --out run --trace trace.json --profile --quiet
[ "$status" -eq 0 ] || complain "it ended with $status"
for text in "3 ranks of $title" 'imbalance, maximum over mean' '| vectors of embedding'; do
    grep -qF "$text" stdout || complain "rank 0 does not say '$text'"
done
[ "$(grep -c '^node  ' stdout)" -eq 1 ] || complain 'wanted one profile'
[ "$(grep -B 1 '^node  ' stdout | head -n 1)" = 'operators of rank 0 of 3' ] || complain 'it does not say whose profile it is'
[ "$(grep -c 'ms a step' stdout)" -eq 1 ] || complain 'not one rank speaks of them all'
python3 "$here/timeline_check.py" trace.json run/summary.json 3 >found 2>&1 || complain "$(cat found)"

# A step of it as a picture, whose bars are those of the step.
draw() {
    python3 "$here/../../tools/draw_timeline.py" trace.json "$@" >found 2>&1
}
draw --step 7 --write step.svg || complain "$(cat found)"
python3 -c 'import sys, xml.dom.minidom; xml.dom.minidom.parse(sys.argv[1])' step.svg || complain 'the picture is no SVG'
for text in 'Step 7 of 3 ranks' 'rank 2' '<title>gradients of dense parameters: '; do
    grep -qF "$text" step.svg || complain "the picture lacks '$text'"
done
draw trace.json --names one,other --write two.svg || complain "$(cat found)"
python3 -c 'import sys, xml.dom.minidom; xml.dom.minidom.parse(sys.argv[1])' two.svg || complain 'two pictures are no SVG'
[ "$(grep -c '>rank 2<' two.svg)" -eq 2 ] && grep -q '>other: step ' two.svg || complain 'the picture lacks the other trace'
! draw --names one,other || complain 'there are two names for one trace'
python3 - "$here/../.." <<'END' >found 2>&1 || complain "$(tail -n 1 found)"
import pathlib, re, sys
root = pathlib.Path(sys.argv[1])
sys.path.insert(0, str(root / "tools"))
import draw_timeline as drawn
operators = set(re.findall(r"(?m)^X\((\w+),", (root / "src/op/ops.def").read_text()))
assert drawn.TABLE_OPERATORS <= operators, f"no operators: {drawn.TABLE_OPERATORS - operators}"
for operator, kind in (("sum_rows", "dense"), ("update_table", "tables"), ("gather_rows", "exchange")):
    assert drawn.kind_of_operator(operator) == kind, operator
for what in ("vectors of t", "gradients of t on hosts", "sums on hosts of vectors of t", "squares of t"):
    assert drawn.kind_of_flight(what) == "vectors", what
assert drawn.kind_of_flight("loss") == "other", "loss"
END
! draw --step 99 || complain 'there is a picture of a step that is not there'
grep -q 'step 99 is not of all ranks; there are 10' found || complain "$(cat found)"
