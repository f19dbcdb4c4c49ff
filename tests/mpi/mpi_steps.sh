#!/bin/sh
# What ranks send in a training's steps is what theory says, by every kind of plan and wire: PMPI counts it. The table of all
# cases goes to standard output.
#
#     mpi_steps.sh openmpi|mpich PROGRAMS RANKS RANKS_PER_HOST
. "$(dirname "$0")/mpi_support.sh"

# 50 rows, the last step's batch smaller than the others; some lists are empty.
awk 'BEGIN {
    print "click,price,user,tags,item,shop,history"
    for (i = 0; i < 50; i++) {
        tags = history = ""
        for (k = 0; k < i % 4; k++) {
            tags = tags (k > 0 ? "|" : "") (i * 7 + k * 11) % 30 ":" (k + 1) / 2
            history = history (k > 0 ? "|" : "") (i * 5 + k * 3) % 40
        }
        printf "%d,%g,%d,%s,%d,%d,%s\n", i % 3 == 0, i / 50, i * 13 % 50, tags, i * 17 % 40, i % 3, history
    }
}' >"$work/rows.csv"

config=$(dirname "$0")/steps.yaml
launch "$3" env LD_PRELOAD="$2/libpmpi_traffic_$mpi.so" "$2/rank_steps" "$config" "$work/rows.csv" "$work" "$4"
[ "$status" -eq 0 ] || complain "it ended with $status; wanted 0"
cat "$work/stdout"
