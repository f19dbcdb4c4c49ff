#!/bin/sh
# Towers on hosts, 50 steps. Towers without layers end in the bits and losses of the same row cuts without towers on hosts. With
# layers they learn what one rank learns, to 1e-6, in the same bits in every run; one rank scores what they have learnt with the
# same bits, and any number of ranks goes on.
#
#     mpi_towers.sh openmpi|mpich HOSTSxRANKS...
. "$(dirname "$0")/mpi_support.sh"
shift
cat >"$work/job.yaml" <<END
seed: 4
threads: 1
data: {train: $work/data/train.tsv, valid: $work/data/valid.tsv, test: $work/data/test.tsv, format: criteo}
model:
  kind: dlrm
  embedding_dim: 16
  embedding_init_std: 0.1
  bottom_units: [16]
  top_units: [16]
  activation: sigmoid
  towers: "a: C1, C2, C3, C4, C5, C6, C7 | b: C8, C9, C10, C11, C12, C13 | c: C14, C15, C16, C17, C18, C19 |
    d: C20, C21, C22, C23, C24, C25, C26"
optimizer: {kind: sgd, learning_rate: 0.5}
train: {epochs: 1, batch_size: 203, report_seconds: 0, max_steps: 50, evaluate_steps: 25, report: false, max_gradient_norm: 0.05}
parallel: {bucket_bytes: 4096}
synth: {seed: 4, train_rows: 10200, valid_rows: 500, test_rows: 500, table_rows: 60, format: criteo}
END
"$PH_BINARY_DIR/phloem" synth "$work/job.yaml" --out "$work/data" >"$work/stdout" 2>"$work/stderr" ||
    complain 'the data were not made'

# learn RANKS FOLDER ARGUMENTS...
learn() {
    train "$@" --set parallel.ranks_per_host="$local"
    [ "$status" -eq 0 ] || complain "$2 ended with $status; wanted 0"
    echo "$2: $(value "$work/$2/summary.json" checkpoint_sha256)"
}

# plans: the same cuts with and without towers on hosts; a host has the tower of its number, the first also those of hosts that are
# not there.
plans() {
    for tower in a b c d; do
        case $tower in a) place=0 ;; b) place=1 ;; c) place=2 ;; d) place=3 ;; esac
        eval "host_$tower=$((place % hosts))"
    done
    cat >"$work/flat.yaml" <<END
version: 1
world_size: $world
ranks_per_host: $local
tables:
  "embedding.C[1-7]": {kind: table_row_wise, host: $host_a}
  "embedding.C8": {kind: table_row_wise, host: $host_b}
  "embedding.C9": {kind: table_row_wise, host: $host_b}
  "embedding.C1[0-3]": {kind: table_row_wise, host: $host_b}
  "embedding.C1[4-9]": {kind: table_row_wise, host: $host_c}
default: {kind: table_row_wise, host: $host_d}
END
    cp "$work/flat.yaml" "$work/hosts.yaml"
    echo "towers: {a: $host_a, b: $host_b, c: $host_c, d: $host_d}" >>"$work/hosts.yaml"
}

same() {
    [ "$(value "$work/$1/summary.json" checkpoint_sha256)" = "$(value "$work/$2/summary.json" checkpoint_sha256)" ] ||
        complain "$1 and $2 have ended in different bits"
    losses "$1" >"$work/one"
    losses "$2" >"$work/other"
    cmp "$work/one" "$work/other" || complain "$1 and $2 have different losses"
    [ -s "$work/one" ] || complain "$1 has no losses"
}

# close FOLDER FOLDER: their losses differ by 1e-6 of them at most.
close() {
    losses "$1" >"$work/one"
    losses "$2" >"$work/other"
    paste "$work/one" "$work/other" | awk -v one="$1" -v other="$2" '
        { d = ($1 - $2) / $2; d = d < 0 ? -d : d; if (d > most) most = d }
        END { printf "%s: losses differ from those of %s by %.1e at most\n", one, other, most; exit !(NR > 0 && most <= 1e-6) }' ||
        complain "$1 has other losses than $2"
}

local=1
for module in linear cross; do
    learn 1 "alone_$module" --set model.tower_module="$module" --set model.tower_dim=4
done
for world_of in "$@"; do
    hosts=${world_of%x*} local=${world_of#*x}
    world=$((hosts * local))
    plans
    for plan in flat hosts; do
        learn "$world" "identity_${world_of}_$plan" --set model.tower_module=identity --set parallel.plan="$work/$plan.yaml"
    done
    same "identity_${world_of}_flat" "identity_${world_of}_hosts"
    for module in linear cross; do
        set_module="--set model.tower_module=$module --set model.tower_dim=4 --set parallel.plan=$work/hosts.yaml"
        # shellcheck disable=SC2086 # a list of words
        learn "$world" "${module}_$world_of" $set_module
        close "${module}_$world_of" "alone_$module"
    done
    # shellcheck disable=SC2086
    learn "$world" "again_$world_of" $set_module
    same "again_$world_of" "cross_$world_of"
done

# What ranks have learnt, scored by one; and learnt on from by one, which had learnt all.
folder=cross_$world_of
"$PH_BINARY_DIR/phloem" eval "$work/$folder" "$work/data/test.tsv" >"$work/scores" 2>"$work/stderr" ||
    complain "$folder was not scored"
wanted=$(value "$work/$folder/summary.json" logloss | tail -n 1) # of the test data, behind that of the valid ones
grep -q "\"logloss\": $wanted" "$work/scores" || complain "one rank scores otherwise: $(cat "$work/scores"); wanted $wanted"
local=1
learn 1 "$folder" --resume --set model.tower_module=cross --set model.tower_dim=4
same "$folder" "again_$world_of"
