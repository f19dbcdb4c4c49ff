#!/bin/sh
# phloem teach: each example is scored once, whatever the streams and however often the command is killed; rows that the
# teacher has learnt from are refused; a student learns from what is joined into its stream.
# shellcheck source=tests/system/support.sh
. "$PH_SOURCE_DIR/tests/system/support.sh"

cat >stream.yaml <<END
seed: $seed
synth: {seed: $seed, train_rows: 6000, valid_rows: 0, test_rows: 0, dense: 2, sparse: 4, table_rows: 50, turnover: 2,
  domains: [{traffic: 3}, {traffic: 1, odds: 2, own: 0.3}], truth: true}
END
succeeds synth stream.yaml --out data
head -n 1 data/train.tsv | tr '\t' ' ' | grep -q '^label row truth domain I1' || complain 'the columns of the stream are others'
part() { # part FIRST END: rows of the stream
    head -n 1 data/train.tsv
    tail -n +2 data/train.tsv | sed -n "$(($1 + 1)),$2p"
}
part 0 2000 >old.tsv
part 2000 6000 >new.tsv
part 2000 4500 >first.tsv
part 3500 5500 >second.tsv
part 2500 6000 >third.tsv

cat >large.yaml <<END
seed: $seed
data:
  train: old.tsv
  format: tsv
  encoding: hash
  rows: 500
  fields:
    - {name: label, kind: label}
    - {name: row, kind: ignore}
    - {name: truth, kind: ignore}
    - {name: "I*", kind: dense}
    - {name: "*", kind: id}
model: {kind: dnn, embedding_dim: 8, hidden_units: [16]}
train: {batch_size: 100, report: false}
END
succeeds train large.yaml --out large --quiet

# Three overlapping streams: as many calls as examples, and each row finds its own.
succeeds teach large --data first.tsv --data second.tsv --data third.tsv --key row --out whole.log --quiet
contains stdout 'whole.log: 4000 examples by 1 snapshots; 8000 rows asked for 4000 examples that it did not have'
[ "$(grep -c '^[0-9a-f]\{16\}' whole.log)" -eq 4000 ] || complain 'the log has not 4000 examples'
[ "$(cut -f 1 whole.log | sort | uniq -d | wc -l)" -eq 0 ] || complain 'an example is there twice'
succeeds teach --join whole.log --data new.tsv --out taught.tsv
contains stdout 'taught.tsv: 4000 rows, 0 of them without a teacher'
succeeds predict large new.tsv --out predicted.csv
cut -f 11 taught.tsv | tail -n +2 >joined
grep '^[0-9]' predicted.csv >predicted
paste joined predicted | awk '{ d = $1 - $2; if (d > 1e-6 || d < -1e-6) exit 1 }' ||
    complain 'the log says other things than phloem predict'

# Killed twenty times, at any moment, the log ends with the same bytes.
kills=0
while [ $kills -lt 20 ]; do
    "$PH_BINARY_DIR/phloem" teach large --data first.tsv --data second.tsv --data third.tsv --key row --out killed.log \
        --quiet >/dev/null 2>&1 &
    sleep "0.0$((kills * 3 % 10))"
    kill -9 $! 2>/dev/null || true
    wait $! 2>/dev/null || true
    kills=$((kills + 1))
    [ ! -s killed.log ] || printf '0123456789abcdef\t0.2' >>killed.log # half a line, as a full disk leaves it
done
succeeds teach large --data first.tsv --data second.tsv --data third.tsv --key row --out killed.log --quiet
cmp killed.log whole.log || complain 'killed, the log has other bytes'

# The whole line is an example's key, too; rows that the teacher has learnt from are refused.
succeeds teach large --data first.tsv --data second.tsv --out lines.log --quiet
contains stdout 'lines.log: 3500 examples'
fails 3 'old.tsv:2: large has learnt from this row' teach large --data old.tsv --key row --out learnt.log --quiet
fails 3 'first.tsv:2: large has learnt from this row' teach large --data first.tsv --key row --learnt first.tsv --out learnt.log
succeeds teach large --data old.tsv --key row --out learnt.log --quiet --unchecked

