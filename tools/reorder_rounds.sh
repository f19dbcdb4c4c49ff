#!/bin/sh
# Measures AllReduces of Open MPI on a cluster of network namespaces, two racks of four hosts that ranks take turns in. Ends with
# 77, and says why, where it cannot. For reorder_figures.py.
#
#     tools/reorder_rounds.sh BUILD FOLDER ROUNDS
#
# FOLDER gets topology.yaml, by phloem topology probe, and orders. Prints lines
#
#     probe SECONDS
#     order ALGORITHM HOST...                                in the order found
#     time ROUND ALGORITHM VARIANT MILLISECONDS...           of each AllReduce of 4 MiB, by the slowest rank
#
# VARIANT: interleaved, as mpirun has the hosts; grouped, mpirun has each rack in a row; random; han, Open MPI's own hierarchy of
# hosts, over interleaved; found, over interleaved with the reorder library; shuffled, the same with an order that was found for
# hosts with shuffled names.
set -eu
here=$(dirname "$0")
build=$(realpath "$1") folder=$2 rounds=$3
namespaces=num
. "$here/../tests/support/network_namespaces.sh"
. "$here/../tests/support/shaped_racks.sh"
enters_namespaces "$0" "$@"
mkdir -p "$folder"
racks=$(mktemp -d)
trap ends_racks EXIT
bytes=4194304

command -v mpicc.openmpi >/dev/null || skips_namespaces "there is no program 'mpicc.openmpi'"
mpicc.openmpi -O2 -o "$folder/allreduce" "$here/../bench/peers/openmpi_allreduce.c"
makes_racks 800mbit 200mbit $(interleaved_placement 2 4)

began=$(date +%s.%N)
PHLOEM_MPI=openmpi PHLOEM_PLUGINS=$build launches_over_hosts openmpi 8 "$build/phloem" topology probe --out "$folder/topology.yaml" \
    >"$folder/probe.log" 2>&1 || { cat "$folder/probe.log" >&2; exit 1; }
echo "probe $(echo "$(date +%s.%N) - $began" | bc)"

# number_of ALGORITHM: Open MPI's
number_of() {
    case $1 in doubling) echo 3 ;; ring) echo 4 ;; halving) echo 6 ;; esac
}

# shuffles_names SEED: a topology file whose hosts have changed names
shuffles_names() {
    awk -v seed="$1" 'BEGIN { srand(seed) } /name: / { count++; order[count] = rand() } { lines[NR] = $0 }
        match($0, /name: [^,}]*/) { names[count] = substr($0, RSTART, RLENGTH); at[NR] = count }
        END {
            for (i = 1; i <= count; i++) other[i] = i
            for (i = count; i > 1; i--) { j = 1 + int(i * rand()); t = other[i]; other[i] = other[j]; other[j] = t }
            for (i = 1; i <= NR; i++) {
                if (i in at) sub(/name: [^,}]*/, names[other[at[i]]], lines[i])
                print lines[i]
            }
        }' "$folder/topology.yaml"
}

# measures ROUND ALGORITHM VARIANT [OPTION OF MPIRUN...]
measures() {
    round=$1 algorithm=$2 variant=$3
    shift 3
    rules="--mca coll_tuned_use_dynamic_rules 1 --mca coll_tuned_allreduce_algorithm $(number_of "$algorithm")"
    [ "$variant" != han ] || rules='--mca coll_han_priority 100'
    launch_options="$rules $*"
    printf 'allreduce 4\n' >"$folder/orders"
    times=$(launches_over_hosts openmpi 8 "$folder/allreduce" "$bytes" <"$folder/orders")
    case $times in *wrong* | '') echo "$variant: a sum is wrong: $times" >&2; exit 1 ;; esac
    echo "time $round $algorithm $variant $(echo "$times" | awk '{ for (i = 2; i <= NF; i++) printf " %.3f", 1e3 * $i }')"
}

reorders() {
    echo "-x LD_PRELOAD=$build/libphloem_reorder_openmpi.so -x PHLOEM_REORDER=$1"
}

for algorithm in ring halving doubling; do
    "$build/phloem" topology order "$folder/topology.yaml" --collective $algorithm --bytes $bytes --out "$folder/$algorithm.txt" \
        >"$folder/$algorithm.log"
    echo "order $algorithm $(xargs <"$folder/$algorithm.txt")"
done
for round in $(seq "$rounds"); do
    shuffles_names "$round" >"$folder/shuffled.yaml"
    for algorithm in ring halving doubling; do
        "$build/phloem" topology order "$folder/shuffled.yaml" --collective $algorithm --bytes $bytes \
            --out "$folder/shuffled.txt" >"$folder/shuffled.log"
        measures "$round" $algorithm interleaved
        measures "$round" $algorithm found "$(reorders "$folder/$algorithm.txt")"
        launched_hosts='0 2 4 6 1 3 5 7' measures "$round" $algorithm grouped
        launched_hosts=$(echo "$round" | awk '{ srand($1); for (i = 1; i < 8; i++) o[i] = i
            for (i = 7; i > 1; i--) { j = 1 + int(i * rand()); t = o[i]; o[i] = o[j]; o[j] = t }
            printf "0"; for (i = 1; i < 8; i++) printf " %d", o[i] }')
        measures "$round" $algorithm random
        launched_hosts=
        measures "$round" $algorithm shuffled "$(reorders "$folder/shuffled.txt")"
    done
    measures "$round" ring han
done
