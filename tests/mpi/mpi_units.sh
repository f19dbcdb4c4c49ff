#!/bin/sh
# Sharded dense parameters learn the bits of replicated ones: by every mode and optimizer, with clipping, dropout, batch norm,
# accumulation and lower precision, and when checkpoints move between modes and numbers of ranks. What may not be is refused.
#
#     mpi_units.sh openmpi|mpich RANKS...
. "$(dirname "$0")/mpi_support.sh"
shift
cd "$work" || exit 1

cat >job.yaml <<'END'
seed: 5
threads: 1
data: {train: data/train.tsv, valid: data/valid.tsv, format: criteo}
model: {kind: dlrm, embedding_dim: 8, bottom_units: [300, 64], top_units: [200, 150], dropout: 0.1, batch_norm: true}
optimizer: {kind: adam, learning_rate: 0.01, net_l2: 1e-5}
train: {epochs: 1, batch_size: 60, max_steps: 30, report_seconds: 1000, report: false, max_gradient_norm: 0.5}
synth: {seed: 5, train_rows: 4000, valid_rows: 100, test_rows: 100, format: criteo, table_rows: 50}
END
echo '{"sites": [{"weight": "*", "forward": "int8", "backward": "int8"}]}' >recipes.json
"$PH_BINARY_DIR/phloem" synth job.yaml --out data >stdout 2>stderr || complain 'no data'

# learns RANKS FOLDER DENSE ARGUMENTS...: trains by a plan with that section, and sets `digest` to the sum of what was learnt.
learns() {
    learn_ranks=$1 folder=$2
    printf 'version: 1\nworld_size: %d\ndefault: {kind: row_wise}\ndense: {%s}\n' "$1" "$3" >plan.yaml
    shift 3
    launch "$learn_ranks" "$PH_BINARY_DIR/phloem" train job.yaml --out "$folder" --quiet --threads 1 \
        --set parallel.plan=plan.yaml "$@"
    [ "$status" -eq 0 ] || complain "$folder by $learn_ranks ranks ended with $status; wanted 0"
    digest=$(value "$folder/summary.json" checkpoint_sha256)
    [ -n "$digest" ] || complain 'there is no sum of the parameters'
}

num=0 whole=''
# learns_whole RANKS ARGUMENTS...: sets `wanted` to the sum of replicated parameters, which lie in the folder `whole`.
learns_whole() {
    num=$((num + 1))
    [ "$whole" = "$*" ] && return
    whole=$*
    whole_ranks=$1
    shift
    rm -rf whole
    learns "$whole_ranks" whole 'mode: replicated' "$@"
    wanted=$digest
}

# same RANKS DENSE ARGUMENTS...: that section gives the bits of replicated parameters.
same() {
    same_ranks=$1 dense=$2
    shift 2
    learns_whole "$same_ranks" "$@"
    learns "$same_ranks" "shards$num" "$dense" "$@"
    [ "$digest" = "$wanted" ] || complain "{$dense} on $same_ranks ranks with '$*' ended in other bits than replicas"
    echo "$same_ranks ranks, {$dense} $*: $digest"
}

for ranks in "$@"; do
    for mode in zero1 keep_after_forward full; do
        same "$ranks" "mode: $mode, unit_bytes: 65536"
    done
    same "$ranks" "mode: hybrid, group: $ranks, unit_bytes: 65536"
    same "$ranks" 'mode: hybrid, group: 1, unit_bytes: 65536'
    same "$ranks" 'mode: full, unit_bytes: 65536, prefetch: 0' --set optimizer.kind=adagrad --set model.batch_norm=false \
        --set model.block_norm=true --set model.bias=last --set model.activation=hard_swish
    same "$ranks" 'mode: full, units: {"top.*.weight": {}, "bottom.*": {}}' --set optimizer.kind=sgd \
        --set train.max_gradient_norm=0 --set train.precision=bf16 --set parallel.overlap=false
    for mode in full zero1; do
        same "$ranks" "mode: $mode, unit_bytes: 65536" --set optimizer.kind=adamw --set train.accumulation_steps=3
    done
    same "$ranks" 'mode: keep_after_forward, unit_bytes: 65536' --set optimizer.kind=rowwise_adagrad \
        --set train.recipes=recipes.json
done

# Tables may be cut in any way beside sharded dense parameters.
for mode in replicated full; do
    {
        printf 'version: 1\nworld_size: 4\ndefault: {kind: grid}\ndense: {mode: %s, unit_bytes: 65536}\ntables:\n' "$mode"
        table=0
        for kind in table_wise column_wise table_row_wise table_column_wise data_parallel; do
            table=$((table + 1))
            echo "  embedding.C$table: {kind: $kind}"
        done
    } >plan.yaml
    launch 4 "$PH_BINARY_DIR/phloem" train job.yaml --out "kinds.$mode" --quiet --threads 1 --set train.max_steps=5 \
        --set parallel.ranks_per_host=2 --set parallel.plan=plan.yaml
    [ "$status" -eq 0 ] || complain "tables of each kind beside $mode ended with $status; wanted 0"
done
[ "$(value kinds.full/summary.json checkpoint_sha256)" = "$(value kinds.replicated/summary.json checkpoint_sha256)" ] ||
    complain 'mode full beside tables of each kind ended in other bits than replicas'

