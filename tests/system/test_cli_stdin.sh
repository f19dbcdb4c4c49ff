#!/bin/sh
# Rows on standard input: the same as from a file, once.
# shellcheck source=tests/system/support.sh
. "$PH_SOURCE_DIR/tests/system/support.sh"

# from FILE succeeds ARGUMENTS...: with FILE as the standard input of phloem.
from() {
    file=$1
    shift 2
    status=0
    "$PH_BINARY_DIR/phloem" "$@" >stdout 2>stderr <"$file" || status=$?
    [ "$status" -eq 0 ] || complain "phloem $* < $file ended with $status; wanted 0"
    [ ! -s stderr ] || complain "phloem $* < $file has printed to stderr"
}

awk 'BEGIN {
    print "label,user,tags,price"
    for (i = 0; i < 2000; i++)
        printf "%d,u%d,%d|%d,%g\n", ((i * 7919 % 13) > 8), i * i % 97, i % 5, i % 11, i % 17 / 4
}' >rows.csv
cat >job.yaml <<'END'
data:
  train: "-"
  format: csv
  encoding: hash
  rows: 1000
  fields:
    - {name: label, kind: label}
    - {name: user, kind: id}
    - {name: tags, kind: id, list: true}
    - {name: price, kind: dense}
model: {kind: lr}
train: {epochs: 1, batch_size: 64}
END

succeeds train job.yaml --out file --quiet --set data.train=rows.csv
from rows.csv succeeds train job.yaml --out stdin --quiet
[ "$(value file/summary.json checkpoint_sha256)" = "$(value stdin/summary.json checkpoint_sha256)" ] ||
    complain 'standard input and the file have taught other models'
gzip -c rows.csv >rows.csv.gz
from rows.csv.gz succeeds train job.yaml --out gzip --quiet
[ "$(value file/summary.json checkpoint_sha256)" = "$(value gzip/summary.json checkpoint_sha256)" ] ||
    complain 'compressed standard input has taught another model'

# Tables are planned without a look at what can be read only once.
printf 'version: 1\nworld_size: 1\ndefault: {kind: table_wise}\n' >plan.yaml
for planned in parallel.plan=plan.yaml parallel.memory_bytes=1000000; do
    rm -rf planned
    from rows.csv succeeds train job.yaml --out planned --quiet --set "$planned"
    [ "$(value file/summary.json checkpoint_sha256)" = "$(value planned/summary.json checkpoint_sha256)" ] ||
        complain "standard input under $planned has taught another model"
done

succeeds eval file rows.csv
cp stdout eval.txt
from rows.csv succeeds eval stdin -
sed 's/^[^ ]* *//' eval.txt >wanted
sed 's/^[^ ]* *//' stdout >actual
cmp -s wanted actual || complain 'eval - and eval FILE differ'
succeeds predict file rows.csv --out file.csv
from rows.csv succeeds predict file - --out stdin.csv
cmp -s file.csv stdin.csv || complain 'predict - and predict FILE differ'

from rows.csv succeeds prepare job.yaml --out prepared
succeeds prepare job.yaml --out again --set data.train=rows.csv
cmp -s prepared/encoder.json again/encoder.json || complain 'prepared from standard input, the encoder is another'
fails 2 'made from standard input, which cannot be read again' prepare job.yaml --out prepared --resume

fails 2 'standard input can be read only once: set it to 1' train job.yaml --out twice --set train.epochs=2
fails 2 "standard input is read only once, but 'user' learns its encoding" train job.yaml --out learn \
    --set data.encoding=vocabulary
fails 2 'data.valid: only data.train may be standard input' train job.yaml --out valid --set data.valid=-
fails 3 'standard input' train job.yaml --out empty
sed '2,$ s/^[^,]*,/,/' rows.csv >blank.csv
status=0
"$PH_BINARY_DIR/phloem" train job.yaml --out blank --quiet <blank.csv >stdout 2>stderr || status=$?
[ "$status" -eq 3 ] || complain "a label that is blank in every row has ended with $status; wanted 3"
contains stderr "standard input: label 'label' (column 'label') is blank in every row"

# A pipe by name is standard input in all but that; a signal does not wait for one that has fallen silent.
mkfifo pipe
cat rows.csv >pipe &
succeeds train job.yaml --out named --quiet --set data.train=pipe
[ "$(value file/summary.json checkpoint_sha256)" = "$(value named/summary.json checkpoint_sha256)" ] ||
    complain 'a pipe and the file have taught other models'
fails 2 'a pipe can be read only once: set it to 1' train job.yaml --out twice --set data.train=pipe --set train.epochs=2
succeeds train job.yaml --out ordered --quiet --set data.shuffle=false --set data.train=rows.csv
"$PH_BINARY_DIR/phloem" train job.yaml --out stopped --set data.shuffle=false --set train.report_seconds=0 <pipe >stdout 2>stderr &
process=$!
exec 9>pipe
head -n 1500 rows.csv >&9
tries=0
until [ -s stopped/metrics.jsonl ] || [ "$tries" -ge 600 ]; do
    sleep 0.1
    tries=$((tries + 1))
done
kill -s TERM "$process"
status=0
wait "$process" || status=$?
exec 9>&-
[ "$status" -eq 143 ] || complain "SIGTERM while a pipe is silent has ended with $status; wanted 143"
contains stderr '--resume continues from it'
from rows.csv succeeds train job.yaml --out stopped --quiet --resume --set data.shuffle=false
[ "$(value ordered/summary.json checkpoint_sha256)" = "$(value stopped/summary.json checkpoint_sha256)" ] ||
    complain 'stopped at a silent pipe and resumed, the training has ended otherwise'

# closed STREAM STATUS TEXT ARGUMENTS...: phloem without stdin or stdout ends with STATUS and TEXT.
closed() {
    stream=$1 wanted=$2 text=$3
    shift 3
    status=0
    if [ "$stream" = stdin ]; then
        "$PH_BINARY_DIR/phloem" "$@" >stdout 2>stderr <&- || status=$?
    else
        "$PH_BINARY_DIR/phloem" "$@" 2>stderr </dev/null >&- || status=$?
    fi
    [ "$status" -eq "$wanted" ] || complain "phloem $* without $stream ended with $status; wanted $wanted"
    contains stderr "$text"
}

# A stream that is closed is none, and no other file takes its place.
closed stdin 3 'standard input: cannot read' train job.yaml --out closed
closed stdin 3 'standard input: cannot read' eval file -
closed stdin 3 'standard input: cannot read' predict file - --out closed.csv
closed stdout 5 'standard output' predict file rows.csv --out closed.csv
cmp -s file.csv closed.csv || complain 'without standard output the predictions differ'
closed stdout 5 'standard output' eval file rows.csv

"$PH_BINARY_DIR/phloem" prepare job.yaml --out silent <pipe >stdout 2>stderr &
process=$!
exec 9>pipe
head -n 1500 rows.csv >&9
tries=0
until [ -d silent/train ] || [ "$tries" -ge 600 ]; do
    sleep 0.1
    tries=$((tries + 1))
done
kill -s TERM "$process"
status=0
wait "$process" || status=$?
exec 9>&-
[ "$status" -eq 143 ] || complain "SIGTERM while a pipe is silent has ended prepare with $status; wanted 143"
