#!/bin/sh
# Prints how long each verb takes for files of many columns (docs/SPEED.md). Seconds are of the wall; they grow with the
# number of columns, not with its square.
#
#     tools/column_figures.sh [PROGRAM] [ROWS] [COLUMNS...]     build/release/phloem 1000 2000 16000 100000
set -eu

here=$(cd "$(dirname "$0")/.." && pwd)
program=${1:-$here/build/release/phloem}
rows=${2:-1000}
[ $# -lt 2 ] && shift $# || shift 2
[ $# -gt 0 ] || set -- 2000 16000 100000
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT

# make COLUMNS KIND: a label and COLUMNS columns of the kind, "dense" or "id", in $work/data.csv, and a job for them.
make() {
    awk -v columns="$1" -v rows="$rows" -v kind="$2" 'BEGIN {
        srand(1)
        printf "label"
        for (i = 1; i <= columns; i++)
            printf ",c%d", i
        print ""
        for (r = 1; r <= rows; r++) {
            for (i = 1; i <= 64; i++)
                cell[i] = kind == "id" ? "i" int(20 * rand()) : int(1000 * rand()) / 1000
            printf "%d", int(2 * rand())
            for (i = 1; i <= columns; i++)
                printf ",%s", cell[(i - 1) % 64 + 1]
            print ""
        }
    }' >"$work/data.csv"
    cat >"$work/job.yaml" <<END
data:
  train: $work/data.csv
  encoding: vocabulary
  fields: [{name: label, kind: label}, {name: "*", kind: $2}]
model: {kind: lr}
train: {epochs: 1, batch_size: 256}
END
}

# seconds ARGUMENTS...: of the wall, or why there are none.
seconds() {
    began=$(date +%s%N)
    status=0
    "$program" "$@" >"$work/stdout" 2>"$work/stderr" </dev/null || status=$?
    ended=$(date +%s%N)
    if [ "$status" -eq 0 ]; then
        echo "$began $ended" | awk '{printf "%.1f", ($2 - $1) / 1e9}'
    else
        printf 'ended with %s' "$status"
    fi
}

printf '| columns | rows | MB | train | eval | predict | inspect | export | prepare |\n|---|---|---|---|---|---|---|---|---|\n'
for columns in "$@"; do
    for kind in dense id; do
        make "$columns" "$kind"
        rm -rf "$work/run" "$work/prepared"
        printf '| %s %s | %s | %s | ' "$columns" "$kind" "$rows" "$(($(wc -c <"$work/data.csv") / 1000000))"
        printf '%s | ' "$(seconds train "$work/job.yaml" --out "$work/run")"
        printf '%s | ' "$(seconds eval "$work/run" "$work/data.csv")"
        printf '%s | ' "$(seconds predict "$work/run" "$work/data.csv" --out "$work/scores.csv")"
        printf '%s | ' "$(seconds inspect "$work/run/model.safetensors")"
        printf '%s | ' "$(seconds export "$work/run" --onnx "$work/model.onnx")"
        printf '%s |\n' "$(seconds prepare "$work/job.yaml" --out "$work/prepared")"
    done
done
