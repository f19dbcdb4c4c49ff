#!/bin/sh
# phloem plan's search: limits, plans to start from and to compare, explanations, learnt costs, and mistakes.
# shellcheck source=tests/system/support.sh
. "$PH_SOURCE_DIR/tests/system/support.sh"

make_small_job
on='plan job.yaml --world 4 --ranks-per-host 2 --quiet'

# Every plan is explained.
# shellcheck disable=SC2086 # words of a command
succeeds $on --out greedy.yaml
contains stdout 'It is busier than the mean rank by these factors: computing '
[ "$(grep -c '^| embedding.*%' stdout)" -eq 3 ] || complain 'wanted the three dearest tables'
contains stdout 'Another GB a rank would make no step shorter.'

# The same search gives the same plan, which a reader takes; the page has a bar for each rank.
# shellcheck disable=SC2086
{
    succeeds $on --search --out one.yaml --page plan.html
    succeeds $on --search --out two.yaml
    cmp -s one.yaml two.yaml || complain 'the same search has made another plan'
    succeeds $on --plan one.yaml --out again.yaml
}
cmp -s one.yaml again.yaml || complain 'a searched plan is read otherwise'
grep -q '"communicating"' plan.html && grep -q '"computing"' plan.html || complain 'the page has no stacked bars'

# Limits hold: together, apart, and a small rank.
cat >limits.yaml <<'END'
version: 1
ranks: [{rank: 3, gb: 1.0e-4, slowness: 2}]
together: [{tables: [embedding.C1, embedding.C2]}]
apart: [{tables: [embedding.C3, embedding.C4]}]
END
# shellcheck disable=SC2086
succeeds $on --limits limits.yaml --out limited.yaml
place_of() {
    sed -n "s/.*\"$1\": {kind: table_wise, rank: \([0-9]*\)}.*/\1/p" limited.yaml
}
[ -n "$(place_of embedding.C1)" ] || complain 'a table that lies together with another is cut'
[ "$(place_of embedding.C1)" = "$(place_of embedding.C2)" ] || complain 'tables do not lie together'
[ "$(place_of embedding.C3)" != "$(place_of embedding.C4)" ] || complain 'tables do not lie apart'
# shellcheck disable=SC2086
{
    sed 's/C4\]/C99]/' limits.yaml >wrong.yaml
    fails 2 "wrong.yaml: apart: 'embedding.C99' fits no table" $on --limits wrong.yaml
    sed 's/rank: 3/rank: 4/' limits.yaml >wrong.yaml
    fails 2 "wrong.yaml: ranks[0]: rank 4 is beyond the job's 4 ranks" $on --limits wrong.yaml
}

# From a plan: with a high price nothing moves; without one, what moves is told.
# shellcheck disable=SC2086
succeeds $on --from greedy.yaml --move-ms 1e9
contains stdout 'From greedy.yaml, 0 B of tables and slots move between ranks.'
sed 's/world_size: 4/world_size: 8/' greedy.yaml >eight.yaml
# shellcheck disable=SC2086
{
    fails 2 'eight.yaml:3: the plan is for a world_size of 8, but this job has 4' $on --from eight.yaml
    fails 2 '--move-ms is a price on what moves from a plan' $on --move-ms 3
    fails 2 "--move-ms must be a number from 0 on, not '-1'" $on --from greedy.yaml --move-ms=-1
    fails 2 '--plan shows a plan as it is' $on --plan greedy.yaml --search
}

# Two plans are compared.
# shellcheck disable=SC2086
{
    succeeds $on --compare greedy.yaml limited.yaml --page both.html
    contains stdout '| ms a step '
    contains stdout 'tables lie otherwise; from the first plan to the second, '
    succeeds $on --compare greedy.yaml greedy.yaml
    contains stdout '0 of 26 tables lie otherwise; from the first plan to the second, 0 B of'
    fails 2 '--compare takes two plans' $on --compare greedy.yaml
    fails 2 'plan takes one CONFIG' $on other.yaml
    fails 2 '--compare makes no plan' $on --compare greedy.yaml limited.yaml --out x.yaml
}
fails 2 'plan requires a CONFIG, or --learn DIR' plan --world 4

