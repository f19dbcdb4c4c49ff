#!/bin/sh
# A Parquet folder of PH_PARQUET_BYTES (1e9) trains two epochs below 1 GB of resident memory.
# Environment: PH_SOURCE_DIR, PH_BINARY_DIR.
set -eu
exec python3 "$PH_SOURCE_DIR/tests/oracle/python_parquet_memory.py" "$PH_SOURCE_DIR" "$PH_BINARY_DIR/libphloem.so" \
    "$PH_BINARY_DIR/phloem" "${PH_PARQUET_BYTES:-1e9}"
