#!/bin/sh
# Measures trainings of PyTorch (gloo) and LightGBM (sockets) on a cluster of network namespaces, two racks of four hosts that
# ranks take turns in. Ends with 77, and says why, where it cannot. For reorder_figures.py.
#
#     tools/reorder_work.sh BUILD FOLDER ROUNDS PYTHON
#
# FOLDER has topology.yaml, as reorder_rounds.sh leaves it. Prints lines
#
#     work ROUND PROGRAM VARIANT SECONDS SHARE      of a step, or tree; share: of communication
#
# VARIANT: interleaved, ranks by host number; found, by the order that phloem topology order writes for the program.
set -eu
here=$(dirname "$0")
build=$(realpath "$1") folder=$(realpath "$2") rounds=$3 python=$4
namespaces=num
. "$here/../tests/support/network_namespaces.sh"
. "$here/../tests/support/shaped_racks.sh"
enters_namespaces "$0" "$@"
racks=$(mktemp -d)
trap ends_racks EXIT
"$python" -c 'import torch, lightgbm, numpy' 2>/dev/null ||
    skips_namespaces "$python lacks torch or lightgbm: pip install torch lightgbm"
makes_racks 800mbit 200mbit $(interleaved_placement 2 4)

order() {
    "$build/phloem" topology order "$folder/topology.yaml" --bytes 4194304 "$@" >/dev/null
}
order --collective ring --node-ranks "$folder/torch.found"
order --collective far-halving --machines "$folder/lightgbm.found"
host_addresses 0 8 | awk '{ print $1 " " NR - 1 }' >"$folder/torch.interleaved"
host_addresses 0 8 | sed 's/$/ 12400/' >"$folder/lightgbm.interleaved"

# host_of ADDRESS
host_of() {
    for file in "$racks"/address*; do
        [ "$(cat "$file")" != "$1" ] || echo "${file##*address}"
    done
}

# runs PROGRAM LIST: a rank a line of the list, on its host
runs() {
    rank=0 processes=
    first=$(head -n 1 "$2" | cut -d ' ' -f 1)
    while read -r address _; do
        case $1 in
        torch) set -- "$1" "$2" 8 "$first" ;;
        lightgbm) set -- "$1" "$2" "$2" 12400 ;;
        esac
        becomes_host "$(host_of "$address")" "$python" "$here/reorder_worker.py" "$1" $rank "$3" "$4" \
            >"$folder/rank$rank.out" 2>"$folder/rank$rank.err" </dev/null &
        processes="$processes $!"
        rank=$((rank + 1))
    done <"$2"
    for process in $processes; do
        wait "$process" || { cat "$folder"/rank*.err >&2; exit 1; }
    done
    tail -n 1 "$folder/rank0.out"
}

for round in $(seq "$rounds"); do
    for program in torch lightgbm; do
        for variant in interleaved found; do
            echo "work $round $program $variant $(runs $program "$folder/$program.$variant")"
        done
    done
done
