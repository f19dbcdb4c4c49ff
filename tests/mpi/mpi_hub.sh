#!/bin/sh
# The demo's DLRM, learnt by ranks whose dense gradients a parameter hub sums: bit for bit what it becomes by AllReduce. With
# `deaths` also where the hub is killed and then a rank, and the training goes on from what was saved.
#
#     mpi_hub.sh openmpi|mpich alive|deaths
. "$(dirname "$0")/mpi_support.sh"
phloem=$PH_BINARY_DIR/phloem
config=$(dirname "$0")/../../configs/demo/dlrm.yaml
: >"$work/stdout"
: >"$work/stderr"
hubs=
trap 'for hub in $hubs; do kill "$hub" 2>/dev/null || true; done; rm -rf "$work"' EXIT

# waits_for PROCESS COMMAND...: until the command succeeds.
waits_for() {
    awaited=$1
    shift
    until "$@"; do
        kill -s 0 "$awaited" 2>/dev/null || complain "a process has ended too soon: $*"
        sleep 0.02
    done
}

# serve: a hub in the background; leaves its process in hub, and in address where it is.
serve() {
    rm -f "$work/ready"
    "$phloem" hub --threads 1 >"$work/ready" 2>>"$work/hub.log" </dev/null &
    hub=$!
    hubs="$hubs $hub"
    waits_for "$hub" grep -sq '^ready at' "$work/ready"
    address=$(sed -n 's/^ready at \([^,]*\).*/\1/p' "$work/ready")
}

# learn RANKS FOLDER FLAGS...: leaves status, as launch does; ranks write their processes to $work/process.RANK.
learn() {
    num_ranks=$1 folder=$work/$2
    shift 2
    # shellcheck disable=SC2016 # the ranks' shells expand it
    launch "$num_ranks" sh -c 'echo $$ >"$0.${OMPI_COMM_WORLD_RANK:-$PMI_RANK}" && exec "$@"' "$work/process" \
        "$phloem" train "$work/job.yaml" --out "$folder" --resume --quiet --set parallel.bucket_bytes=4096 "$@"
}

# learns: the same to a good end.
learns() {
    learn "$@"
    [ "$status" -eq 0 ] || complain "learning $* ended with $status; wanted 0"
}

clipped='--set train.max_gradient_norm=0.05 --set train.batch_size=50 --set train.epochs=1'
# learn_clipped FOLDER SYNC
learn_clipped() {
    # shellcheck disable=SC2086 # a list of words
    learn 2 "$1" $clipped --set parallel.sync="$2" --set "parallel.hub=$address"
}

# dies STEP FILE: whose process the file names, when the training at the hub has come to the step; leaves its status.
dies() {
    rm -f "$work"/process.*
    {
        learn_clipped hub hub
        exit "$status"
    } &
    job=$!
    waits_for "$job" test -s "$2"
    waits_for "$job" grep -sq "\"step\":$1," "$work/hub/metrics.jsonl"
    kill -s KILL "$(cat "$2")"
    status=0
    wait "$job" || status=$?
}

# same FOLDER OTHER TEXT: what two trainings have learnt.
same() {
    digest=$(value "$work/$1/summary.json" checkpoint_sha256)
    other=$(value "$work/$2/summary.json" checkpoint_sha256)
    [ -n "$digest" ] && [ "$digest" = "$other" ] || complain "$3 have learnt something else at a hub"
    echo "$3: sha256 of all parameters by AllReduce $digest, at a hub $other"
}

sed "s|build/demo|$work/data|; s|evaluate_steps: 475|report_seconds: 0\n  checkpoint_steps: 10\n  report: false|" "$config" >"$work/job.yaml"
rows=5000
[ "$2" = alive ] || rows=20000 # so that there is time to die in
"$phloem" synth "$config" --out "$work/data" --set synth.train_rows="$rows" --set synth.valid_rows=500 \
    --set synth.test_rows=500 >"$work/stdout"

# ---- two ranks, clipped
serve
learn_clipped whole allreduce
[ "$status" -eq 0 ] || complain "learning by AllReduce ended with $status; wanted 0"

if [ "$2" = deaths ]; then
    echo "$hub" >"$work/hub.process"
    dies 20 "$work/hub.process"
    [ "$status" -eq 6 ] || complain "without its hub it ended with $status; wanted 6"
    [ "$(grep -c 'phloem: error' "$work/stderr")" -eq 1 ] || complain 'wanted one line of one rank'
    grep -q "phloem: error: the hub at $address: " "$work/stderr" || complain 'wanted a line about the hub'
    serve
    dies 120 "$work/process.1"
    [ "$status" -ne 0 ] || complain 'mpirun ended with 0 without its rank 1'
fi
learn_clipped hub hub
[ "$status" -eq 0 ] || complain "learning at a hub ended with $status; wanted 0"
[ "$2" = alive ] || grep -q 'resumed at step' "$work/stdout" || complain 'nothing was resumed'
same whole hub 'two ranks'
[ "$2" = alive ] || exit 0

# ---- four ranks, two hubs over TCP, gradients of 16 bits; and nobody's name is left with the hubs
first=$address
serve
pair=$first,$address
learns 4 four --set train.max_steps=20 --set parallel.dense=bf16
learns 4 four_hub --set train.max_steps=20 --set parallel.dense=bf16 --set parallel.sync=hub --set "parallel.hub=$pair" \
    --set parallel.hub_job=four
same four four_hub 'four ranks with two hubs, bf16'
"$phloem" hub status "$address" --seconds 0.01 >"$work/stdout"
grep -q 'no jobs' "$work/stdout" || complain 'a job is left at the hub'

# ---- one rank has nothing to sum
learns 1 alone --set train.max_steps=3 --set parallel.sync=hub --set parallel.hub=127.0.0.1:1
