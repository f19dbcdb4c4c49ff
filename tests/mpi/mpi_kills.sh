#!/bin/sh
# A training on three ranks of which one is killed, again and again: at any moment, most of them while a checkpoint is being
# saved. Each time all ranks are gone soon, and the newest checkpoint and the best model are whole; resumed, the training ends in the bits of one
# that was not disturbed. $PH_TEST_KILLS says how often (5); $PH_TEST_SEED draws the same moments again.
# Ranks are killed from when they have met: of one that is killed while it enters MPI, Open MPI's mpirun may lose sight, and
# wait for it for ever.
#
#     mpi_kills.sh openmpi|mpich PROGRAMS
kills=${PH_TEST_KILLS:-5}
case $kills in '' | *[!0-9]*)
    echo "mpi_kills: PH_TEST_KILLS is no number of kills: '$kills'" >&2
    exit 1
    ;;
esac
. "$(dirname "$0")/mpi_support.sh"
ranks=3
patience_seconds=60

seed=${PH_TEST_SEED:-$(date +%s)}
echo "$name: PH_TEST_SEED=$seed"

cat >"$work/plan.yaml" <<END
version: 1
world_size: $ranks
tables:
  "*.C1": {kind: row_wise}
  "*.C2*": {kind: column_wise}
  "*.C3": {kind: data_parallel}
default: {kind: table_wise}
END

# have_met FOLDER: the first rank, whose process is known, holds the training's folder; all others have been there before.
have_met() {
    [ -e "$work/process.0" ] && ls -l "/proc/$(cat "$work/process.0")/fd" 2>/dev/null | grep -q "$work/$1"
}

# begin FOLDER: starts or resumes the training, and waits until the ranks have met, or all is over.
begin() {
    rm -f "$work"/process.*
    # shellcheck disable=SC2016,SC2086 # for the shell that becomes a rank; a list of words
    $launcher -n $ranks sh -c '
        rank=${OMPI_COMM_WORLD_RANK:-$PMI_RANK} work=$1
        shift
        echo $$ >"$work/starting.$rank"
        mv "$work/starting.$rank" "$work/process.$rank"
        exec "$@"' sh "$work" "$PH_BINARY_DIR/phloem" train "$work/job.yaml" --out "$work/$1" --resume --quiet \
        --set "parallel.plan=$work/plan.yaml" --set train.max_steps=12 --set train.checkpoint_steps=1 \
        >"$work/stdout" 2>"$work/stderr" </dev/null &
    job=$!
    until have_met "$1" || ! is_alive "$job"; do
        sleep 0.02
    done
}

# end: waits for all ranks, and for mpirun, which leaves its status.
end() {
    tenths=$((patience_seconds * 10))
    for process in $(cat "$work"/process.*) "$job"; do
        while is_alive "$process"; do
            tenths=$((tenths - 1))
            [ "$tenths" -gt 0 ] || {
                kill -KILL "$job" $(cat "$work"/process.*) 2>/dev/null || true
                complain "process $process (mpirun is $job) has not ended in $patience_seconds s"
            }
            sleep 0.1
        done
    done
    status=0
    wait "$job" || status=$?
}

# same_end FOLDER: the training there has ended as the undisturbed one.
same_end() {
    sum=$(value "$work/$1/summary.json" checkpoint_sha256)
    [ "$sum" = "$wanted" ] || complain "the model is $sum; wanted $wanted"
    losses "$1" | cmp -s - "$work/losses" || complain 'the losses are not those of the undisturbed training'
}

make_job
before=$(date +%s%N)
begin whole
end
[ "$status" -eq 0 ] || complain "the undisturbed training ended with $status; wanted 0"
whole_ms=$((($(date +%s%N) - before) / 1000000))
wanted=$(value "$work/whole/summary.json" checkpoint_sha256)
[ -n "$wanted" ] || complain 'the undisturbed training has no sum'
losses whole >"$work/losses"

done=0 drawn=0 has_model='' saved=0
while [ "$done" -lt "$kills" ]; do
    drawn=$((drawn + 1))
    draw=$(awk -v seed="$((seed + drawn))" -v most="$whole_ms" -v ranks=$ranks \
        'BEGIN { srand(seed); rand(); print int(rand() * ranks), rand() * most / 1000 }')
    victim=${draw% *} seconds=${draw#* }
    begin run
    sleep "$seconds"
    kill -KILL "$(cat "$work/process.$victim")" 2>/dev/null || true
    end
    if [ "$status" -eq 0 ]; then # it was too late: begin anew
        same_end run
        rm -rf "$work/run"
        has_model='' saved=0
        continue
    fi
    ! grep 'phloem: error:' "$work/stderr" | grep -qv "rank $victim " || complain 'a rank has failed by itself'
    done=$((done + 1))
    step=$("$2/newest_checkpoint" "$work/run" 2>"$work/stderr") || complain 'the newest checkpoint is not whole'
    [ "$step" -ge "$saved" ] || complain "step $saved was saved; the newest checkpoint is of step $step"
    saved=$step
    [ ! -e "$work/run/model.safetensors" ] || has_model=yes
    [ -z "$has_model" ] || PHLOEM_MPI=self "$PH_BINARY_DIR/phloem" inspect "$work/run/model.safetensors" \
        >"$work/stdout" 2>"$work/stderr" || complain 'the best model is not whole'
    echo "$name: rank $victim was killed after $seconds s; step $step is saved"
done
begin run
end
[ "$status" -eq 0 ] || complain "the training that was killed $kills times ended with $status; wanted 0"
same_end run
echo "$name: $kills kills, and the same model"
