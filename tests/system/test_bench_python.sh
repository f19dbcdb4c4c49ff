#!/bin/sh
# The benchmarks of the Python package on small sizes: each prints its table and writes figures, or says why it was skipped;
# a peer that is not there is named with its reason. Nothing is timed. PHLOEM_BENCH_PYTHON names the interpreter.
# shellcheck source=tests/system/support.sh
. "$PH_SOURCE_DIR/tests/system/support.sh"

python=${PHLOEM_BENCH_PYTHON:-python3}
if ! command -v "$python" >/dev/null; then
    echo "$name: skipped: $python is not there"
    exit 77
fi
export PHLOEM_LIBRARY="$PH_BINARY_DIR/libphloem.so" PHLOEM_PROGRAM="$PH_BINARY_DIR/phloem"
export PYTHONDONTWRITEBYTECODE=1
measured=0

# bench PROGRAM ARGUMENTS...: leaves status, and what was printed.
bench() {
    script=$PH_SOURCE_DIR/bench/python/$1.py
    shift
    status=0
    "$python" "$script" "$@" >stdout 2>stderr || status=$?
}

# runs PROGRAM FIGURE...: it ends with 0 and has each figure in its table and its file, or ends with 77 and a reason.
runs() {
    program=$1
    shift
    bench "$program" --quick --peers peers --json figures.json
    if [ "$status" -eq 77 ]; then
        contains stdout 'skipped: '
        echo "$name: $program: $(cat stdout)"
        return 0
    fi
    [ "$status" -eq 0 ] || complain "$program ended with $status"
    for figure in "$@"; do
        contains stdout "$figure"
        contains figures.json "$figure"
    done
    grep ': skipped: ' stdout | sort -u || true
    measured=$((measured + 1))
}

runs bench_frames python.dlrm.prepared python.dlrm.frame python.small.text_frame python.ingest
runs bench_small python.small.
runs bench_fuxictr python.deepfm.units64 python.deepfm.units400 python.dcn_v2.units64 python.dcn_v2.units400 .auc

# Without any of the packages the reason is one line.
status=0
"$python" -S "$PH_SOURCE_DIR/bench/python/bench_frames.py" --quick >stdout 2>stderr || status=$?
[ "$status" -eq 77 ] || complain "without packages it ended with $status; wanted 77"
contains stdout 'skipped: No module named'
[ "$(wc -l <stdout)" -eq 1 ] || complain 'wanted one line'

# Unknown flags and values measure nothing.
if [ "$measured" -gt 0 ]; then
    bench bench_frames --quik
    [ "$status" -eq 2 ] || complain "an unknown flag ended with $status; wanted 2"
    contains stderr '--quik'
    bench bench_frames --rounds 0
    [ "$status" -eq 2 ] || complain "no rounds ended with $status; wanted 2"
    contains stderr "--rounds '0': not a positive number"
    [ ! -s stdout ] || complain 'it measured something'
    exit 0
fi
exit 77
