#!/bin/sh
# What people's files are like on a bad day: one line that says where it is, the exit code of its kind, and never a model
# that has learnt from rubbish. (Checkpoints, configs and memory: test_cli_exit_codes.sh.)
# shellcheck source=tests/system/support.sh
. "$PH_SOURCE_DIR/tests/system/support.sh"

cat >job.yaml <<'END_OF_JOB'
threads: 1
data:
  train: good.csv
  fields:
    - {name: y, kind: label}
    - {name: w, kind: weight}
    - {name: d, kind: dense}
    - {name: i, kind: id, encoding: raw, rows: 10}
    - {name: u, kind: id, list: true}
model: {kind: lr}
train: {epochs: 1, batch_size: 4, report_seconds: 0}
END_OF_JOB
printf 'y,w,d,i,u\n' >header
{ cat header && for row in 1 2 3 4 5 6 7 8; do echo "$((row % 2)),1,0.$row,$row,a|b$row"; done; } >good.csv
succeeds train job.yaml --out run --quiet

# refuses FILE TEXT: neither learnt from nor measured on nor predicted.
refuses() {
    fails 3 "$2" train job.yaml --out never --quiet --set "data.train=$1"
    [ ! -e never/model.safetensors ] || complain "a model has learnt from $1"
    fails 3 "$2" train job.yaml --out never --quiet --set "data.valid=$1"
    rm -rf never
    fails 3 "$2" eval run "$1"
    fails 3 "$2" predict run "$1" --out predictions.csv
    [ ! -e predictions.csv ] || complain "there are predictions for $1"
}

# refuses_row ROW TEXT: as the third row of a file, named by its line.
refuses_row() {
    { head -n 3 good.csv && echo "$1" && tail -n 3 good.csv; } >row.csv
    refuses row.csv "row.csv:4: $2"
}

refuses absent.csv 'absent.csv'
refuses . 'folder'
: >empty.csv
refuses empty.csv 'empty.csv'
refuses header 'header'
refuses 'absent_*.csv' 'absent_*.csv'

# Cells.
for number in nan inf -inf NaN 1e999 0x10 '1 2' 1e39 --1; do
    refuses_row "1,1,$number,3,a" "field 'd'"
done
for label in 2 -1 nan maybe 1e-400x; do
    refuses_row "$label,1,0.5,3,a" "field 'y'"
done
for weight in -1 inf x; do
    refuses_row "1,$weight,0.5,3,a" "field 'w'"
done
for id in 10 -1 99999999999999999999 1.5 x; do
    refuses_row "1,1,0.5,$id,a" "field 'i'"
done
refuses_row '1,1,0.5,3' ''
refuses_row '1,1,0.5,3,a,b' ''
refuses_row '1,1,0.5,3,"a' ''
printf 'y,w,d,i,u\n1,1,0.5,3,a\n1,1,0.5,\0,b\n' >nul.csv
refuses nul.csv 'nul.csv:3'

# Headers that disagree with the schema.
cut -d, -f1,2,4- good.csv >lacks.csv
fails 2 "'d'" train job.yaml --out never --quiet --set data.train=lacks.csv
fails 3 "lacks.csv:1: the header lacks column 'd'" train job.yaml --out never --quiet --set data.test=lacks.csv
[ -z "$(ls never)" ] || complain 'the header of a test file is looked at when the training is over'
fails 3 "lacks.csv:1: the header lacks column 'd'" eval run lacks.csv
sed '1s/,d,/,e,/' good.csv >other.csv
fails 2 "other.csv:1: column 'e'" train job.yaml --out never --quiet --set data.train=other.csv
sed '1s/,d,/,i,/' good.csv >twice.csv
refuses twice.csv "twice.csv:1"

# Files that are cut off or no text.
gzip -c good.csv >good.csv.gz
succeeds eval run good.csv.gz
head -c 60 good.csv.gz >cut.csv.gz
refuses cut.csv.gz 'cut.csv.gz'
printf 'good\033\201' | cat - good.csv.gz >strange.csv
refuses strange.csv 'strange.csv'
{ cat good.csv.gz && echo 'something else'; } >followed.csv.gz
refuses followed.csv.gz 'followed.csv.gz'
succeeds synth job.yaml --out data --set synth.compression=zst --set synth.train_rows=50 --set synth.valid_rows=0 \
    --set synth.test_rows=0 --set synth.format=criteo
head -c 500 data/train.tsv.zst >cut.tsv.zst
fails 3 'cut.tsv.zst' train job.yaml --out never --set data.train=cut.tsv.zst --set data.format=criteo \
    --set data.fields=

# Bad rows are left out as far as the config says, and not one further.
{ cat good.csv && echo 'bad' && echo '1,1,nan,3,a'; } >two.csv
succeeds train job.yaml --out tolerant --quiet --set data.train=two.csv --set data.max_bad_rows=2
contains stdout 'two.csv:10'
fails 3 'two.csv:11' train job.yaml --out never --quiet --set data.train=two.csv --set data.max_bad_rows=1

# A batch that is larger than the data is no error; no epochs are.
succeeds train job.yaml --out large --quiet --set train.batch_size=100000
fails 2 'train.epochs' train job.yaml --out never --quiet --set train.epochs=0

# Where nothing can be written.
fails 2 '/dev/null' train job.yaml --out /dev/null/run --quiet
fails 2 '/dev/null' predict run good.csv --out /dev/null/predictions.csv
