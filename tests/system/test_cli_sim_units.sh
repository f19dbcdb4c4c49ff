#!/bin/sh
# phloem sim: three equal layers, fully sharded over two hosts, take the times that were worked out by hand.
#
# A layer has N x N weights, N = 2093, and its unit moves half of their 4 N^2 bytes each way. The links carry a byte a
# nanosecond, so a gather or a reduction alone takes g = 2 N^2 ns. A rank has 64 rows: a product takes 128 N^2 operations,
# c = 1.6 g at 40 operations a nanosecond and 0.5 g at 128. Nothing else takes time worth counting: biases, the last
# layer of one output (part of the third unit), tables of ten rows, updates. Times below are in g from the step's begin.
#
# The order of a step, with units 1, 2, 3; D: product for the gradient of a layer's input, W: of its weights:
#
#     gather 1, layer 1, layer 2, layer 3, W3, D3, W2, D2, D1, W1
#
# Each next unit's gather starts when the one before has come, in backward at its begin (unit 3 has stayed). A reduction
# starts behind its W and is waited for before the next W.
# shellcheck source=tests/system/support.sh
. "$PH_SOURCE_DIR/tests/system/support.sh"

cat >job.yaml <<'END'
seed: 1
threads: 1
data: {train: data/train.tsv, format: criteo}
model: {kind: dnn, embedding_dim: 80, hidden_units: [2093, 2093, 2093]}
optimizer: {kind: sgd}
train: {epochs: 1, batch_size: 128, max_steps: 1}
parallel: {plan: plan.yaml}
synth: {format: criteo, train_rows: 128, valid_rows: 8, test_rows: 8, table_rows: 10}
END
cat >topology.yaml <<'END'
version: 1
kind: star
hosts: 2
host: {gbits_per_s: 8, latency_us: 0}
messages: {send_us: 0, receive_us: 0}
END
succeeds synth job.yaml --out data

# simulate FOLDER OPERATIONS_PER_NS PREFETCH
simulate() {
    printf '{"version": 1, "label": "set by hand", "rates": {"flops_per_s": %se9, "bytes_per_s": 1e15, "overhead_us": 0}}\n' \
        "$2" >rates.json
    printf 'version: 1\nworld_size: 2\ndefault: {kind: data_parallel}\ndense: {mode: full, unit_bytes: %s, prefetch: %s}\n' \
        17600000 "$3" >plan.yaml
    succeeds sim job.yaml --topology topology.yaml --profile rates.json --out "$1"
}

# meets FOLDER: rank 0's operators end at the times on stdin, each a name and its end in g, within 1%.
meets() {
    sed -n 's/.*"pid":0,"tid":0,"name":"\([^"]*\)".*"ts":\([0-9.]*\),"dur":\([0-9.]*\)}.*/\1 \2 \3/p' "$1/trace.json" >ends
    awk -v g=$((2 * 2093 * 2093)) '
        NR == FNR {end[$1] = ($2 + $3) * 1e3 / g; next}
        {error = end[$1] / $2 - 1}
        !($1 in end) || error > .01 || error < -.01 {print $1, "ends at", end[$1], "g; by hand:", $2; is_wrong = 1}
        END {exit is_wrong}' ends - >stdout || complain "$1: a time is not that of the hand"
}

# Products take longer than messages: all but the first gather and the last reduction hide behind them.
# 2 g + 9 c = 16.4 g.
simulate hidden 40 1
meets hidden <<'END'
gather_unit_wait 1
deep.0.linear 2.6
gather_unit_wait.2 2.6
deep.1.linear 4.2
gather_unit_wait.3 4.2
deep.2.linear 5.8
linear_backward_weight.2 7.4
linear_backward_data.2 9
gather_unit_wait.4 9
reduce_unit_wait 9
linear_backward_weight.3 10.6
linear_backward_data.3 12.2
gather_unit_wait.5 12.2
linear_backward_data.4 13.8
reduce_unit_wait.2 13.8
linear_backward_weight.4 15.4
reduce_unit_wait.3 16.4
END

# Messages take longer than products. From 4 on, the reduction of unit 3 and the second gather of unit 2, which has half
# of its bytes to go, share the links: the latter ends at 5. That of unit 1 then shares them until the reduction ends at 6.
simulate shared 128 1
meets shared <<'END'
gather_unit_wait 1
deep.0.linear 1.5
gather_unit_wait.2 2
deep.1.linear 2.5
gather_unit_wait.3 3
deep.2.linear 3.5
linear_backward_weight.2 4
linear_backward_data.2 4.5
gather_unit_wait.4 5
reduce_unit_wait 6
linear_backward_weight.3 6.5
linear_backward_data.3 7
gather_unit_wait.5 7
linear_backward_data.4 7.5
reduce_unit_wait.2 7.5
linear_backward_weight.4 8
reduce_unit_wait.3 9
END

# Without prefetch, nothing hides the other four gathers: 6 g + 9 c = 20.4 g.
simulate exposed 40 0
meets exposed <<'END'
gather_unit_wait 1
deep.0.linear 2.6
gather_unit_wait.2 3.6
deep.1.linear 5.2
gather_unit_wait.3 6.2
deep.2.linear 7.8
linear_backward_weight.2 9.4
linear_backward_data.2 11
gather_unit_wait.4 12
reduce_unit_wait 12
linear_backward_weight.3 13.6
linear_backward_data.3 15.2
gather_unit_wait.5 16.2
linear_backward_data.4 17.8
reduce_unit_wait.2 17.8
linear_backward_weight.4 19.4
reduce_unit_wait.3 20.4
END

# The comparison notices: a timeline without prefetch is not the one with it.
! (meets exposed <<'END'
gather_unit_wait.2 2.6
END
) 2>/dev/null || complain 'a wrong time is taken for right'
