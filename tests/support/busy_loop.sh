#!/bin/sh
# Keeps a processor busy as long as a process lives: the load of another program during a test.
#
#     busy_loop.sh PROCESS
while kill -s 0 "$1" 2>/dev/null; do
    turn=0
    while [ "$turn" -lt 100000 ]; do turn=$((turn + 1)); done
done
