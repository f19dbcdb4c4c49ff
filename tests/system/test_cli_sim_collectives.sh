#!/bin/sh
# phloem sim: sums on two racks of four hosts take the times that were worked out by hand, for each collective.
#
# Hosts send 100 bytes a microsecond, and an uplink carries 25 each way for its rack. Nothing else takes time. Of a sum of S bytes
#
#     exchange      a rack sends 4 x 4 x S / 8 in each of 2 rounds: 4 S / 25
#     hierarchical  a host sends 3 x S / 4 in each of 2 rounds, a rack 4 x S / 8 in 2 others: 1.5 S / 100 + S / 25
#     ring          a rack sends S / 8 in each of 14 rounds: 1.75 S / 25
# shellcheck source=tests/system/support.sh
. "$PH_SOURCE_DIR/tests/system/support.sh"

cat >job.yaml <<'END_OF_JOB'
seed: 1
threads: 1
data: {train: data/train.tsv, format: criteo}
model: {kind: dnn, embedding_dim: 8, hidden_units: [1000, 1000]}
optimizer: {kind: sgd}
train: {epochs: 1, batch_size: 8, max_steps: 4}
parallel: {plan: none, bucket_bytes: 100000000}
synth: {format: criteo, train_rows: 64, valid_rows: 8, test_rows: 8, table_rows: 10}
END_OF_JOB
cat >racks.yaml <<'END_OF_RACKS'
version: 1
kind: racks
hosts: 8
host: {gbits_per_s: .8, latency_us: 0}
rack: {hosts: 4, uplinks: 1, gbits_per_s: .2, latency_us: 0}
messages: {send_us: 0, receive_us: 0, host_latency_us: 0}
END_OF_RACKS
echo '{"version": 1, "label": "set by hand", "rates": {"flops_per_s": 1e15, "bytes_per_s": 1e15, "overhead_us": 0}}' >rates.json
succeeds synth job.yaml --out data
succeeds sim job.yaml --topology racks.yaml --profile rates.json --out runs \
    --sweep parallel.collective=exchange,hierarchical,ring,auto

# figures COLLECTIVE: bytes that all ranks have sent of dense gradients, and seconds of a step.
figures() {
    awk '/"what": "gradients of dense parameters"/ { is_dense = 1 }
        is_dense && /"sent_bytes"/ { gsub(/[^0-9]/, ""); print; exit }' runs/*"=$1/summary.json"
    sed -n 's/^    "step_seconds": \([0-9.e-]*\).*/\1/p' runs/*"=$1/summary.json"
}

# takes COLLECTIVE SECONDS_A_BYTE: a step of it takes that, within 2%, for the bytes that were sent.
takes() {
    figures "$1" >"figures.$1"
    awk -v each="$2" 'NR == 1 { bytes = $1 / (2 * 7 * 4) } NR == 2 { seconds = $1 }
        END { error = seconds / (bytes * each) - 1; print bytes, seconds, error; exit !(bytes > 4e6 && error * error < 4e-4) }' \
        "figures.$1" >stdout || complain "$1: a step takes another time than by hand"
}
takes exchange 16e-8
takes hierarchical 5.5e-8
takes auto 5.5e-8
takes ring 7e-8

# The comparison notices another time.
! (takes ring 7.3e-8) 2>/dev/null || complain 'a wrong time is taken for right'
