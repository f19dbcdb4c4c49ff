#!/bin/sh
# Measures AllReduces on a cluster of network namespaces, two racks of four hosts that ranks take turns in, 800 Mb/s a host and
# 200 Mb/s between the racks. Ends with 77, and says why, where it cannot. For reorder_figures.py.
#
#     tools/reorder_rounds.sh allreduce|orders|placements|flat|phloem|work BUILD FOLDER ROUNDS [ALGORITHM:ORDER... | PYTHON]
#
# FOLDER keeps topology.yaml, which phloem topology probe writes, orders and logs. Each part prints lines of
#
#     probe SECONDS                                          with its launch; where FOLDER has no topology.yaml
#     order ALGORITHM HOST...                                in the order found
#     time ROUND ALGORITHM VARIANT MILLISECONDS...           of each sum of 4 MiB, by the slowest rank
#     placement "RACK..." SECONDS "GROUP..."                 of each host
#     step ROUND COLLECTIVE SECONDS EXPOSED UPLINK_BYTES     of phloem train
#     work ROUND PROGRAM VARIANT SECONDS [SHARE]             of a step, or a tree; share of communication
#
# allreduce: Open MPI's ring, halving and doubling. VARIANT: interleaved, as mpirun has the hosts; grouped, mpirun has each rack
# in a row; graph, over the ranks of MPI_Dist_graph_create; han, Open MPI's own hierarchy of hosts; found, with the reorder
# library. orders: each ALGORITHM over each ORDER (0,2,..), ROUNDS sums. flat: all hosts in one rack; plain, and found.
# work: PyTorch (gloo) and LightGBM (sockets), by reorder_worker.py.
set -eu
here=$(dirname "$0")
part=$1 build=$(realpath "$2") folder=$(realpath "$3") rounds=$4
namespaces=num
. "$here/../tests/support/network_namespaces.sh"
. "$here/../tests/support/shaped_racks.sh"
enters_namespaces "$0" "$@"
shift 4
racks=$(mktemp -d)
trap ends_racks EXIT
bytes=4194304
phloem=$build/phloem
export PHLOEM_MPI=openmpi PHLOEM_PLUGINS="$build"
command -v mpicc.openmpi >/dev/null || skips_namespaces "there is no program 'mpicc.openmpi'"
mpicc.openmpi -O2 -o "$folder/allreduce" "$here/../bench/peers/mpi_allreduce.c"

# probes TOPOLOGY: prints the seconds
probes() {
    began=$(date +%s.%N)
    launches_over_hosts openmpi 8 "$phloem" topology probe --out "$1" >"$folder/probe.log" 2>&1 ||
        { cat "$folder/probe.log" >&2; exit 1; }
    echo "$(date +%s.%N) $began" | awk '{ printf "%.2f\n", $1 - $2 }'
}

needs_topology() {
    [ -f "$folder/topology.yaml" ] || echo "probe $(probes "$folder/topology.yaml")"
}

# finds_order ALGORITHM TOPOLOGY NAME
finds_order() {
    "$phloem" topology order "$2" --collective "$1" --bytes $bytes --out "$folder/$3.txt" >"$folder/$3.log"
    echo "order $1 $(xargs <"$folder/$3.txt")"
}

# measures ROUND ALGORITHM VARIANT SUMS [OPTION OF MPIRUN...]: over ${communicators:-world}; one more sum warms up
measures() {
    round=$1 algorithm=$2 variant=$3 sums=$4
    shift 4
    case $algorithm in doubling) number=3 ;; ring) number=4 ;; halving) number=6 ;; esac
    rules="--mca coll_tuned_use_dynamic_rules 1 --mca coll_tuned_allreduce_algorithm $number"
    [ "$variant" != han ] || rules='--mca coll_han_priority 100'
    launch_options="$rules $*"
    # shellcheck disable=SC2086 # words
    launches_over_hosts openmpi 8 "$folder/allreduce" $bytes $((sums + 1)) ${communicators:-world} >"$folder/times"
    awk -v begin="time $round $algorithm" -v variant="$variant" \
        '{ printf "%s %s", begin, variant == "" ? $1 : variant; for (i = 3; i <= NF; i++) printf " %.3f", 1e3 * $i; print "" }' \
        "$folder/times"
}

# measures_found ROUND ALGORITHM ORDER_FILE
measures_found() {
    measures "$1" "$2" found 3 -x "LD_PRELOAD=$build/libphloem_reorder_openmpi.so" -x "PHLOEM_REORDER=$3"
}

