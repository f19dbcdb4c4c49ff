#!/bin/sh
# phloem prepare: the models learnt from prepared data are those learnt from the text; a preparation that is killed at
# any moment and resumed leaves the same bytes as one that was not; what cannot be prepared ends with its exit code.
# shellcheck source=tests/system/support.sh
. "$PH_SOURCE_DIR/tests/system/support.sh"

make_small_job

# sums FOLDER: of all its files but the one that names the folder.
sums() {
    (cd "$1" && find . -type f ! -name prepared.yaml | LC_ALL=C sort | xargs sha256sum)
}

# trained CONFIG FOLDER
trained() {
    rm -rf "$2"
    succeeds train "$1" --out "$2" --quiet
    value "$2/summary.json" checkpoint_sha256
}

# ---- the same model ----
succeeds prepare job.yaml --out prepared --threads 2
contains stdout 'prepared 6000 rows'
contains prepared/prepared.yaml 'prepared: "prepared"'
{
    sed '/^data:/d; /^synth:/d' job.yaml
    cat prepared/prepared.yaml
} >from_prepared.yaml
raw=$(trained job.yaml raw)
[ "$raw" = "$(trained from_prepared.yaml from_prepared)" ] || complain 'prepared data gives another model than the text'
[ "$(value raw/summary.json auc | sort)" = "$(value from_prepared/summary.json auc | sort)" ] ||
    complain 'prepared data gives other metrics than the text'

# Prepared folders are looked at as their configs are, wherever they lie.
mkdir elsewhere
cp -R prepared 'elsewhere/$moved'
succeeds inspect data from_prepared.yaml
sed 's/^data\..*: .*prepared/data/' stdout >wanted
for look in inspect 'inspect data'; do
    # shellcheck disable=SC2086 # a list of words
    succeeds $look 'elsewhere/$moved'
    contains stdout 'elsewhere/$moved/train: 4000 samples'
    contains stdout 'elsewhere/$moved/test: 1000 samples'
    sed 's/^data\..*: .*moved/data/' stdout >actual
    cmp -s wanted actual || complain "$look of prepared data differs from that of its config"
done

succeeds eval raw data/test.tsv
cp stdout of_text
succeeds eval raw prepared/test
cmp -s of_text stdout || complain 'eval of prepared data differs from eval of its text'
succeeds predict from_prepared data/test.tsv --out text.csv
succeeds predict from_prepared prepared/test --out prepared.csv
cmp -s text.csv prepared.csv || complain 'predictions for prepared data differ from those for its text'

# ---- other files beside it ----
succeeds train job.yaml --out same --quiet --set data.prepared=prepared
contains same/config.yaml 'prepared/train'
contains same/config.yaml 'prepared/test'
gzip -c data/test.tsv >other.tsv.gz
others="--set data.valid=other.tsv.gz --set data.test=data/valid.tsv"
# shellcheck disable=SC2086 # a list of words
succeeds train job.yaml --out raw_others --quiet $others
# shellcheck disable=SC2086
succeeds train from_prepared.yaml --out others --quiet $others
contains others/config.yaml 'other.tsv.gz'
[ "$(value raw_others/summary.json checkpoint_sha256)" = "$(value others/summary.json checkpoint_sha256)" ] ||
    complain 'another validation file has another effect beside prepared data'
[ "$(value raw_others/summary.json auc)" = "$(value others/summary.json auc)" ] ||
    complain 'other files are measured otherwise beside prepared data'
[ "$(value others/summary.json auc)" != "$(value same/summary.json auc)" ] ||
    complain 'other files beside prepared data are not read'
fails 2 "data.train: 'data/valid.tsv' is not what data.prepared was made from" train from_prepared.yaml --out new \
    --set data.train=data/valid.tsv

# ---- prepared stays prepared ----
fails 2 'data.train was prepared data and is now text' train job.yaml --out same --resume
fails 2 'data.train was text and is now prepared data' train job.yaml --out raw --resume --set data.prepared=prepared

# ---- names that no config can hold ----
latin=$(printf 'caf\351')
cp data/train.tsv "$latin"
fails 2 'data.train: must be UTF-8' train job.yaml --out new --set "data.train=$latin"
fails 2 'the folder'"'"'s name is not UTF-8' prepare job.yaml --out "$latin.prepared"
[ ! -e new ] && [ ! -e "$latin.prepared" ] || complain 'a folder was made under a name that is refused'

