#!/usr/bin/env python3
"""A small model, Frappe's DNN with batches of 4096, beside plain PyTorch, eager and compiled, on 1 and 2 threads.

Both have the layers of configs/frappe/dnn.yaml (batch norm, dropout .2), and Adam over all rows of the tables. Neither has the
BARS protocol's L2 and clipping of gradients, which plain PyTorch would pay for. PyTorch reads tensors in memory
(bench/peers/torch_dnn.py), Phloem an Arrow table, which it encodes anew in each epoch. $PHLOEM_DATA is where Frappe is.
"""
import json
import os
import pathlib
import tempfile

import measure
import numpy
import pyarrow
import pyarrow.csv

import phloem

CASE = {"dim": 10, "units": [400, 400, 400], "dropout": 0.2, "batch": 4096, "learning_rate": 0.001}
MODEL = {"kind": "dnn", "embedding_dim": CASE["dim"], "hidden_units": CASE["units"], "dropout": CASE["dropout"]}
CONFIG = {
    "model": {**MODEL, "batch_norm": True},
    "train": {"batch_size": CASE["batch"], "patience": 0, "schedule": "constant", "epochs": 1},
    "optimizer": {"kind": "adam", "learning_rate": CASE["learning_rate"], "embedding_scope": "whole"},
}


def read_frappe():
    data = pathlib.Path(os.environ.get("PHLOEM_DATA") or measure.ROOT / ".." / "shared" / "data")
    try:
        with pyarrow.CompressedInputStream(str(data / "frappe" / "train.csv.zst"), "zstd") as stream:
            return pyarrow.csv.read_csv(stream)
    except OSError:
        measure.skip("Frappe is not there: PHLOEM_DATA/frappe/train.csv.zst, see docs/DATA.md")


def write_case(folder, frame):
    labels = frame["label"].to_numpy().astype(numpy.float32)
    ids = numpy.stack([column.to_numpy() for column in frame.drop_columns("label").columns], 1).astype(numpy.int64)
    (folder / "ids.i64").write_bytes(numpy.ascontiguousarray(ids).tobytes())
    (folder / "labels.f32").write_bytes(labels.tobytes())
    sizes = {"rows": int(ids.max()) + 1, "fields": ids.shape[1]}
    (folder / "case.json").write_text(json.dumps({**CASE, **sizes}))


def measure_threads(bench, folder, frame, threads):
    peers = {mode: bench.peer("torch_dnn") for mode in ("eager", "compile")}

    def ours():
        run = phloem.train({**CONFIG, "threads": threads}, frame, progress=False)
        return run.summary["samples_per_s"]

    def theirs(mode):
        if mode == "compile" and bench.is_quick:
            raise measure.Skipped("compiling takes a minute, which --quick leaves out")
        peers[mode].case(f"{folder} threads={threads} mode={mode}")
        return frame.num_rows / peers[mode].number("train 1")

    values = bench.turns({"ours": ours, "eager": lambda: theirs("eager"), "compile": lambda: theirs("compile")})
    for peer in peers.values():
        peer.close()
    for mode in filter(values.get, peers):
        bench.record(f"small.{mode}.threads{threads}", "samples/s", values["ours"],
                     f"{peers[mode].version}, {mode}", values[mode], bar=1.5)
    if not any(map(values.get, peers)):
        bench.record(f"small.threads{threads}", "samples/s", values["ours"])


def main():
    frame = read_frappe()
    with measure.Bench("small models") as bench, tempfile.TemporaryDirectory(prefix="phloem-bench-") as folder:
        if bench.is_quick:
            frame = frame[:9000]
        write_case(pathlib.Path(folder), frame)
        for threads in (1, 2):
            measure_threads(bench, pathlib.Path(folder), frame, threads)


main()
