#!/bin/sh
# kill -9 at twenty random moments of a training, each followed by a resume, and each a run of its own, too: the result
# is that of a training that was not disturbed. The seed is printed; PH_TEST_SEED=N repeats a run.
# shellcheck source=tests/system/support.sh
. "$PH_SOURCE_DIR/tests/system/support.sh"

seed=${PH_TEST_SEED:-$(date +%s)}
echo "$name: PH_TEST_SEED=$seed"

make_resume_job
before=$(date +%s%N)
succeeds train job.yaml --out whole --quiet
whole_ms=$((($(date +%s%N) - before) / 1000000))
wanted=$(value whole/summary.json checkpoint_sha256)

# Twenty numbers of milliseconds, up to a little more than the whole training takes.
moments=$(awk -v seed="$seed" -v most="$whole_ms" \
    'BEGIN { srand(seed); for (i = 0; i < 20; i++) print int(rand() * most * 1.1) }')

# killed_after MILLISECONDS FOLDER
killed_after() {
    begins train job.yaml --out "$2" --resume --quiet
    sleep "$(awk -v ms="$1" 'BEGIN { print ms / 1000 }')"
    kill -s KILL "$process" 2>/dev/null || true
    wait "$process" 2>/dev/null || true
}

# ---- twenty trainings, each killed once ----
for moment in $moments; do
    rm -rf run
    killed_after "$moment" run
    left=$(find run -name '*.tmp' 2>/dev/null | tr '\n' ' ')
    at=$(tail -n 1 run/metrics.jsonl 2>/dev/null | sed 's/.*"step":\([0-9]*\).*/\1/')
    succeeds train job.yaml --out run --resume --quiet
    got=$(value run/summary.json checkpoint_sha256)
    echo "$name: killed after $moment ms, at step ${at:-0}${left:+, leaving $left}: $got"
    [ "$got" = "$wanted" ] || complain "killed after $moment ms, the result differs from $wanted"
    same_run whole run
done

# ---- one training, killed twenty times: each goes on from where the last one was ----
rm -rf run
for moment in $moments; do
    killed_after $((moment / 4)) run
done
succeeds train job.yaml --out run --resume --quiet
same_run whole run
echo "$name: killed twenty times in a row: $(value run/summary.json checkpoint_sha256)"
