#!/bin/sh
# Keeps a processor busy for as long as a process is there: what else the machine does while a test runs.
#
#     busy_loop.sh PROCESS
while kill -s 0 "$1" 2>/dev/null; do
    turn=0
    while [ "$turn" -lt 100000 ]; do turn=$((turn + 1)); done
done