# ---- elsewhere after the training ----
mv prepared moved
succeeds eval from_prepared data/test.tsv
cmp -s of_text stdout || complain 'without the prepared data eval differs'
succeeds predict from_prepared data/test.tsv --out moved.csv
cmp -s text.csv moved.csv || complain 'without the prepared data predictions differ'
succeeds inspect model from_prepared
fails 3 'prepared/test' eval from_prepared
succeeds eval from_prepared --set data.prepared=moved
cmp -s of_text stdout || complain 'of prepared data that was moved eval differs'
succeeds train from_prepared.yaml --out from_prepared --resume --set data.prepared=moved --set train.epochs=3
contains stdout 'resumed at step'
mv moved prepared

# ---- killed and resumed ----
small="--set prepare.part_bytes=20000 --set data.encoding=hash --set data.rows=1000"
gzip -c data/valid.tsv >valid.tsv.gz
small="$small --set data.valid=valid.tsv.gz"
# shellcheck disable=SC2086 # a list of words
succeeds prepare job.yaml --out whole --threads 1 $small
sums whole >whole.sums
round=0
while [ "$round" -lt 12 ]; do
    rm -rf killed
    # shellcheck disable=SC2086
    "$PH_BINARY_DIR/phloem" prepare job.yaml --out killed --threads 2 $small >stdout 2>stderr </dev/null &
    process=$!
    sleep "0.0$(((round * 7 + 1) % 10))"
    kill -s KILL "$process" 2>/dev/null || true
    wait "$process" 2>/dev/null || true
    # shellcheck disable=SC2086
    succeeds prepare job.yaml --out killed --threads 2 --resume $small
    sums killed >killed.sums
    cmp -s whole.sums killed.sums || complain "killed in round $round and resumed, the data differs"
    round=$((round + 1))
done

# ---- refusals ----
fails 2 'whole: the folder is not empty' prepare job.yaml --out whole
fails 2 'part_bytes' prepare job.yaml --out whole --resume --set data.encoding=hash --set data.rows=1000 \
    --set data.valid=valid.tsv.gz
fails 2 'prepare requires --out DIR' prepare job.yaml
fails 2 "data.prepared: 'prepared' is prepared already" prepare from_prepared.yaml --out twice
[ ! -e twice ] || complain 'a preparation that was refused has left a folder'
fails 3 'no_such.tsv' prepare job.yaml --out new --set data.train=no_such.tsv
rm whole/train/manifest.json
fails 3 'is not finished' train from_prepared.yaml --out new --set data.prepared=whole
fails 3 'nowhere: has no prepared data' train from_prepared.yaml --out new --set data.prepared=nowhere
printf 'damage' | dd of=prepared/train/part-00000-00000.phd bs=1 seek=5000 conv=notrunc status=none
fails 3 'part-00000-00000.phd: block 0 is damaged' train from_prepared.yaml --out new2 --quiet

# ---- signals ----
# stopped SIGNAL STATUS: a pipe keeps the preparation waiting, a full one keeps its writer
stopped() {
    rm -rf stopped fifo
    mkfifo fifo
    env --default-signal=INT "$PH_BINARY_DIR/phloem" prepare job.yaml --out stopped --set data.train=- \
        --set data.encoding=hash --set data.rows=1000 --set prepare.part_bytes=20000 <fifo >stdout 2>stderr &
    process=$!
    {
        cat data/train.tsv data/train.tsv data/train.tsv
        until [ -e signalled ]; do sleep 0.05; done
        cat data/train.tsv data/train.tsv data/train.tsv
    } >fifo 2>/dev/null &
    writer=$!
    tries=0
    until [ -e stopped/train/part-00000-00000.phd ] || [ "$tries" -ge 600 ]; do
        sleep 0.05
        tries=$((tries + 1))
    done
    kill -s "$1" "$process"
    : >signalled
    status=0
    wait "$process" || status=$?
    kill "$writer" 2>/dev/null || true
    wait "$writer" 2>/dev/null || true
    rm -f signalled
    [ "$status" -eq "$2" ] || complain "after SIG$1 the preparation ended with $status; wanted $2"
    [ ! -e stopped/train/manifest.json ] || complain 'a stopped preparation has written a manifest'
    [ -z "$(find stopped -name '*.tmp')" ] || complain 'a stopped preparation has left a temporary file'
}
stopped INT 130
stopped TERM 143

# ---- folders with names that mean something to YAML and to the config ----
odd='odd "$HOME" # \folder'
succeeds synth job.yaml --out "$odd/data"
succeeds prepare "$odd/data/synth.yaml" --out "$odd/prepared"
succeeds train "$odd/prepared/prepared.yaml" --out "$odd/run" --quiet --set model.kind=lr --set train.epochs=1
succeeds eval "$odd/run" "$odd/prepared/test"
