#!/bin/sh
# Real files through the whole program: prepare, train, eval and predict. The text and the prepared data give the same model,
# the same metrics and the same predictions, and the numbers are printed.
# shellcheck source=tests/system/support.sh
. "$PH_SOURCE_DIR/tests/system/support.sh"

PHLOEM_DATA=${PHLOEM_DATA:-$PH_SOURCE_DIR/../shared/data}
export PHLOEM_DATA
[ -d "$PHLOEM_DATA" ] || {
    echo "$name: skipped: there is no folder \$PHLOEM_DATA = $PHLOEM_DATA" >&2
    exit 77
}
command -v zstd >/dev/null || {
    echo "$name: skipped: zstd is not installed" >&2
    exit 77
}

# both_ways NAME CONFIG ROWS FILE: from text and from prepared data; FILE is predicted and evaluated, of ROWS rows.
both_ways() {
    what=$1 config=$2 rows=$3 file=$4
    succeeds prepare "$config" --out "$what.prepared"
    succeeds train "$config" --out "$what.text" --quiet
    succeeds train "$config" --out "$what.columns" --quiet --set data.prepared="$what.prepared"
    contains "$what.columns/config.yaml" "$what.prepared/train"
    text=$(value "$what.text/summary.json" checkpoint_sha256)
    columns=$(value "$what.columns/summary.json" checkpoint_sha256)
    if [ -z "$text" ] || [ "$text" != "$columns" ]; then
        complain "$what: text gives the model $text, prepared data $columns"
    fi

    succeeds eval "$what.text" "$file"
    cp stdout text.eval
    succeeds eval "$what.columns" "$what.prepared/test"
    cmp -s stdout text.eval || complain "$what: text and prepared data are evaluated differently"

    succeeds predict "$what.text" "$file" --out text.csv
    succeeds predict "$what.columns" "$what.prepared/test" --out columns.csv
    cmp -s text.csv columns.csv || complain "$what: text and prepared data are predicted differently"
    [ "$(wc -l <text.csv)" -eq $((rows + 1)) ] || complain "$what: wanted $rows predictions"
    echo "$what: model $text, auc $(value text.eval auc), logloss $(value text.eval logloss)"
}

# ---- Criteo: 10,000 lines as they are ----
cat >criteo.yaml <<'END'
threads: 2
data:
  train: $PHLOEM_DATA/criteo/first10k.tsv.zst
  valid: $PHLOEM_DATA/criteo/first10k.tsv.zst
  test: $PHLOEM_DATA/criteo/first10k.tsv.zst
  format: criteo
  min_count: 5
  fields:
    - {name: "I*", kind: dense, transform: log1p_standardise, missing_indicator: true}
    - {name: I2_bucket, from: I2, kind: id, encoding: log_bucket}
    - {name: C3, kind: id, encoding: hash, rows: 1000}
model: {kind: dlrm, embedding_dim: 8, bottom_units: [16], top_units: [16], hidden_units: [16]}
train: {epochs: 2, batch_size: 500}
END
both_ways criteo criteo.yaml 10000 "$PHLOEM_DATA/criteo/first10k.tsv.zst"

# ---- Frappe: one epoch of a published setting ----
sed 's/^  epochs: .*/  epochs: 1/' "$PH_SOURCE_DIR/configs/frappe/fm.yaml" >frappe.yaml
both_ways frappe frappe.yaml 28860 "$PHLOEM_DATA/frappe/test.csv.zst"

# ---- MovieLens: lists of ids; a row that was not seen is a user with another row's item ----
zstd -dc "$PHLOEM_DATA/movielens1m/train.txt.zst" | head -100000 | tr ',' ' ' | awk '
    { users[NR] = $1; items[NR] = $2 }
    END {
        for (i = 1; i <= NR; i++) {
            file = i % 10 == 0 ? "movielens.test.csv" : "movielens.train.csv"
            if (!(file in seen)) { print "click,user,item" >file; seen[file] = 1 }
            print "1," users[i] "," items[i] >file
            print "0," users[i] "," items[(i * 7919) % NR + 1] >file
        }
    }'
cat >movielens.yaml <<'END'
threads: 2
data:
  train: movielens.train.csv
  valid: movielens.test.csv
  test: movielens.test.csv
  format: csv
  list_separator: "-"
  fields:
    - {name: click, kind: label}
    - {name: user, kind: id, list: true}
    - {name: item, kind: id, list: true}
model: {kind: deepfm, embedding_dim: 8, hidden_units: [32]}
train: {epochs: 1, batch_size: 1000}
END
both_ways movielens movielens.yaml 20000 movielens.test.csv

# A config that would encode otherwise than the data was prepared is refused.
fails 2 "data.min_count was '5' and is now '6', but data.prepared was made with the former" train criteo.yaml --out other \
    --set data.prepared=criteo.prepared --set data.min_count=6
