#!/bin/sh
# phloem plan --measure of ranks: they measure their links together, one of them tells, and a training takes the plan.
#
#     mpi_plan.sh openmpi|mpich
. "$(dirname "$0")/mpi_support.sh"
make_job
cd "$work" || exit 1

plan() {
    launch 4 "$PH_BINARY_DIR/phloem" plan job.yaml "$@"
}

# measures NAME: the figure has a nominal value and a measured one.
measures() {
    grep -q "| $1[^|]* | *[0-9.]* GB/s | *[0-9.]* GB/s |" stdout || complain "$1: not measured"
}

plan --measure --set parallel.ranks_per_host=2 --out plan.yaml
[ "$status" -eq 0 ] || complain "measuring ended with $status; wanted 0"
[ "$(grep -c 'measured here' stdout)" -eq 1 ] || complain 'wanted one rank to tell'
for figure in 'rows at random' 'two ranks of a host' 'two hosts'; do
    measures "$figure"
done
grep -q 'A training with parallel.plan: auto uses nominal ones' stdout || complain 'it does not say what a training goes by'
grep -q '^world_size: 4' plan.yaml || complain 'the plan is not that of the ranks'
grep -q '^ranks_per_host: 2' plan.yaml || complain 'the plan is not that of their hosts'
train 4 measured --set parallel.plan=plan.yaml --set parallel.ranks_per_host=2 --set train.max_steps=2
[ "$status" -eq 0 ] || complain "a training by the measured plan ended with $status; wanted 0"
cmp -s plan.yaml measured/plan.yaml || complain 'the training has another plan'

# A training leaves what its ranks' tables cost, for planners.
printf 'version: 1\nworld_size: 2\ndefault: {kind: table_wise}\n' >two.yaml
train 2 costly --set parallel.plan=two.yaml --set train.max_steps=20
[ "$status" -eq 0 ] || complain "a training of two ranks ended with $status; wanted 0"
[ "$(value costly/costs.json world_size)" = 2 ] || complain 'costs.json has another number of ranks'
[ "$(value costly/costs.json steps)" = 19 ] || complain 'costs.json has other steps than all but the first'
[ "$(value costly/costs.json rank | tr '\n' ' ')" = '0 1 ' ] || complain 'costs.json does not list both ranks'
for time in compute_ms backward_ms forward_ms; do
    [ "$(value costly/costs.json $time | awk '$1 > 0' | wc -l)" -eq 2 ] || complain "wanted $time of both ranks"
done

# On one host there is no network to measure, and ranks that measure may plan for others.
plan --measure --world 8 --out other.yaml
[ "$status" -eq 0 ] || complain "measuring on one host ended with $status; wanted 0"
measures 'two ranks of a host'
grep -q '| two hosts[^|]* | *[0-9.]* GB/s | *– |' stdout || complain 'a network where there is none'
grep -q '^world_size: 8' other.yaml || complain 'the plan is not for as many ranks as were asked for'

# One rank tells of a mistake that all make.
for mistake in '--measure --out job.yaml' '--measure --world 0' '--measure --set model.kind=none' '--world 4'; do
    # shellcheck disable=SC2086 # a list of words
    plan $mistake
    [ "$status" -eq 2 ] || complain "phloem plan $mistake ended with $status; wanted 2"
    [ "$(grep -c 'phloem: error: ' stderr)" -eq 1 ] || complain "phloem plan $mistake: wanted one line of all ranks"
done
