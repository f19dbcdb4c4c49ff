#!/bin/sh
# The ranks of a benchmark come to be where they are wanted: on this host, and on two that a limited link joins. What cannot be had
# is said in one line.
# shellcheck source=tests/system/support.sh
. "$PH_SOURCE_DIR/tests/system/support.sh"

launcher=$PH_SOURCE_DIR/bench/comm/launch_ranks.sh

# launches ARGUMENTS...: leaves what was printed in ./stdout; skips where there is something missing.
launches() {
    sh "$launcher" "$@" >stdout 2>stderr </dev/null || complain "launch_ranks.sh $* ended with $?"
    grep -q '^missing .' stdout || return 0
    [ "$(wc -l <stdout)" -eq 1 ] || complain 'it went on without what it needs'
    sed "s/^missing/$name: skipped:/" stdout
    exit 77
}

PHLOEM_MPI=nothing sh "$launcher" host 2 true >stdout 2>stderr || complain 'an unknown MPI ended it'
contains stdout "missing there is no launcher of 'nothing'"

launches host 3 echo rank
[ "$(grep -cx rank stdout)" -eq 3 ] || complain 'wanted three ranks'

# Each says its host and how fast that host may send.
launches link sh -c 'echo "$(uname -n) $(tc qdisc show | grep -o "tbf .* rate [^ ]*" | sed "s/ .* / /")"'
[ "$(sort stdout | xargs)" = 'far tbf 1Gbit near tbf 1Gbit' ] || complain 'wanted a rank on each host, behind its link'
