#!/bin/sh
# A training on three ranks of which one is killed, again and again: at any moment, most of them while a checkpoint is being
# saved. Each time all ranks are gone soon, one line says who has died, and the newest checkpoint and the best model are whole;
# resumed, the training ends in the bits of one that was not disturbed. $PH_TEST_KILLS says how often (5); $PH_TEST_SEED draws the same moments again.
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

# be_rank WORK COMMAND...: the command is a rank, and leaves its process.
cat >"$work/be_rank" <<'END'
rank=${OMPI_COMM_WORLD_RANK:-$PMI_RANK} work=$1
shift
echo $$ >"$work/starting.$rank"
mv "$work/starting.$rank" "$work/process.$rank"
exec "$@"
END

# be_hidden WORK COMMAND...: the same, but mpirun hears of a rank's end when all have ended.
cat >"$work/be_hidden" <<'END'
code=0
sh "$1/be_rank" "$@" || code=$?
for process in $(cat "$1"/process.*); do
    while kill -0 "$process" 2>/dev/null; do
        sleep 0.1
    done
done
exit "$code"
END

# choose_way: MPICH's mpirun kills all others as soon as one has died, most often before they can say who it was: every other
# time it does not hear of it. Leaves how many lines there must be, and how a rank is started.
choose_way() {
    fewest=1 way=be_rank
    [ "$mpi" = mpich ] || return 0
    if [ $((drawn % 2)) -eq 0 ]; then
        fewest=0
    else
        way=be_hidden
    fi
}

# begin FOLDER: starts or resumes the training, and waits until the ranks have met, or all is over.
begin() {
    rm -f "$work"/process.*
    # shellcheck disable=SC2086 # a list of words
    $launcher -n $ranks sh "$work/$way" "$work" "$PH_BINARY_DIR/phloem" train "$work/job.yaml" --out "$work/$1" --resume --quiet \
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

# kill_rank RANK: leaves its process in victim_process; false: it was too late, as all had been learnt and written. It is stopped
# before that is looked at, so that the others cannot come to their end meanwhile. MPI's own end nobody but mpirun can end: a
# rank whose death that does not hear of goes on.
kill_rank() {
    is_late=false signal=KILL
    victim_process=$(cat "$work/process.$1")
    kill -STOP "$victim_process" 2>/dev/null || is_late=true
    [ ! -e "$work/run/summary.json" ] || is_late=true
    [ "$is_late.$way" != true.be_hidden ] || signal=CONT
    kill "-$signal" "$victim_process" 2>/dev/null || true
    [ "$is_late" = false ]
}

# check_lines RANK: one line names it, unless UCX, below MPICH, has aborted a rank that was reading from the dead one's memory.
check_lines() {
    said=-
    ! grep -q 'cma_ep.c.*process_vm_readv.*No such process' "$work/stderr" || return 0
    said=$(grep -c '^phloem: error:' "$work/stderr") || true
    named=$(grep -c "^phloem: error: rank $1 (process $victim_process on .*) ended unexpectedly\$" "$work/stderr") || true
    [ "$said" -eq "$named" ] || complain "a line is not of the end of rank $1 (process $victim_process)"
    [ "$said" -ge "$fewest" ] && [ "$said" -le 1 ] || complain "$said ranks have said that rank $1 has ended; wanted one"
}

# same_end FOLDER: the training there has ended as the undisturbed one.
same_end() {
    sum=$(value "$work/$1/summary.json" checkpoint_sha256)
    [ "$sum" = "$wanted" ] || complain "the model is $sum; wanted $wanted"
    losses "$1" | cmp -s - "$work/losses" || complain 'the losses are not those of the undisturbed training'
}

make_job
way=be_rank
begin whole
before=$(date +%s%N)
until [ -e "$work/whole/summary.json" ] || ! is_alive "$job"; do
    sleep 0.01
done
whole_ms=$((($(date +%s%N) - before) / 1000000))
end
[ "$status" -eq 0 ] || complain "the undisturbed training ended with $status; wanted 0"
wanted=$(value "$work/whole/summary.json" checkpoint_sha256)
[ -n "$wanted" ] || complain 'the undisturbed training has no sum'
losses whole >"$work/losses"

done=0 drawn=0 has_model='' saved=0
while [ "$done" -lt "$kills" ]; do
    drawn=$((drawn + 1))
    draw=$(awk -v seed="$((seed + drawn))" -v most="$whole_ms" -v ranks=$ranks \
        'BEGIN { srand(seed); rand(); print int(rand() * ranks), rand() * most / 1000 }')
    victim=${draw% *} seconds=${draw#* }
    choose_way
    begin run
    sleep "$seconds"
    if ! kill_rank "$victim"; then # begin anew
        end
        same_end run
        rm -rf "$work/run"
        has_model='' saved=0
        continue
    fi
    end
    [ "$status" -ne 0 ] || complain "mpirun ended with 0 though rank $victim was killed"
    check_lines "$victim"
    done=$((done + 1))
    step=$("$2/newest_checkpoint" "$work/run" 2>"$work/stderr") || complain 'the newest checkpoint is not whole'
    [ "$step" -ge "$saved" ] || complain "step $saved was saved; the newest checkpoint is of step $step"
    saved=$step
    [ ! -e "$work/run/model.safetensors" ] || has_model=yes
    [ -z "$has_model" ] || PHLOEM_MPI=self "$PH_BINARY_DIR/phloem" inspect "$work/run/model.safetensors" \
        >"$work/stdout" 2>"$work/stderr" || complain 'the best model is not whole'
    echo "$name: rank $victim was killed after $seconds s ($way; lines: $said); step $step is saved"
done
way=be_rank
begin run
end
[ "$status" -eq 0 ] || complain "the training that was killed $kills times ended with $status; wanted 0"
same_end run
echo "$name: $kills kills, and the same model"
