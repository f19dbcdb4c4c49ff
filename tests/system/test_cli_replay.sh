#!/bin/sh
# phloem encode and phloem replay: a stream of requests goes through the cache of pairs by its own clock; what was served trains
# a student; rows that the foundation model has learnt from are refused.
# shellcheck source=tests/system/support.sh
. "$PH_SOURCE_DIR/tests/system/support.sh"

succeeds synth --slates --out data --set "slates.seed=$seed" --set slates.users=60 --set slates.items=300 --set slates.slate=8 \
    --set slates.hours=24 --set slates.requests=40
contains data/synth.yaml 'name: request, kind: ignore'
awk -F '\t' 'NR == 1 || $4 < 43200' data/train.tsv >learnt.tsv
awk -F '\t' 'NR == 1 || $4 >= 43200' data/train.tsv >stream.tsv
student() { # student NAME FILE FIELDS...
    cat >"$1.yaml" <<END
seed: $seed
data:
  train: $2
  format: tsv
  encoding: hash
  rows: 200
  fields:
    - {name: label, kind: label}
    - {name: item, kind: id}
    - {name: U1, kind: id}
$3
    - {name: "*", kind: ignore}
model: {kind: dnn, embedding_dim: 4, hidden_units: [8]}
train: {batch_size: 100, report: false}
END
    succeeds train "$1.yaml" --out "$1" --quiet
}
student plain learnt.tsv ''
student large learnt.tsv '    - {name: user, kind: id}
    - {name: context, kind: id}'

# The encoder belongs to the weights beside it.
fails 4 'pair_encoder.safetensors' replay plain --teacher large --data stream.tsv
succeeds encode large --data learnt.tsv --numbers 3 --rows 500
contains stdout 'large/pair_encoder.safetensors: 3 numbers for 8'
fails 2 'must be from 1, the tasks, to 8' encode large --data learnt.tsv --numbers 9
fails 2 'must be a whole number from 1 to 256' encode large --data learnt.tsv --numbers none
cut -f 1-7 learnt.tsv >narrow.tsv
fails 3 "no column is called 'context', which the model reads" encode large --data narrow.tsv

# Every row gets its columns; a replay gives the same bytes again, and needs nothing but its clock.
succeeds replay plain --teacher large --data stream.tsv --out served.tsv --set replay.budget=0.3 --set speculation.seconds=7200
grep -q '^second half  *none' stdout || complain 'the coverage of the second half is not printed'
head -n 1 served.tsv | tr '\t' ' ' | grep -q ' fm_1 fm_2 fm_3 fm_pair fm_user fm_near fm_age$' || complain 'the columns of pairs are not there'
[ "$(wc -l <served.tsv)" -eq "$(wc -l <stream.tsv)" ] || complain 'rows were lost'
cut -f 1-16 served.tsv | cmp -s - stream.tsv || complain 'the rows of the stream have changed'
awk -F '\t' 'NR > 1 { n = $20 + $21 + $22; if (n > 1 || (n == 0 && ($17 != 0 || $23 != 0))) exit 1; found += n; pairs += $20 }
    END { exit !(found > NR / 2 && pairs > 50) }' served.tsv || complain 'the rungs of the ladder are wrong'
succeeds replay plain --teacher large --data stream.tsv --out again.tsv --set replay.budget=0.3 --set speculation.seconds=7200
cmp -s served.tsv again.tsv || complain 'a replay gave other bytes'
succeeds replay plain --teacher large --data stream.tsv --out other.tsv --set replay.budget=0.3 --set speculation.seconds=7200 \
    --set replay.policy=random
cmp -s served.tsv other.tsv && complain 'the policy does nothing'

# Pairs on the spot: of all rows, of none, of some.
succeeds replay plain --teacher large --data stream.tsv --out all.tsv --set replay.coverage=1
awk -F '\t' 'NR > 1 && $20 != 1 { exit 1 }' all.tsv || complain 'a row has no pair'
succeeds replay plain --teacher large --data stream.tsv --out some.tsv --set replay.coverage=0.5
awk -F '\t' 'NR > 1 { n += $20 } END { exit !(n > .4 * NR && n < .6 * NR) }' some.tsv || complain 'half of the rows are others'

# A student learns what was served, and scores with it.
student fed served.tsv '    - {name: "fm_*", kind: dense}'
succeeds replay fed --teacher large --data stream.tsv --set replay.budget=0.3