# Sums over groups, numbers of 16 bits and sums of each micro-batch round otherwise: near, and the same bits twice.
# By gradient descent: Adam makes whole steps of differences that are rounding alone.
near() {
    set -- "$1" "$2" "$3" --set train.max_steps=10 --set optimizer.kind=sgd
    near_ranks=$1 dense=$2 most=$3
    shift 3
    learns_whole "$near_ranks" "$@"
    learns "$near_ranks" "near$num" "$dense" "$@"
    [ "$digest" != "$wanted" ] || complain "{$dense} ended in the bits of replicas: what differs was not at work"
    near_loss=$(sed -n 's/^ *"logloss": \([0-9.]*\).*/\1/p' "near$num/summary.json" | head -n 1)
    exact_loss=$(sed -n 's/^ *"logloss": \([0-9.]*\).*/\1/p' whole/summary.json | head -n 1)
    echo "$near_ranks ranks, {$dense}: a loss of $near_loss, replicas $exact_loss"
    awk -v a="$near_loss" -v b="$exact_loss" -v most="$most" 'BEGIN { d = a - b; exit !(d * d <= most * most * b * b) }' ||
        complain "{$dense}: a loss of $near_loss is not within $most of $exact_loss"
}
# near_twice RANKS DENSE MOST: as near, and ends in the same bits the second time.
near_twice() {
    near "$@"
    first=$digest
    learns "$1" "again$num" "$2" --set train.max_steps=10 --set optimizer.kind=sgd
    [ "$digest" = "$first" ] || complain "{$2} ended in other bits the second time"
}
near_twice 4 'mode: hybrid, group: 2, unit_bytes: 65536' 1e-6
near 4 'mode: keep_after_forward, group: 2, unit_bytes: 65536' 1e-6
near_twice 3 'mode: full, wire: bf16, unit_bytes: 65536' 1e-3
near 3 'mode: full, wire: fp16, unit_bytes: 65536' 1e-3

# operations FOLDER WHAT: how many of them all ranks have started in all steps.
operations() {
    sed -n "/\"what\": \"$2\"/,/}/s/^ *\"operations\": \([0-9]*\).*/\1/p" "$1/summary.json"
}

# counts FOLDER DENSE GATHERS REDUCTIONS: gathers and reductions of a step of three micro-batches, as multiples of those of a step
# of one by mode full, which the folder `one` has.
counts() {
    learns 2 "$1" "$2" --set train.max_steps=10 --set train.accumulation_steps=3
    for what in 'parameters of dense layers' 'gradients of sharded parameters'; do
        wanted=$3
        [ "$what" = 'parameters of dense layers' ] || wanted=$4
        [ "$(operations "$1" "$what")" -eq $(($(operations one "$what") * wanted)) ] ||
            complain "{$2}: $(operations "$1" "$what") operations for $what; wanted $wanted times $(operations one "$what")"
    done
}
learns 2 one 'mode: full, unit_bytes: 65536' --set train.max_steps=10
counts once 'mode: full, unit_bytes: 65536' 3 1
counts every 'mode: full, unit_bytes: 65536, reduce: every' 3 3

# A checkpoint goes from mode to mode and from world to world as replicas do.
move() {
    folder=$1
    shift
    set -- 4 "$1" 1 "$2" 3 "$3"
    steps=0
    while [ $# -gt 0 ]; do
        steps=$((steps + 5))
        resume=''
        [ "$steps" -eq 5 ] || resume=--resume
        # shellcheck disable=SC2086 # a flag or none
        learns "$1" "$folder" "mode: $2, unit_bytes: 65536" --set train.max_steps=$steps $resume
        shift 2
    done
}
move moves full zero1 keep_after_forward
moved=$digest
move replicas replicated replicated replicated
[ "$digest" = "$moved" ] || complain 'checkpoints of shards moved over 4, 1 and 3 ranks ended in other bits than replicas'

# One process scores by the shards of three.
for folder in moves replicas; do
    "$PH_BINARY_DIR/phloem" eval "$folder" data/valid.tsv >"$folder.scores" 2>stderr || complain "$folder cannot be evaluated"
done
grep auc moves.scores >stdout || complain 'no AUC was printed'
cmp -s moves.scores replicas.scores || complain 'shards score otherwise than replicas'

# refused RANKS DENSE TEXT ARGUMENTS...: ends all ranks with exit code 2 and that text.
refused() {
    refused_ranks=$1 text=$3
    printf 'version: 1\nworld_size: %d\ndefault: {kind: row_wise}\ndense: {%s}\n' "$1" "$2" >plan.yaml
    shift 3
    launch "$refused_ranks" "$PH_BINARY_DIR/phloem" train job.yaml --out refused --quiet --threads 1 \
        --set parallel.plan=plan.yaml "$@"
    [ "$status" -eq 2 ] || complain "'$text': it ended with $status; wanted 2"
    grep -qF "$text" stderr || complain "wanted '$text'"
}
refused 2 'mode: fsdp' "plan.yaml:4: dense.mode: unknown word 'fsdp'"
refused 2 'mode: full' 'parallel.dense: int8 has a scale for each 256 numbers' --set parallel.dense=int8

# Ranks with unequal bounds are told so before the first step.
printf 'version: 1\nworld_size: 2\ndefault: {kind: row_wise}\ndense: {mode: full, unit_bytes: 65536}\n' >plan0.yaml
printf 'version: 1\nworld_size: 2\ndefault: {kind: row_wise}\ndense: {mode: full, unit_bytes: 300000}\n' >plan1.yaml
# shellcheck disable=SC2016 # for the ranks' own shell
launch 2 sh -c 'exec "$0" train job.yaml --out unequal --quiet --threads 1 --set \
    parallel.plan=plan${OMPI_COMM_WORLD_RANK:-$PMI_RANK}.yaml' "$PH_BINARY_DIR/phloem"
[ "$status" -eq 2 ] || complain "unequal units ended with $status; wanted 2"
grep -q "dense unit .* differs between ranks 0 (.*) and 1 (" stderr || complain 'wanted the unit that differs'
