#!/bin/sh
# phloem sim beside the ranks that it imitates: the same plan, ids, messages and bytes on each link.
#
#     mpi_sim.sh openmpi|mpich
. "$(dirname "$0")/mpi_support.sh"
make_job
cd "$work" || exit 1
sed -i 's/, valid: [^,]*, test: [^,]*,/,/' job.yaml # a simulation evaluates nothing
cat >cluster.yaml <<'END'
version: 1
kind: star
hosts: 2
ranks_per_host: 4
END

# figures NAME: of its summary, what a simulation must have to the bit.
figures() {
    grep -E '"(steps|samples|parameters|parameter_bytes|slot_bytes|plan_bytes|growths|ids_checksum|requested_ids|held_bytes)":' \
        "$1/summary.json"
    grep -E '"(what|operations|sent_bytes|received_bytes)":' "$1/summary.json" | sort
    sed -n '/^    "links"/,/^    \]/p' "$1/summary.json"
}

# is_simulated PLAN KEYS...: trains for some steps by the plan, and simulates that.
is_simulated() {
    plan=$1
    shift
    rm -rf real simulated
    set -- "$@" --set "parallel.plan=$plan" --set train.max_steps=6 --set parallel.ranks_per_host=4
    train 8 real --trace real.trace "$@"
    [ "$status" -eq 0 ] || complain "a training by $plan ended with $status; wanted 0"
    status=0
    "$PH_BINARY_DIR/phloem" sim job.yaml --topology cluster.yaml --out simulated --profile times.json "$@" \
        >stdout 2>stderr || status=$?
    [ "$status" -eq 0 ] || complain "its simulation ended with $status; wanted 0"
    cmp -s real/plan.yaml simulated/plan.yaml || complain "$plan: the simulation has another plan"
    [ "$(grep -c '"ids_checksum": "[0-9a-f]*"' real/summary.json)" -eq 8 ] || complain "$plan: no checksum of each rank's ids"
    figures real >real.txt
    figures simulated >simulated.txt
    diff real.txt simulated.txt >stderr || complain "$plan: the simulation has other figures than the training"
}

is_simulated auto
is_simulated none --set parallel.dense=bf16
is_simulated none --set parallel.collective=hierarchical --set parallel.dense=fp16
is_simulated none --set parallel.collective=ring
is_simulated none --set parallel.collective=hierarchical --set parallel.dense_mode=full
is_simulated none --set parallel.collective=ring --set parallel.dense_mode=full
"$PH_BINARY_DIR/phloem" plan job.yaml --world 8 --ranks-per-host 4 --out plan.yaml >stdout 2>stderr || complain 'no plan was made'
tables=$(sed -n 's/^  \("embedding[^:]*\): .*/\1/p' plan.yaml)
{
    sed '/^tables:/q' plan.yaml
    number=0
    for table in $tables; do
        case $((number % 6)) in
        0) echo "  $table: {kind: table_wise, rank: $((number % 8))}" ;;
        1) echo "  $table: {kind: row_wise, ranks: [0, 3, 5, 6]}" ;;
        2) echo "  $table: {kind: column_wise, ranks: [1, 7]}" ;;
        3) echo "  $table: {kind: table_row_wise, host: 1}" ;;
        4) echo "  $table: {kind: grid, hosts: [0, 1]}" ;;
        5) echo "  $table: {kind: data_parallel}" ;;
        esac
        number=$((number + 1))
    done
} >kinds.yaml
is_simulated kinds.yaml --set parallel.forward=fp16
