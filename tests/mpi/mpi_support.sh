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
