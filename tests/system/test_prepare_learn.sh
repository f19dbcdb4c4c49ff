#!/bin/sh
# Preparing learns vocabularies and statistics in parts that fit in memory: the encoder is the one that training makes in one
# pass, whatever the parts, the bound, the threads and the interruptions.
# shellcheck source=tests/system/support.sh
. "$PH_SOURCE_DIR/tests/system/support.sh"

make_small_job
cat >job.yaml <<'END'
seed: 1
threads: 2
data:
  train: data/train.tsv
  valid: data/valid.tsv
  format: criteo
  min_count: 3
  fields:
    - {name: "I*", kind: dense, transform: log1p_standardise}
    - {name: I1_bucket, from: I1, kind: id, encoding: bucket, buckets: 8}
model: {kind: fm, embedding_dim: 4}
train: {epochs: 1, batch_size: 250}
END
succeeds train job.yaml --out run --quiet

# prepared NAME FLAGS...: leaves the encoder that training has made.
prepared() {
    out=$1
    shift
    succeeds prepare job.yaml --out "$out" "$@"
    cmp -s run/encoder.json "$out/encoder.json" || complain "prepare $* makes another encoder than train"
    [ ! -e "$out/learning" ] || complain "prepare $* leaves $out/learning behind"
}

prepared whole --threads 1
prepared cut --threads 3 --set prepare.part_bytes=10000
prepared spilt --threads 2 --set prepare.part_bytes=300000 --set prepare.vocabulary_bytes=300000

# A plain file, compressed, and cut by hand into three.
gzip -c data/train.tsv >data/train.tsv.gz
split -n l/3 -d data/train.tsv data/piece-
prepared compressed --set data.train=data/train.tsv.gz
prepared pieces --set 'data.train=data/piece-0*' --set prepare.part_bytes=50000

# What the vocabularies need at the end does not fit.
fails 5 "field 'C" prepare job.yaml --out small --set prepare.vocabulary_bytes=65536 --set data.min_count=1

# Killed while it learns: parts that were learnt are not learnt again, and the encoder is the same.
killed=0
for delay in 0.01 0.02 0.03 0.04 0.05 0.06; do
    "$PH_BINARY_DIR/phloem" prepare job.yaml --out killed --resume --threads 2 --set prepare.part_bytes=20000 \
        >stdout 2>stderr </dev/null &
    process=$!
    sleep $delay
    kill -9 "$process" 2>/dev/null && killed=$((killed + 1))
    wait "$process" 2>/dev/null || true
done
[ "$killed" -gt 0 ] || complain "nothing was killed"
prepared killed --resume --set prepare.part_bytes=20000
