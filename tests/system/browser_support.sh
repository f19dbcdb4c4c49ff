# What tests of pages share; sourced behind support.sh.
# shellcheck shell=sh

# check ARGUMENTS...: page_check.py finds nothing wrong. must_fail ARGUMENTS...: it does.
check() { python3 "$PH_SOURCE_DIR/tests/system/page_check.py" "$@" >stdout 2>stderr || complain "page_check $*"; }
must_fail() {
    if python3 "$PH_SOURCE_DIR/tests/system/page_check.py" "$@" >stdout 2>stderr; then
        complain "page_check $* finds nothing wrong"
    fi
}

# needs_browser: ends the test where there is no Chromium.
needs_browser() {
    command -v chromium >/dev/null || {
        echo "$name: skipped: no chromium; the pages were looked at as text only"
        exit 77
    }
    as_root=''
    [ "$(id -u)" -ne 0 ] || as_root=--no-sandbox
}

# browse ARGUMENTS...: Chromium with nothing kept and no host in reach but this one; what it prints in ./stdout, ./stderr.
browse() {
    status=0
    # shellcheck disable=SC2086 # one word or none
    timeout 120 chromium --headless $as_root --disable-gpu --no-first-run --disable-background-networking \
        --host-resolver-rules='MAP * ~NOTFOUND, EXCLUDE 127.0.0.1' --virtual-time-budget=4000 --hide-scrollbars \
        --user-data-dir="$work/profile" --enable-logging=stderr "$@" >stdout 2>stderr </dev/null || status=$?
    [ "$status" -eq 0 ] || complain "chromium $* ended with $status"
}

# is_quiet: nothing has been written to the page's console.
is_quiet() { ! grep -q ':CONSOLE' stderr; }
