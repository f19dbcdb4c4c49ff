# What the tests of the phloem program share; sourced. Environment: PH_SOURCE_DIR, PH_BINARY_DIR.
# shellcheck shell=sh
set -eu

name=$(basename "$0" .sh)
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
cd "$work" || exit 1

# shellcheck source=tests/support/learned.sh
. "$PH_SOURCE_DIR/tests/support/learned.sh"

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
    cat >job.yaml <<END
seed: $seed
threads: 2
data: {train: data/train.tsv, valid: data/valid.tsv, test: data/test.tsv, format: criteo}
model: {kind: dlrm, embedding_dim: 4, bottom_units: [8], top_units: [8], hidden_units: [8], dropout: 0.1}
train: {epochs: 2, batch_size: 250, report_seconds: 0}
synth: {seed: $seed, train_rows: 4000, valid_rows: 1000, test_rows: 1000, table_rows: 100, format: criteo}
END
    succeeds synth job.yaml --out data
}

# make_resume_job: the small job's data, and a ./job.yaml whose training carries everything there is to carry: dropout,
# batch norm, two optimizers, a schedule that cuts, evaluations within epochs; and saves behind every third step.
make_resume_job() {
    make_small_job
    cat >job.yaml <<'END'
seed: 5
threads: 2
data: {train: data/train.tsv, valid: data/valid.tsv, test: data/test.tsv, format: criteo}
model: {kind: dlrm, embedding_dim: 16, bottom_units: [32], top_units: [32], dropout: 0.2, batch_norm: true}
optimizer: {kind: adam, learning_rate: 0.02, embedding_kind: rowwise_adagrad}
train:
  {epochs: 4, batch_size: 200, report_seconds: 0, evaluate_steps: 7, patience: 0, schedule: plateau,
    schedule_factor: 0.5, checkpoint_steps: 3}
END
}

# begins ARGUMENTS...: phloem in the background; leaves its process.
begins() {
    # A background process of a shell ignores SIGINT, which a program inherits: env gives it back.
    env --default-signal=INT "$PH_BINARY_DIR/phloem" "$@" >stdout 2>stderr </dev/null &
    process=$!
}

# ends STATUS: the process that began ends with it.
ends() {
    status=0
    wait "$process" || status=$?
    [ "$status" -eq "$1" ] || complain "ended with $status; wanted $1"
}

# waits_for COMMAND...: until the command succeeds or the process has ended.
waits_for() {
    until "$@" >/dev/null 2>&1; do
        kill -s 0 "$process" 2>/dev/null || return 0
    done
}

# same_run A B: two run folders agree in all but times, memory, their own names and what ranks cost each other.
same_run() {
    measured='"\(train_seconds\|samples_per_s\|reader_wait_share\|[a-z_]*_bytes\|growths\|threads\|backend\|checkpoint\)":'
    for file in summary.json metrics.jsonl; do
        for folder in "$1" "$2"; do
            sed "s/,\"samples_per_s\":[^,}]*//; /^ *$measured/d; /^  \"ranks\": {/,/^  }/d" "$folder/$file" \
                >"$folder.compared"
        done
        cmp -s "$1.compared" "$2.compared" || {
            diff "$1.compared" "$2.compared" >&2 || true
            complain "$1/$file and $2/$file differ"
        }
    done
    cmp -s "$1/model.safetensors" "$2/model.safetensors" || complain "the models of $1 and $2 differ"
}
