#!/bin/sh
# Trainings by each of parallel.collective: the same bits twice, and sums that differ by rounding alone; the bytes that each
# algorithm says on the wire, counted from outside; sharded parameters beside replicated ones; a choice that may not be.
#
#     mpi_collectives.sh openmpi|mpich PROGRAMS
. "$(dirname "$0")/mpi_support.sh"
programs=$2
cd "$work" || exit 1

cat >job.yaml <<'END_OF_JOB'
seed: 5
threads: 1
data: {train: data/train.tsv, valid: data/valid.tsv, format: criteo}
model: {kind: dlrm, embedding_dim: 8, bottom_units: [40], top_units: [30, 20]}
optimizer: {kind: sgd, learning_rate: 0.05}
train: {epochs: 1, batch_size: 64, max_steps: 8, report_seconds: 1000, report: false}
parallel: {plan: plan.yaml, ranks_per_host: 2, bucket_bytes: 1000000}
synth: {seed: 5, train_rows: 600, valid_rows: 100, test_rows: 100, format: criteo, table_rows: 50}
END_OF_JOB
cat >racks.yaml <<'END_OF_RACKS'
version: 1
kind: racks
hosts: 8
host: {gbits_per_s: 0.8, latency_us: 5}
rack: {hosts: 2, uplinks: 1, gbits_per_s: 0.1, latency_us: 5}
END_OF_RACKS
"$PH_BINARY_DIR/phloem" synth job.yaml --out data >stdout 2>stderr || complain 'no data'

# plans RANKS DENSE: leaves plan.yaml with that section.
plans() {
    printf 'version: 1\nworld_size: %d\ndefault: {kind: row_wise}\ndense: {%s}\n' "$1" "$2" >plan.yaml
}

# learns FOLDER RANKS ARGUMENTS...: trains, and sets `digest` to the sum of what was learnt.
learns() {
    folder=$1 learn_ranks=$2
    shift 2
    launch "$learn_ranks" env ${PH_TEST_TRAFFIC:+"LD_PRELOAD=$programs/libpmpi_traffic_$mpi.so"} "$PH_BINARY_DIR/phloem" train job.yaml \
        --out "$folder" --quiet "$@"
    [ "$status" -eq 0 ] || complain "$folder ended with $status; wanted 0"
    digest=$(value "$folder/summary.json" checkpoint_sha256)
    [ -n "$digest" ] || complain 'there is no sum of the parameters'
}

loss() {
    sed -n 's/^ *"logloss": \([0-9.]*\).*/\1/p' "$1/summary.json" | head -n 1
}

# counted KIND: trains by it once more, and leaves the bytes of dense gradients between ranks, whose channels are 4096 and above,
# with 4 tags each.
counted() {
    PH_TEST_TRAFFIC=$work/counted
    export PH_TEST_TRAFFIC
    learns "$1.2" 4 --set parallel.collective="$1"
    unset PH_TEST_TRAFFIC
    for rank in 0 1 2 3; do
        sed -n "s/^{\"to\": \([0-9]*\), \"tag\": \([0-9]*\), .*\"bytes\": \([0-9]*\)}.*/$rank \1 \2 \3/p" "counted.$rank"
    done | awk '$3 >= 4 * 4096 { sent[$1 " " $2] += $4 }
        END { for (r = 0; r < 4; r++) for (q = 0; q < 4; q++) print r, q, sent[r " " q] + 0 }' >"bytes.$1"
}

plans 4 'mode: replicated'
learns exchange.1 4 # the default
exchange=$digest
for kind in exchange hierarchical ring; do
    [ $kind = exchange ] || learns $kind.1 4 --set parallel.collective=$kind
    first=$digest
    counted $kind
    [ "$digest" = "$first" ] || complain "$kind ended in other bits the second time"
    [ $kind = exchange ] || [ "$digest" != "$exchange" ] || complain "$kind ended in the bits of exchange: it was not at work"
    [ "$(value $kind.2/summary.json collective)" = $kind ] || complain "the summary does not name $kind"
    awk -v a="$(loss $kind.1)" -v b="$(loss exchange.1)" 'BEGIN { d = a - b; exit !(d * d <= 1e-12 * b * b) }' ||
        complain "$kind: a loss of $(loss $kind.1) is not near $(loss exchange.1)"
    echo "$kind: $digest, a loss of $(loss $kind.1)"
done
hierarchical=$(value hierarchical.1/summary.json checkpoint_sha256)

# Each number is added in an order that does not depend on who owns it, unless around a ring.
plans 4 'mode: full, unit_bytes: 4096'
learns full 4 --set parallel.collective=hierarchical
[ "$digest" = "$hierarchical" ] || complain 'hierarchical sums of shards have other bits than those of replicas'
learns full_ring.1 4 --set parallel.collective=ring --set parallel.dense=bf16
first=$digest
learns full_ring.2 4 --set parallel.collective=ring --set parallel.dense=bf16
[ "$digest" = "$first" ] || complain 'a ring of shards ended in other bits the second time'