runs_allreduce() {
    needs_topology
    for algorithm in ring halving doubling; do finds_order $algorithm "$folder/topology.yaml" $algorithm; done
    for round in $(seq "$rounds"); do
        for algorithm in ring halving doubling; do
            measures "$round" $algorithm interleaved 3
            measures_found "$round" $algorithm "$folder/$algorithm.txt"
            launched_hosts='0 2 4 6 1 3 5 7' measures "$round" $algorithm grouped 3
        done
        communicators=graph measures "$round" ring graph 3
        measures "$round" ring han 3
    done
}

runs_orders() {
    needs_topology
    for algorithm in ring halving; do
        communicators=$(printf '%s\n' "$@" | sed -n "s/^$algorithm://p" | xargs)
        [ -z "$communicators" ] || measures 1 $algorithm '' "$rounds"
    done
}

runs_placements() {
    for round in $(seq "$rounds"); do
        placement=$(random_placement 2 4 "$round")
        # shellcheck disable=SC2086 # the rack of each host
        moves_hosts $placement
        seconds=$(probes "$folder/placed.yaml")
        echo "placement \"$placement\" $seconds \"$(sed -n 's/.*name: .*group: \([0-9]*\).*/\1/p' "$folder/placed.yaml" | xargs)\""
    done
}

runs_flat() {
    moves_hosts 0 0 0 0 0 0 0 0
    echo "probe $(probes "$folder/flat.yaml")"
    for algorithm in ring halving; do finds_order $algorithm "$folder/flat.yaml" flat_$algorithm; done
    for round in $(seq "$rounds"); do
        for algorithm in ring halving; do
            measures "$round" $algorithm plain 3
            measures_found "$round" $algorithm "$folder/flat_$algorithm.txt"
        done
    done
}

# A network of one million weights, whose gradients are 4 MiB.
makes_job() {
    {
        echo 'seed: 1'
        echo 'threads: 1'
        echo 'data: {train: data/train.tsv, format: tsv, fields: ['
        echo '  {name: label, kind: label}'
        for field in 1 2 3 4 5 6 7 8; do echo "  , {name: C$field, kind: id, encoding: raw, rows: 1000}"; done
        echo ']}'
        echo 'model: {kind: dnn, embedding_dim: 32, hidden_units: [1024, 768], batch_norm: false}'
        echo 'train: {epochs: 1, batch_size: 64, report: false, tensorboard: false}'
        echo 'optimizer: {kind: sgd, learning_rate: 0.01}'
        echo 'parallel: {sync: allreduce}'
        echo 'synth: {train_rows: 4096, valid_rows: 0, test_rows: 0, dense: 0, planted_dense: 0, sparse: 8, table_rows: 1000}'
    } >"$folder/job.yaml"
    cd "$folder"
    rm -rf data
    "$phloem" synth job.yaml --out data >synth.log
}

# Prints the bytes that one rack has sent to the other.
sent_up() {
    ip -s link show up0 | awk '/TX:/ { getline; print $1 }'
}

# figure NAME SUMMARY: a number
figure() {
    sed -n "s/.*\"$1\": *\([0-9.e+-]*\).*/\1/p" "$2" | head -n 1
}

runs_phloem() {
    needs_topology
    makes_job
    launch_options=
    for round in $(seq "$rounds"); do
        for collective in exchange hierarchical; do
            rm -rf "trained_$collective"
            before=$(sent_up)
            launches_over_hosts openmpi 8 "$phloem" train job.yaml --out "trained_$collective" --quiet --set train.max_steps=8 \
                --set parallel.topology="$folder/topology.yaml" --set parallel.collective=$collective >train.log 2>&1 ||
                { cat train.log >&2; exit 1; }
            summary=trained_$collective/summary.json
            echo "step $round $collective $(figure step_seconds $summary) $(figure exposed_seconds $summary)" \
                "$(($(sent_up) - before))"
        done
    done
}

# Interleaved: ranks by host number. Grouped: a rack in a row. Found: the list that phloem topology order writes.
runs_work() {
    python=$1
    "$python" -c 'import torch, lightgbm, numpy' 2>/dev/null ||
        skips_namespaces "$python lacks torch or lightgbm: pip install torch lightgbm"
    needs_topology
    "$phloem" topology order "$folder/topology.yaml" --bytes $bytes --collective ring --node-ranks "$folder/torch.found" >/dev/null
    "$phloem" topology order "$folder/topology.yaml" --bytes $bytes --collective far-halving --machines "$folder/lightgbm.found" \
        >/dev/null
    for host in 0 1 2 3 4 5 6 7; do echo "$(host_address $host) 12400"; done >"$folder/interleaved"
    for host in 0 2 4 6 1 3 5 7; do echo "$(host_address $host) 12400"; done >"$folder/grouped"
    "$python" "$here/reorder_worker.py" "$racks" "$folder" "$rounds"
}

# shellcheck disable=SC2046 # the rack of each host
makes_racks 800mbit 200mbit $(interleaved_placement 2 4)
"runs_$part" "$@"
