# What the tests of ranks under mpirun share; sourced with the MPI's name, openmpi or mpich. Environment: PH_BINARY_DIR.
# shellcheck shell=sh
set -eu

mpi=$1
name=$(basename "$0" .sh).$mpi
case $mpi in
openmpi) title='Open MPI' family='Open' ;;
mpich) title='MPICH' family='HYDRA' ;;
esac
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
# Open MPI keeps one folder a user in $TMPDIR, which a job that ends may remove while another begins.
TMPDIR=$work
export TMPDIR
# shellcheck source=tests/support/learned.sh
. "$(dirname "$0")/../support/learned.sh"
PHLOEM_PLUGINS=$PH_BINARY_DIR
PHLOEM_MPI=$mpi # so that one rank alone is no world of itself
export PHLOEM_PLUGINS PHLOEM_MPI

skip() {
    echo "$name: skipped: $1"
    exit 77
}

# complain TEXT: ends the test, showing what the last job printed.
complain() {
    echo "$name: $1" >&2
    sed 's/^/  stdout: /' "$work/stdout" >&2
    sed 's/^/  stderr: /' "$work/stderr" >&2
    exit 1
}

# is_alive PROCESS: it exists and has not ended, though it may not have been waited for.
is_alive() {
    state=$(sed 's/.*) //; s/ .*//' "/proc/$1/stat" 2>/dev/null) || return 1
    case $state in '' | Z | X) return 1 ;; esac
}

# Both packages call theirs mpirun, by a suffix where both are installed.
mpirun=''
for program in "mpirun.$mpi" mpirun; do
    command -v "$program" >/dev/null || continue
    ! "$program" --version 2>&1 | grep -q "$family" || mpirun=${mpirun:-$program}
done
[ -n "$mpirun" ] || skip "$title's mpirun is not there"
[ -e "$PH_BINARY_DIR/libphloem_$mpi.so" ] || skip "the plugin for $title was not built"

# Open MPI wants to be told that there are more ranks than processors, and that root is root.
launcher=$mpirun
if [ "$mpi" = openmpi ]; then
    launcher="$mpirun --oversubscribe --bind-to none"
    [ "$(id -u)" -ne 0 ] || launcher="$launcher --allow-run-as-root"
fi

# launch RANKS COMMAND...: leaves status, and what was printed in $work/stdout and $work/stderr.
launch() {
    ranks=$1
    shift
    status=0
    # shellcheck disable=SC2086 # a list of words
    $launcher -n "$ranks" "$@" >"$work/stdout" 2>"$work/stderr" </dev/null || status=$?
}

# make_job: in $work, data and a job.yaml that trains a DLRM on them with all that there is to carry from step to step.
make_job() {
    cat >"$work/job.yaml" <<END
seed: $seed
threads: 1
data: {train: $work/data/train.tsv, valid: $work/data/valid.tsv, test: $work/data/test.tsv, format: criteo}
model: {kind: dlrm, embedding_dim: 16, bottom_units: [32], top_units: [32], dropout: 0.2, batch_norm: true}
optimizer: {kind: adam, learning_rate: 0.01, embedding_kind: rowwise_adagrad}
train: {epochs: 2, batch_size: 200, report_seconds: 0, evaluate_steps: 7, patience: 0, schedule: plateau}
synth: {seed: $seed, train_rows: 4000, valid_rows: 500, test_rows: 500, table_rows: 100, format: criteo}
END
    "$PH_BINARY_DIR/phloem" synth "$work/job.yaml" --out "$work/data" >"$work/stdout" 2>"$work/stderr" ||
        complain 'the data were not made'
}

# train RANKS FOLDER ARGUMENTS...: phloem train of that job; leaves status, as launch does.
train() {
    train_ranks=$1 folder=$2
    shift 2
    launch "$train_ranks" "$PH_BINARY_DIR/phloem" train "$work/job.yaml" --out "$work/$folder" --quiet "$@"
}

# losses FOLDER: of its training's steps, one a line.
losses() {
    sed -n 's/^{"event": *"train".*"loss": *\([^,]*\),.*/\1/p' "$work/$1/metrics.jsonl"
}

# value FILE KEY: of a member of a JSON file that phloem wrote, one member a line.
value() {
    sed -n "s/^ *\"$2\": \"\{0,1\}\([^\",]*\)\"\{0,1\},\{0,1\}\$/\1/p" "$1"
}
