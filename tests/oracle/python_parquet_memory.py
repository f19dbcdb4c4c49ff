#!/usr/bin/env python3
"""A Parquet folder that is larger than memory should be trains two epochs, vocabularies included, below 1 GB of resident memory.

usage: python_parquet_memory.py SOURCE LIBPHLOEM PHLOEM [BYTES]
       python_parquet_memory.py write FOLDER BYTES       writes the folder
       python_parquet_memory.py train FOLDER             trains on it with the package that is importable

BYTES: the size of the folder, 1e9 by default; the writer and the training are processes of their own, and the training's greatest
resident memory (VmHWM of /proc) is what counts. Skips (77) where NumPy or pyarrow is not importable or the disk has no room.
"""
import os
import pathlib
import re
import shutil
import subprocess
import sys
import tempfile
import time

try:
    import numpy as np
    import pyarrow as pa
    import pyarrow.parquet
except ImportError as missing:
    print(f"skipped: {missing}")
    sys.exit(77)

MAX_RESIDENT_BYTES = 1_000_000_000
GROUP_ROWS, NUM_FILES, NUM_USERS = 100_000, 4, 200_000


def write(folder, size):
    """Writes row group by row group; each file has users of its own, and numbers that do not compress."""
    folder.mkdir()
    rng, rows = np.random.default_rng(1), 0
    for part in range(NUM_FILES):
        path, writer = folder / f"part{part}.parquet", None
        while writer is None or path.stat().st_size < size / NUM_FILES:
            price = rng.normal(size=(6, GROUP_ROWS))
            user = rng.integers(0, NUM_USERS // NUM_FILES, GROUP_ROWS)
            odds = price[0] + np.sin(user)
            columns = {"label": (rng.random(GROUP_ROWS) < 1 / (1 + np.exp(-odds))).astype(np.int8),
                       "user": pa.array(np.char.add(f"file {part} user ", user.astype(str))),
                       "item": rng.integers(0, 50_000, GROUP_ROWS), **{f"price{i}": price[i] for i in range(6)}}
            table = pa.table(columns)
            writer = writer or pyarrow.parquet.ParquetWriter(path, table.schema)
            writer.write_table(table, row_group_size=GROUP_ROWS)
            rows += GROUP_ROWS
        writer.close()
    total = sum(file.stat().st_size for file in folder.iterdir())
    print(f"{total / 1e9:.2f} GB of Parquet, {rows} rows")


def train(folder):
    import phloem
    begun = time.monotonic()
    run = phloem.train({"model": {"kind": "fm", "embedding_dim": 8}, "train": {"epochs": 2, "batch_size": 8192, "tensorboard": False}},
                       folder, folder / f"part{NUM_FILES - 1}.parquet")
    seconds, status = time.monotonic() - begun, pathlib.Path("/proc/self/status").read_text()
    resident = int(re.search(r"VmHWM:\s*(\d+) kB", status)[1]) * 1024
    print(f"two epochs of {run.summary['samples']} samples in {seconds:.0f} s with the passes for vocabularies; "
          f"valid auc {run.metrics['valid']['auc']:.4f}; peak of resident memory {resident / 1e6:.0f} MB")
    users = run.model.state_dict()["embedding.user"].shape[0]
    assert NUM_USERS * 0.99 < users <= NUM_USERS + 2, users
    known = run.model.embedding("user", ["nobody", "file 0 user 7", f"file {NUM_FILES - 1} user 7"])
    assert not np.array_equal(known[0], known[1]) and not np.array_equal(known[0], known[2])
    assert run.metrics["valid"]["auc"] > 0.7
    assert resident < MAX_RESIDENT_BYTES, f"{resident} bytes are not below {MAX_RESIDENT_BYTES}"


def main():
    if sys.argv[1] == "write":
        return write(pathlib.Path(sys.argv[2]), float(sys.argv[3]))
    if sys.argv[1] == "train":
        return train(pathlib.Path(sys.argv[2]))
    source, library, program = (pathlib.Path(argument).resolve() for argument in sys.argv[1:4])
    size = float(sys.argv[4]) if len(sys.argv) > 4 else 1e9
    environment = {**os.environ, "PYTHONPATH": str(source / "bindings" / "python"), "PHLOEM_LIBRARY": str(library),
                   "PHLOEM_PROGRAM": str(program), "PYTHONDONTWRITEBYTECODE": "1"}
    with tempfile.TemporaryDirectory() as work:
        if shutil.disk_usage(work).free < 1.5 * size:
            print(f"skipped: {work} has no room for {size:.0f} bytes; set TMPDIR")
            return 77
        folder = pathlib.Path(work) / "rows"
        subprocess.run([sys.executable, __file__, "write", folder, str(size)], check=True, env=environment)
        subprocess.run([sys.executable, __file__, "train", folder], check=True, env=environment)
    return 0


if __name__ == "__main__":
    sys.exit(main())
