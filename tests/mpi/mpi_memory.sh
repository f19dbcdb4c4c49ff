#!/bin/sh
# A table that is too large for what one rank may spend is refused there, and trains on four.
#
#     mpi_memory.sh openmpi|mpich
. "$(dirname "$0")/mpi_support.sh"
cd "$work" || exit 1

# 20,000 rows of 16 numbers, and one more of row-wise Adagrad's: 1.4 MB, of which a rank may have a third.
cat >job.yaml <<'END'
seed: 1
threads: 1
data: {train: data/train.tsv, valid: data/valid.tsv, format: tsv, fields: [{name: label, kind: label},
  {name: C1, kind: id, encoding: raw, rows: 20000}, {name: C2, kind: id, encoding: raw, rows: 50}]}
model: {kind: dlrm, embedding_dim: 16, top_units: [8]}
optimizer: {embedding_kind: rowwise_adagrad}
train: {epochs: 1, batch_size: 250}
parallel: {memory_bytes: 450000}
synth: {train_rows: 2000, valid_rows: 300, test_rows: 300, dense: 0, sparse: 2, planted: 2, planted_dense: 0, table_rows: [20000, 50]}
END
"$PH_BINARY_DIR/phloem" synth job.yaml --out data >stdout 2>stderr || complain 'no data'

launch 1 "$PH_BINARY_DIR/phloem" train job.yaml --out one --quiet
[ "$status" -eq 5 ] || complain "one rank ended with $status; wanted 5"
[ "$(grep -c 'phloem: ' stderr)" -eq 1 ] || complain 'wanted one line of phloem on stderr'
grep -q "rank 0 of 1 .* too much; its largest table is 'embedding.C1'" stderr ||
    complain 'one rank does not say which table is too large, and by how much'
[ ! -e one/model.safetensors ] || complain 'one rank has left a model'
sed -n 's/^phloem: error: /one rank: /p' stderr

launch 4 "$PH_BINARY_DIR/phloem" train job.yaml --out four --quiet
[ "$status" -eq 0 ] || complain "four ranks ended with $status; wanted 0"
[ -e four/model.safetensors/model.safetensors.index.json ] || complain 'four ranks have left no model'
sed 's/^/four ranks: /' stdout

# A plan that was made before keeps to the same limit.
"$PH_BINARY_DIR/phloem" plan job.yaml --world 4 --out plan.yaml >stdout 2>stderr || complain 'no plan'
launch 4 "$PH_BINARY_DIR/phloem" train job.yaml --out planned --quiet --set parallel.plan=plan.yaml
[ "$status" -eq 0 ] || complain "four ranks with a plan ended with $status; wanted 0"

# A plan that is made keeps to the machine's memory where the config sets no limit: 32 TB fit into no machine.
sed 's/rows: 20000}/rows: 4000000000}/; s/embedding_dim: 16/embedding_dim: 2048/; s/memory_bytes: 450000/memory_bytes: 0/' \
    job.yaml >large.yaml
grep -q 4000000000 large.yaml || complain 'the large table is not large'
launch 4 "$PH_BINARY_DIR/phloem" train large.yaml --out large --quiet
[ "$status" -eq 5 ] || complain "four ranks with a table for which there is no memory ended with $status; wanted 5"
grep -q "table 'embedding.C1' .* does not fit" stderr || complain 'the plan does not keep to the memory of the machine'
phloem_plan="$PH_BINARY_DIR/phloem plan large.yaml --world 4"
status=0
$phloem_plan >stdout 2>stderr || status=$?
[ "$status" -eq 5 ] || complain "planning for this machine ended with $status; wanted 5"
grep -q -- "for ranks of another machine, give --rank-memory BYTES" stderr || complain 'what to do is not said'
$phloem_plan --rank-memory 100000000000000 >stdout 2>stderr || complain 'another machine is not planned for'
grep -q 'A rank may spend 9.*TiB' stdout || complain 'the memory of another machine is not shown'
