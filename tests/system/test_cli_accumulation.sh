#!/bin/sh
# Micro-batches by the program: a training alone and on ranks learns what it learns by whole batches, and takes less memory.
# shellcheck source=tests/system/support.sh
. "$PH_SOURCE_DIR/tests/system/support.sh"

make_small_job

# close KEY FILE FILE BAR: the last of both numbers differ by at most BAR.
close() {
    a=$(value "$2" "$1" | tail -n 1) b=$(value "$3" "$1" | tail -n 1)
    [ -n "$a" ] && [ -n "$b" ] || complain "$1 is '$a' in $2 and '$b' in $3"
    learned "cli_accumulation.$1" "$(awk -v a="$a" -v b="$b" 'BEGIN { print (a > b ? a - b : b - a) }')" '<=' "$4"
}

# 250 samples a step: 8 micro-batches of 31 and 32.
succeeds train job.yaml --out whole --quiet
succeeds train job.yaml --out cut --quiet --set train.accumulation_steps=8
close logloss cut/summary.json whole/summary.json 1e-6
close auc cut/summary.json whole/summary.json 2e-5 # two rows that change places make 3e-6
contains cut/config.yaml 'accumulation_steps: 8'
for key in steps samples; do
    [ "$(value cut/summary.json $key)" = "$(value whole/summary.json $key)" ] || complain "$key differ"
done
[ "$(($(value cut/summary.json plan_bytes) * 2))" -lt "$(value whole/summary.json plan_bytes)" ] ||
    complain 'micro-batches take more than half the memory of whole batches'

# What is cut otherwise is another training: it does not go on with this one.
fails 2 'accumulation_steps' train job.yaml --out cut --resume --set train.accumulation_steps=4

fails 2 'accumulation_steps is 251; a batch of 250 samples' train job.yaml --out none --set train.accumulation_steps=251
fails 2 'train.accumulation_steps' train job.yaml --out none --set train.accumulation_steps=0
fails 2 'train.accumulation_steps' train job.yaml --out none --set train.accumulation_steps=-4