# A server's log, joined with the stream: rows that it lacks are left out.
head -n 1 served.tsv | cut -f 17- | sed 's/^/request\tplace\t/' >features.log
awk -F '\t' 'NR > 1 { place = $5 == former ? place + 1 : 0; former = $5; if (place < 6) print $5 "\t" place "\t" $17 "\t" $18 "\t" \
    $19 "\t" $20 "\t" $21 "\t" $22 "\t" $23 }' served.tsv >>features.log
succeeds replay --join features.log --data stream.tsv --out joined.tsv
awk -F '\t' 'NR == 1 { print; next } { place = $5 == former ? place + 1 : 0; former = $5; if (place < 6) print }' served.tsv |
    cmp -s - joined.tsv || complain 'the joined rows are others'
fails 3 'a feature log begins with the columns request and place' replay --join stream.tsv --data stream.tsv --out x.tsv

# What cannot be.
fails 3 'large has learnt from this row' replay plain --teacher large --data learnt.tsv
succeeds replay plain --teacher large --data learnt.tsv --unchecked --set replay.budget=0.1
{ head -n 1 stream.tsv && tail -n 8 stream.tsv && sed -n 2,9p stream.tsv; } >back.tsv
fails 3 'back.tsv:10: the time is before that of the row above' replay plain --teacher large --data back.tsv
cut -f 1-4,6- stream.tsv >narrow.tsv
fails 3 "no column is called 'request'" replay plain --teacher large --data narrow.tsv
fails 2 'replay requires --teacher DIR' replay plain --data stream.tsv
fails 2 'replay requires one of DIR' replay --data stream.tsv
fails 2 '--join requires --out FILE' replay --join features.log --data stream.tsv
fails 5 'does not fit' replay plain --teacher large --data stream.tsv --set speculation.cache_bytes=1000000000000000
fails 2 "unknown key 'replay.pace'" replay plain --teacher large --data stream.tsv --set replay.pace=2

# ---- a running server ----------------------------------------------------------------------------------------------
# All requests of the stream are answered, in its order, as fast as its clock says; what was served is joined with the stream.
mkdir -p models/ads && cp -r fed models/ads/1
printf 'speculation: {teacher: %s/large, feature_log: %s/served.log, rows_per_second: 100000}\n' "$work" "$work" \
    >models/ads/serve.yaml
mkdir models/plain && cp -r plain models/plain/1
begins serve models --http 127.0.0.1:0 --set serve.grpc_address= --set serve.metrics_address= --set serve.log=none
trap 'kill "$process" 2>/dev/null || true; rm -rf "$work"' EXIT
waits_for grep -q '^REST ' stdout
address=$(sed -n 's|^REST  *http://||p' stdout)
waits_for curl -fs "http://$address/v2/health/ready"
requests=$(cut -f 5 stream.tsv | sed 1d | uniq | wc -l)
succeeds replay --server "$address" --model ads --data stream.tsv --set replay.speed=20000
contains stdout "stream       requests $requests rows $(($(wc -l <stream.tsv) - 1))"
contains stdout "answered     $requests failed 0 p50_ms "
awk '$1 == "sent" { exit !($3 >= 2 && $3 < 30) }' stdout || complain 'the stream was not sent by its clock'
awk '$1 == "coverage" { exit !($3 < .9 && $5 > .01 && $7 > .01) }' stdout || complain 'no pair was found'
succeeds replay --server "$address" --model plain --data stream.tsv --set replay.speed=1e6 --set replay.connections=1
contains stdout "answered     $requests failed 0 p50_ms "
if grep -q '^coverage' stdout; then complain 'a model without a speculation has a coverage'; fi
fails 6 "no model 'other'" replay --server "$address" --model other --data stream.tsv
cut -f 1-7 stream.tsv >narrow.tsv
fails 3 "narrow.tsv: no column is called 'U1', which the model reads" replay --server "$address" --model ads --data narrow.tsv
fails 3 'back.tsv:10: the time is before' replay --server "$address" --model ads --data back.tsv --set replay.speed=1e6
server=$process
begins replay --server "$address" --model ads --data stream.tsv # twelve hours
sleep 0.3
kill -INT "$process"
ends 130
process=$server
fails 2 '--server requires --model NAME' replay --server "$address" --data stream.tsv
kill "$process"
ends 143
fails 6 "$address" replay --server "$address" --model ads --data stream.tsv
succeeds replay --join served.log --data stream.tsv --out live.tsv
awk -F '\t' 'NR > 1 { found += $20 + $21 + $22 } END { exit !(NR > 100 && found > 10) }' live.tsv ||
    complain 'the feature log lacks what was served'
