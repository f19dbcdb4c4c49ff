#!/bin/sh
# A scoring server that is killed a hundred times under load gives no wrong score, and clients see errors only while it is
# down; half an hour under half of what it can take leaves its memory flat. PH_SOAK_SECONDS changes the half hour.
# shellcheck source=tests/system/support.sh
. "$PH_SOURCE_DIR/tests/system/support.sh"

bench=$PH_BINARY_DIR/bench/serve/bench_server
"$bench" --kills 100 >stdout 2>stderr || complain 'bench_server --kills 100 failed'
cat stdout
contains stdout 'rest: 50 kills'
"$bench" --soak "${PH_SOAK_SECONDS:-1800}" >stdout 2>stderr || complain 'the soak failed'
cat stdout