# What does not fit, by how much, and which world would hold it; that one does, and one rank less does not.
for way in '' --search; do
    # shellcheck disable=SC2086
    {
        fails 5 ' ranks with as much memory each would hold the tables' plan job.yaml --world 2 --rank-memory 20000 $way
        needed=$(sed -n 's/.*; \([0-9]*\) ranks with as much memory.*/\1/p' stderr)
        succeeds plan job.yaml --world "$needed" --rank-memory 20000 --quiet --search
        fails 5 'do not fit' plan job.yaml --world "$((needed - 1))" --rank-memory 20000 --quiet --search
        fails 5 "more than the 8 B of a rank" plan job.yaml --world 2 --rank-memory 8 $way
    }
done

# A long search is interrupted, and keeps the best plan so far.
cat >many.yaml <<'END'
data:
  train: many.tsv
  format: tsv
  fields:
    - {name: label, kind: label}
    - {name: "C*", kind: id, encoding: raw, rows: 100000}
model: {kind: dnn, embedding_dim: 32, hidden_units: [8]}
train: {batch_size: 1000}
END
{
    printf 'label'
    printf '\tC%s' $(seq 1000)
    printf '\n1'
    printf '\t%s' $(seq 1000)
    printf '\n'
} >many.tsv
begins plan many.yaml --world 128 --ranks-per-host 8 --rank-memory 400000000 --search --out many_plan.yaml
sleep 1
kill -s INT "$process"
ends 0
contains stderr 'the search was interrupted: this is the best plan so far'
succeeds plan many.yaml --world 128 --ranks-per-host 8 --plan many_plan.yaml --quiet

# Rows for fast memory are counted: all of them when it has room for all.
# shellcheck disable=SC2086
{
    succeeds $on --fast-memory 1000
    contains stdout 'With 1000 B of fast memory a rank, a step reads '
    [ "$(grep -c '| embedding.*[0-9] %' stdout)" -eq 29 ] || complain 'wanted a line for each table, and the dearest'
    succeeds $on --fast-memory 1000000000
    contains stdout 'a step reads 0 rows from slow memory'
    fails 2 "--fast-memory must be a whole number above 0, not 'much'" $on --fast-memory much
}

# A training leaves what its ranks have measured, which scales any costs.
succeeds train job.yaml --out run --quiet
[ -s run/costs.json ] || complain 'a training has left no costs'
# shellcheck disable=SC2086
{
    succeeds $on --learn-from run --out scaled.yaml
    contains stdout 'They are scaled to '
    contains stdout ' steps of run: computing '
    fails 4 'norun/costs.json' $on --learn-from norun
    fails 2 'costs were measured with other tables' $on --learn-from run --set model.embedding_dim=8
    sed -i 's/"processor": "[^"]*"/"processor": "Abacus"/' run/costs.json
    fails 2 "'Abacus'" $on --learn-from run
    succeeds $on --learn-from run --foreign-cost --out -
    cmp -s scaled.yaml stdout || complain 'foreign costs plan otherwise'
}

# Costs are learnt, plan by what was learnt, and belong to their batches and their kind of processor.
succeeds plan job.yaml --learn costs --sets 100 --quiet --set optimizer.kind=sgd --set 'optimizer.groups=[]'
contains stdout 'sets of tables that the net has not seen'
contains stdout 'exchanges of vectors: mean error'
# shellcheck disable=SC2086
{
    succeeds $on --cost costs --out learnt.yaml
    contains stdout 'A step of 250 samples, by costs learnt on '
    succeeds $on --cost costs --out again.yaml
    cmp -s learnt.yaml again.yaml || complain 'the same costs have made another plan'
    fails 2 'costs of batches of 250 samples, and the job' $on --cost costs --set train.batch_size=100
    sed -i 's/"processor": "[^"]*"/"processor": "Abacus"/' costs/cost.json
    fails 2 "costs were learnt on 'Abacus'" $on --cost costs
    succeeds $on --cost costs --foreign-cost --out -
    cmp -s learnt.yaml stdout || complain 'foreign costs plan otherwise'
    fails 4 'none/cost.json: cannot open' $on --cost none
}
fails 2 '--learn makes no plan' plan job.yaml --learn costs --measure
fails 2 '--learn makes no plan' plan job.yaml --learn costs --out x.yaml
fails 2 '--sets must be at least 100, not 5' plan --learn costs --sets 5
printf 'version: 1\nkind: star\nhosts: 1\n' >alone.yaml
fails 2 'a cluster of one rank has no exchanges to learn' plan --learn alone --sets 100 --topology alone.yaml
printf 'nonsense\n' >locality.txt
fails 2 'locality.txt' plan --learn costs --locality locality.txt