# Racks that the topology file knows are groups.
plans 4 'mode: replicated'
racks='--set parallel.topology=racks.yaml --set parallel.ranks_per_host=1'
# shellcheck disable=SC2086 # a list of words
learns auto 4 $racks --set parallel.collective=auto
[ "$digest" = "$hierarchical" ] || complain 'racks of two hosts have other bits than hosts of two ranks'
case $(value auto/summary.json collective) in
'auto: '*hierarchical*) ;;
*) complain "auto did not choose hierarchical on racks" ;;
esac

# No network is as fast as this topology says, so ranks try each collective; sharded layers, whose sums are not watched, keep
# to the bits of exchange.
printf 'version: 1\nkind: star\nhosts: 4\nhost: {gbits_per_s: 1e5, latency_us: 0}\nmessages: {send_us: 0, receive_us: 0}\n' \
    >fast.yaml
fast='--set parallel.collective=auto --set parallel.topology=fast.yaml --set parallel.ranks_per_host=1'
# shellcheck disable=SC2086 # a list of words
learns retry 4 $fast --set parallel.collective_retry=true --set train.max_steps=60 --set train.epochs=10 --set train.patience=0
grep -q '"collective": "auto: exchange; later, from [0-9]* bytes ' retry/summary.json || complain 'no other collective was tried'
grep -q 'note: sums of .* took .* exchange takes .* ring takes .* goes on' stderr || complain 'nothing was said of the trials'
plans 4 'mode: full, unit_bytes: 4096'
# shellcheck disable=SC2086 # a list of words
learns full_retry 4 $fast --set parallel.collective_retry=true
[ "$digest" = "$exchange" ] || complain 'shards whose collective may change have other bits than exchanged replicas'

# Another collective may go on with a training.
plans 4 'mode: replicated'
learns exchange.2 4 --set parallel.collective=ring --set train.max_steps=9 --resume
[ "$(value exchange.2/summary.json collective)" = ring ] || complain 'the resumed training kept its collective'

# wanted KIND: the same by the algorithm. n numbers are cut into four parts, the first ones longer. Hierarchical: the first parts
# are those of the first rank of each host.
wanted() {
    awk -v kind="$1" -v steps=8 '
        { total += $3 }
        function part(i) { return int(n / 4) + (i < n % 4) }
        function place(r) { return r % 2 * 2 + int(r / 2) }
        function both(p) { return part(2 * p) + part(2 * p + 1) } # parts of the ranks of a place
        function sent(r, q, k, sum) {
            if (r == q)
                return 0
            if (kind == "exchange")
                return part(q) + part(r)
            if (kind == "ring") { # all parts but the own one are sent on, and all sums but that of the next rank
                for (k = 0; k < 4; k++)
                    sum += (k != r) * part(k) + (k != q) * part(k)
                return q == (r + 1) % 4 ? sum : 0
            }
            if (int(r / 2) == int(q / 2))
                return both(q % 2) + both(r % 2)
            return r % 2 == q % 2 ? part(place(q)) + part(place(r)) : 0
        }
        END {
            n = total / (2 * 3 * 4 * steps)
            for (r = 0; r < 4; r++) for (q = 0; q < 4; q++) print r, q, sent(r, q) * 4 * steps
        }' bytes.exchange
}
for kind in exchange hierarchical ring; do
    wanted $kind >wanted.bytes
    awk '{ sum += $3 } END { exit !(sum > 0) }' bytes.$kind || complain "$kind: nothing was counted"
    diff wanted.bytes bytes.$kind >&2 || complain "$kind has sent something else"
done

# refused RANKS TEXT ARGUMENTS...: ends all ranks with exit code 2 and that text.
refused() {
    refused_ranks=$1 text=$2
    shift 2
    plans "$refused_ranks" 'mode: replicated'
    launch "$refused_ranks" "$PH_BINARY_DIR/phloem" train job.yaml --out refused --quiet "$@"
    [ "$status" -eq 2 ] || complain "'$text': it ended with $status; wanted 2"
    grep -qF "$text" stderr || complain "wanted '$text'"
}
refused 3 "the job has 2 hosts of the topology's group 0 and 1 of group 1: take as many of each, or set ring or auto" \
    --set parallel.collective=hierarchical --set parallel.topology=racks.yaml --set parallel.ranks_per_host=1

# shellcheck disable=SC2016 # for the ranks' own shell
launch 2 sh -c 'kind=exchange; [ "${OMPI_COMM_WORLD_RANK:-$PMI_RANK}" -eq 0 ] || kind=ring
    exec "$0" train job.yaml --out unequal --quiet --set parallel.collective=$kind' "$PH_BINARY_DIR/phloem"
[ "$status" -eq 2 ] || complain "unequal collectives ended with $status; wanted 2"
grep -qF "parallel.collective differs between ranks 0 ('exchange') and 1 ('ring')" stderr || complain 'wanted the key that differs'
