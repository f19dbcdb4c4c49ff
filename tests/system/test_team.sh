#!/bin/sh
# The teams of threads: the program keeps its name, either kind trains the same model, and what needs OpenMP's threads says so.
# shellcheck source=tests/system/support.sh
. "$PH_SOURCE_DIR/tests/system/support.sh"

make_small_job
succeeds train job.yaml --out pthread --quiet --threads 2
succeeds train job.yaml --out again --quiet --threads 3 --set team=pthread
[ "$(value pthread/summary.json checkpoint_sha256)" = "$(value again/summary.json checkpoint_sha256)" ] ||
    complain 'three threads have changed the model'
fails 2 'train.deterministic=false requires team=openmp' train job.yaml --out fast --quiet --set train.deterministic=false
fails 2 "team: must be one of pthread, openmp" train job.yaml --out wrong --quiet --set team=threads

# ps and top show the program by its name.
begins train job.yaml --out named --quiet --set train.epochs=1000000 --set data.valid=
waits_for test -e named/config.yaml
called=$(cat "/proc/$process/comm")
kill "$process"
ends 143
[ "$called" = phloem ] || complain "the process is called '$called'"

phloem train job.yaml --out openmp --quiet --threads 2 --set team=openmp
if [ "$status" -eq 2 ] && grep -q 'not part of this build' stderr; then
    echo "$name: skipped the rest: this build has no OpenMP"
    exit 77
fi
[ "$status" -eq 0 ] || complain "a training by OpenMP's threads ended with $status"
[ "$(value pthread/summary.json checkpoint_sha256)" = "$(value openmp/summary.json checkpoint_sha256)" ] ||
    complain "OpenMP's threads have changed the model"
succeeds train job.yaml --out fast --quiet --threads 2 --set train.deterministic=false --set team=openmp
succeeds eval fast data/test.tsv
succeeds train job.yaml --out openmp --resume --quiet --set train.epochs=2 --set team=pthread