# Another snapshot appends to the log.
succeeds train large.yaml --out larger --quiet --set model.embedding_dim=16
succeeds teach larger --data new.tsv --data old.tsv --key row --out whole.log --quiet --unchecked
contains stdout 'whole.log: 6000 examples by 2 snapshots; 6000 rows asked for 2000 examples'

# Names that need quotes keep them.
printf 'phloem teacher log 1\trow\tlabel\n' >quotes.log
printf '"a, ""b""",row\n"x,y",1\n' >quotes.csv
succeeds teach --join quotes.log --data quotes.csv --out quoted.csv
printf '"a, ""b""",row,teacher\n"x,y",1,\n' | cmp - quoted.csv || complain 'a quoted name is written otherwise'

# Bad input.
fails 2 "requires DIR" teach --data new.tsv --out x.log
fails 2 'choose another --out' teach large --data new.tsv --out whole.log
fails 3 "no column is called 'nothing'" teach large --data new.tsv --key nothing --out x.log
fails 3 "not the head of a teacher's log" teach --join new.tsv --data new.tsv --out x.tsv
printf 'phloem teacher log 1\trow\tlabel\n0123456789abcdef\t1.5\n' >broken.log
fails 3 'broken.log:2: a teacher' teach --join broken.log --data new.tsv --out x.tsv
cut -f 2- new.tsv | cut -f 4- >narrow.tsv
fails 3 "no column is called 'domain', which the model reads" teach large --data narrow.tsv --out x.log

# A student: what it saves is what it saves without a teacher.
cat >student.yaml <<END
seed: $seed
threads: 1
data:
  train: taught.tsv
  format: tsv
  shuffle: false
  encoding: hash
  rows: 50
  fields:
    - {name: label, kind: label}
    - {name: teacher, kind: teacher}
    - {name: C1, kind: id}
    - {name: C2, kind: id}
    - {name: "*", kind: ignore}
model: {kind: dnn, embedding_dim: 4, hidden_units: [8]}
train: {batch_size: 100, report: false}
END
succeeds train student.yaml --out plain --quiet
for way in single head adapter; do
    succeeds train student.yaml --out $way --quiet --set train.distill=$way
    [ "$(value $way/summary.json checkpoint_sha256)" != "$(value plain/summary.json checkpoint_sha256)" ] ||
        complain "distill $way has changed nothing"
    succeeds train student.yaml --out $way.0 --quiet --set train.distill=$way --set train.distill_weight=0 \
        --set train.distill_gradient_scale=0
    [ "$(value $way.0/summary.json checkpoint_sha256)" = "$(value plain/summary.json checkpoint_sha256)" ] ||
        complain "distill $way without weight is not the training without a teacher"
    [ "$(wc -c <$way/model.safetensors)" -eq "$(wc -c <plain/model.safetensors)" ] ||
        complain "distill $way saves a larger model"
    succeeds eval $way taught.tsv
    succeeds predict $way narrow.tsv --out predicted.csv # without labels and teachers
done

# A training that stops goes on with its heads and its adapter.
succeeds train student.yaml --out parts --quiet --set train.distill=adapter --set train.max_steps=17
succeeds train student.yaml --out parts --resume --quiet --set train.distill=adapter --set train.max_steps=0
[ "$(value parts/summary.json checkpoint_sha256)" = "$(value adapter/summary.json checkpoint_sha256)" ] ||
    complain 'a resumed student is another one'

# Heads take memory, as any layer, and can be sharded; only a training has them.
planned() { # planned WAY: the bytes of a rank's parameters and optimizer state
    succeeds plan student.yaml --world 2 --set parallel.dense_mode=full --set "train.distill=$1" --memory
    sed -n 's/.*rank 0 of 2 holds //p' stdout
}
[ "$(planned head)" != "$(planned none)" ] || complain 'the plan has no memory for a head'
planned adapter >/dev/null
for part in teacher adapter adapted; do
    contains stdout "distill.$part.output.linear"
done

fails 2 'kind: teacher' train large.yaml --out none --set train.distill=head
sed 's/\t[^\t]*$/\t1.25/' taught.tsv | sed '1s/.*/&/' >beyond.tsv
{ head -n 1 taught.tsv; tail -n +2 beyond.tsv; } >wrong.tsv
fails 3 "is not a teacher's probability, above 0 and below 1" train student.yaml --out wrong --set data.train=wrong.tsv
