#!/bin/sh
# A scoring server that is killed under load and started again gives no wrong score, and clients see errors only while it
# is down.
# shellcheck source=tests/system/support.sh
. "$PH_SOURCE_DIR/tests/system/support.sh"

"$PH_BINARY_DIR/bench/serve/bench_server" --kills 10 >stdout 2>stderr || complain 'bench_server --kills 10 failed'
cat stdout
contains stdout 'rest: 5 kills'
contains stdout 'grpc: 5 kills'
