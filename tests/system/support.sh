# What the tests of the phloem program share; sourced. Environment: PH_SOURCE_DIR, PH_BINARY_DIR.
# shellcheck shell=sh
set -eu

name=$(basename "$0" .sh)
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
cd "$work" || exit 1

# phloem ARGUMENTS...: leaves status, and what was printed in ./stdout and ./stderr.
phloem() {
    status=0
    "$PH_BINARY_DIR/phloem" "$@" >stdout 2>stderr </dev/null || status=$?
}

# complain TEXT: ends the test, showing what the last phloem printed.
complain() {
    echo "$name: $1" >&2
    sed 's/^/  stdout: /' stdout >&2
    sed 's/^/  stderr: /' stderr >&2
    exit 1
}

# succeeds ARGUMENTS...: phloem ends with 0 and has nothing to complain of.
succeeds() {
    phloem "$@"
    [ "$status" -eq 0 ] || complain "phloem $* ended with $status; wanted 0"
    [ ! -s stderr ] || complain "phloem $* has printed to stderr"
}

# fails STATUS TEXT ARGUMENTS...: phloem ends with STATUS, and says why in one line that contains TEXT.
fails() {
    wanted=$1 text=$2
    shift 2
    phloem "$@"
    [ "$status" -eq "$wanted" ] || complain "phloem $* ended with $status; wanted $wanted"
    contains stderr "$text"
    [ "$(wc -l <stderr)" -eq 1 ] || complain "phloem $*: wanted one line on stderr"
}

# contains FILE TEXT
contains() {
    grep -qF -- "$2" "$1" || complain "$1 lacks \"$2\""
}

# value FILE KEY: of a member of a JSON file that phloem wrote, one member a line.
value() {
    sed -n "s/^ *\"$2\": \"\{0,1\}\([^\",]*\)\"\{0,1\},\{0,1\}\$/\1/p" "$1"
}

# is_sealed FILE: the digits that FILE carries are the SHA-256 of its bytes with those digits as zeros.
is_sealed() {
    digits=$(LC_ALL=C grep -a -o -m 1 '"sha256": *"[0-9a-f]*"' "$1" | grep -o '[0-9a-f]\{64\}')
    zeros=$(printf '%064d' 0)
    sum=$(LC_ALL=C sed "1,2s/$digits/$zeros/" "$1" | sha256sum | cut -c 1-64)
    [ "$sum" = "$digits" ] || complain "$1 is sealed with '$digits', but its sum is $sum"
}

# A small Criteo-like data set in ./data, and ./job.yaml, which trains a DLRM on it in a moment.
make_small_job() {
    cat >job.yaml <<'END'
seed: 1
threads: 2
data: {train: data/train.tsv, valid: data/valid.tsv, test: data/test.tsv, format: criteo}
model: {kind: dlrm, embedding_dim: 4, bottom_units: [8], top_units: [8], hidden_units: [8], dropout: 0.1}
train: {epochs: 2, batch_size: 250, report_seconds: 0}
synth: {train_rows: 4000, valid_rows: 1000, test_rows: 1000, table_rows: 100, format: criteo}
END
    succeeds synth job.yaml --out data
}
