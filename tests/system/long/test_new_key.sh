#!/bin/sh
# A key of a config is one line in an option table and a member that it fills. This adds one to a copy of the sources, builds
# that, and sees who follows from the table alone: the page of keys, --set, the config that is written, resume, and ranks.
# shellcheck source=tests/system/support.sh
. "$PH_SOURCE_DIR/tests/system/support.sh"

touch stdout stderr
mkdir source
for part in CMakeLists.txt CMakePresets.json cmake include src; do
    cp -R "$PH_SOURCE_DIR/$part" source
done
cp -R source as_it_was

# ---- the key: an integer that all ranks share and a resumed training keeps ----
awk '{ print } /^struct ph_train_settings \{/ { print "    int64_t patience_of_saints; /* evaluations without hope */" }' \
    as_it_was/include/phloem/train.h >source/include/phloem/train.h
table=src/train/config/train_options.c
awk '{ print }
    /^static const struct ph__option train_options\[\]/ {
        print "    PH_INTEGER_KEY(\"patience_of_saints\", TRAIN(patience_of_saints), \"1\", 0, 9, \"Evaluations without hope.\"),"
    }' "as_it_was/$table" >"source/$table"
diff -rq as_it_was source >touched || true
[ "$(wc -l <touched)" -eq 2 ] || complain "wanted two files touched: $(cat touched)"

{
    cmake -S source -B build -G Ninja -DCMAKE_BUILD_TYPE=Release
    cmake --build build
} >build.log 2>&1 || {
    tail -n 20 build.log >stdout
    complain 'the sources with the key do not build'
}
PH_BINARY_DIR=$work/build
PHLOEM_PLUGINS=$work/build
export PHLOEM_PLUGINS

# ---- who follows ----
succeeds config --docs
contains stdout '| `train.patience_of_saints` | integer | 1 | 0 to 9 | Evaluations without hope. |'
make_small_job
fails 2 'train.patience_of_saints: must be an integer from 0 to 9' train job.yaml --out none --set train.patience_of_saints=10
succeeds train job.yaml --out run --quiet --set train.patience_of_saints=3 --set train.epochs=1
contains run/config.yaml 'patience_of_saints: 3'
fails 2 "train.patience_of_saints was '3' and is now '4', but may not change on resume" \
    train job.yaml --out run --quiet --resume --set train.patience_of_saints=4
succeeds train job.yaml --out run --quiet --resume --set train.patience_of_saints=3

command -v mpirun.openmpi >/dev/null && [ -e build/libphloem_openmpi.so ] || {
    echo "$name: the ranks are skipped: there is no Open MPI"
    exit 0
}
status=0
OMPI_ALLOW_RUN_AS_ROOT=1 OMPI_ALLOW_RUN_AS_ROOT_CONFIRM=1 mpirun.openmpi --oversubscribe --bind-to none \
    -n 1 build/phloem train job.yaml --out ranks --quiet : \
    -n 1 build/phloem train job.yaml --out ranks --quiet --set train.patience_of_saints=2 \
    >stdout 2>stderr </dev/null || status=$?
[ "$status" -eq 2 ] || complain "ranks that differ ended with $status; wanted 2"
contains stderr train.patience_of_saints
