# What the tests of the benchmarks' peers share; sourced behind support.sh. PHLOEM_BENCH_PYTHON names the interpreter, as
# for ./run bench. A test ends with skips_if_none_is_there.
# shellcheck shell=sh
# shellcheck disable=SC2034 # seconds is for the tests

python=${PHLOEM_BENCH_PYTHON:-python3}
if ! command -v "$python" >/dev/null; then
    echo "$name: skipped: $python is not there"
    exit 77
fi
peers=$PH_SOURCE_DIR/bench/peers
measured=0
seconds='[0-9.e-]*[0-9]'

# answers PEER PATTERN...: to the lines of standard input, behind its version; the patterns are of whole lines.
answers() {
    peer=$1
    shift
    "$python" "$peers/$peer.py" >stdout 2>stderr || complain "$peer.py ended with $?"
    if grep -q '^missing .' stdout; then
        [ "$(wc -l <stdout)" -eq 1 ] || complain "$peer.py went on without what it needs"
        echo "$name: $peer: $(cat stdout)"
        return 0
    fi
    measured=$((measured + 1))
    number=1
    for pattern in "$peer .*" "$@"; do
        sed -n "${number}p" stdout | grep -qx -- "$pattern" || complain "$peer.py: line $number is not '$pattern'"
        number=$((number + 1))
    done
    [ "$(wc -l <stdout)" -eq $(($# + 1)) ] || complain "$peer.py: too many answers"
}

skips_if_none_is_there() {
    [ "$measured" -gt 0 ] || exit 77
}
