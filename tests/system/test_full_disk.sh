#!/bin/sh
# A disk that is full ends a training with 5 and one line, wherever it comes; the last good checkpoint stays, and the
# training goes on from it once there is room. On small file systems in memory, in a name space of its own.
if [ -z "${PH_IN_NAMESPACE-}" ]; then
    export PH_IN_NAMESPACE=yes
    unshare -rm true 2>/dev/null && exec unshare -rm sh "$0"
    unshare -m true 2>/dev/null && exec unshare -m sh "$0"
    echo "test_full_disk: skipped: no name space of mounts may be made here" >&2
    exit 77
fi
# shellcheck source=tests/system/support.sh
. "$PH_SOURCE_DIR/tests/system/support.sh"

mkdir disk
mount -t tmpfs -o size=1m tmpfs disk 2>stderr || {
    echo "$name: skipped: a tmpfs cannot be mounted here" >&2
    exit 77
}
trap 'umount disk; rm -rf "$work"' EXIT
# Type and source are named so that mount(8) adds no options of its own: a user's name space refuses their uid.
resize() {
    mount -t tmpfs -o "remount,size=$1" tmpfs disk
}

make_resume_job
succeeds train job.yaml --out whole --quiet

# ---- one megabyte: the second or third checkpoint is one too many ----
fails 5 'disk/run' train job.yaml --out disk/run --quiet
[ -n "$(find disk/run/checkpoints -name 'step-*.safetensors')" ] || complain 'no checkpoint was left'
for file in disk/run/checkpoints/*.safetensors; do
    succeeds inspect "$file"
done
fails 5 'disk/run' train job.yaml --out disk/run --quiet --resume
resize 16m
succeeds train job.yaml --out disk/run --resume
contains stdout 'resumed at step'
cp -R disk/run run
same_run whole run

# ---- full at other moments: room for all up to the middle of the best model, of the first or of a later checkpoint ----
for room in 20 60 130 200 300 450 650 800; do
    rm -rf disk/run run
    resize "${room}k"
    fails 5 'disk/run' train job.yaml --out disk/run --quiet --set train.checkpoint_steps=10
    resize 16m
    succeeds train job.yaml --out disk/run --quiet --resume
    cp -R disk/run run
    same_run whole run
done

# ---- a disk that may not be written ----
rm -rf disk/run
mount -t tmpfs -o remount,ro tmpfs disk
fails 5 'disk/run' train job.yaml --out disk/run --quiet
mount -t tmpfs -o remount,rw tmpfs disk
succeeds train job.yaml --out disk/run --quiet --set train.max_steps=20
mount -t tmpfs -o remount,ro tmpfs disk
fails 5 'disk/run' train job.yaml --out disk/run --quiet --resume
