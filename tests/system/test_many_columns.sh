#!/bin/sh
# Work grows with the number of columns, not with its square. Nothing is timed: each command may take so many seconds of processor
# time that it needs about a tenth of them, and that comparing each name with each would take several times as many.
# shellcheck source=tests/system/support.sh
. "$PH_SOURCE_DIR/tests/system/support.sh"

columns=12000
ulimit -t 10

# make_columns KIND: data.csv, a label and $columns columns, and job.yaml for them.
make_columns() {
    awk -v columns="$columns" -v kind="$1" 'BEGIN {
        header = "label"
        for (i = 1; i <= columns; i++)
            header = header ",c" i
        print header
        for (row = 0; row < 4; row++) {
            line = row % 2
            for (i = 1; i <= columns; i++)
                line = line "," (kind == "id" ? "i" : "") (row + i) % 7
            print line
        }
    }' >data.csv
    cat >job.yaml <<END
data:
  train: data.csv
  valid: data.csv
  fields: [{name: label, kind: label}, {name: "*", kind: $1}]
model: {kind: lr}
train: {epochs: 1, batch_size: 2}
END
}

for kind in dense id; do
    make_columns "$kind"
    rm -rf run prepared
    succeeds train job.yaml --out run
    succeeds train job.yaml --out run --resume --set train.epochs=2
    succeeds eval run data.csv
    succeeds predict run data.csv --out scores.csv
    succeeds inspect run/model.safetensors
    succeeds inspect model run
    succeeds export run --onnx model.onnx
    succeeds prepare job.yaml --out prepared
    bytes=$(wc -c <run/report.html)
    [ "$bytes" -lt 1000000 ] || complain "report.html has $bytes bytes for $columns columns of kind $kind"
done
contains run/report.html "\"num_rows\":$columns,"

# The run folder keeps every key of each entry.
make_columns dense
{
    sed '/fields/d; /^model/,$d' job.yaml
    echo '  fields:'
    echo '    - {name: label, kind: label}'
    awk -v columns="$columns" 'BEGIN { for (i = 1; i <= columns; i++) print "    - {name: c" i ", kind: dense}" }'
    sed -n '/^model/,$p' job.yaml
} >entries.yaml
rm -rf run
succeeds train entries.yaml --out run
succeeds train entries.yaml --out run --resume --set train.epochs=2
succeeds eval run data.csv

# A training that is stopped ends by itself, with the signal's exit code.
rm -rf run
begins train entries.yaml --out run --set train.epochs=100000 --set train.patience=0
waits_for test -s run/model.safetensors
kill -s TERM "$process"
ends 143
