#!/bin/sh
# A disk that is full for what one rank saves ends all ranks with 5 and one line; no checkpoint is half there, and once there is
# room the training goes on and ends as the undisturbed one. On a file system in memory, in a name space of its own.
#
#     mpi_full_disk.sh openmpi|mpich
if [ -z "${PH_IN_NAMESPACE-}" ]; then
    export PH_IN_NAMESPACE=yes
    unshare -rm true 2>/dev/null && exec unshare -rm sh "$0" "$@"
    unshare -m true 2>/dev/null && exec unshare -m sh "$0" "$@"
    echo 'mpi_full_disk: skipped: no name space of mounts may be made here' >&2
    exit 77
fi
. "$(dirname "$0")/mpi_support.sh"
cd "$work"
mkdir disk
mount -t tmpfs -o size=64m tmpfs disk 2>stderr || skip 'a tmpfs cannot be mounted here'
trap 'umount disk; rm -rf "$work"' EXIT

cat >job.yaml <<'END'
seed: 1
threads: 1
data: {train: data/train.tsv, valid: data/valid.tsv, format: criteo}
model: {kind: dlrm, embedding_dim: 16, bottom_units: [8], top_units: [8]}
train: {epochs: 2, batch_size: 100, report_seconds: 1000, checkpoint_steps: 3, report: false, tensorboard: false}
parallel: {plan: plan.yaml}
synth: {train_rows: 700, valid_rows: 100, test_rows: 100, table_rows: 1000, format: criteo}
END
cat >plan.yaml <<'END'
version: 1
world_size: 2
default: {kind: table_wise, rank: 1}
END
"$PH_BINARY_DIR/phloem" synth job.yaml --out data >stdout

trains() {
    launch 2 "$PH_BINARY_DIR/phloem" train job.yaml --quiet "$@"
}

sum_of() {
    sed -n 's/.*"checkpoint_sha256": "\([0-9a-f]*\)".*/\1/p' "$1/summary.json"
}

trains --out whole
[ "$status" -eq 0 ] || complain "there is room, but it ended with $status"
part=$(find whole/checkpoints/step-000000000014.safetensors -name 'part-00002*' -printf '%k')

# Room for none of rank 1's parts, for some of them, and for all but the last.
for room in $((part / 2)) $((part * 3 / 2)) $((part * 2)) $((part * 5 / 2)); do
    rm -rf disk/run
    mount -t tmpfs -o "remount,size=${room}k" tmpfs disk
    trains --out disk/run
    [ "$status" -eq 5 ] || complain "with ${room} KiB of room it ended with $status; wanted 5"
    [ "$(grep -c '^phloem: error: .*disk/run' stderr)" -eq 1 ] || complain "with ${room} KiB: wanted one line"
    mount -t tmpfs -o remount,size=64m tmpfs disk
    trains --out disk/run --resume
    [ "$status" -eq 0 ] || complain "behind ${room} KiB of room it cannot go on: it ended with $status"
    [ "$(sum_of disk/run)" = "$(sum_of whole)" ] || complain "behind ${room} KiB of room it has ended elsewhere"
done
