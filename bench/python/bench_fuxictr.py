#!/usr/bin/env python3
"""DeepFM and DCN-V2 beside FuxiCTR: samples/s of an epoch, and the AUC behind it on the same validation rows.

The rows are drawn by `phloem synth`: 39 id columns, as many as Criteo's after its counts are cut into bins. Both
sides have the same tables, layers and settings, in two sizes: dim 10 with hidden layers of 64,64,64, and dim 16 with
400,400,400; 3 cross layers, batches of 4096, Adam at .001 over all rows of the tables, gradients clipped to a norm of
10 as FuxiCTR does, embeddings from a normal distribution of .0001, Xavier's elsewhere, no regularisation. Files are
encoded before: Phloem reads prepared data, FuxiCTR .npz. Evaluation is timed on neither side. FuxiCTR runs with its
own loader and with tensors in memory; neither is always faster (bench/peers/fuxictr.py). A further row of DCN-V2, most of
whose time is products of matrices, has ours with `train.precision: bf16`, which FuxiCTR does not have.
"""
import functools
import json
import pathlib
import tempfile

import measure
import numpy
import pyarrow.csv

import phloem
from phloem import _program

FIELDS, ROWS = 39, 1000
SIZES = {"units64": {"dim": 10, "units": [64] * 3}, "units400": {"dim": 16, "units": [400] * 3}}
CASE = {"fields": FIELDS, "rows": ROWS, "cross_layers": 3, "batch": 4096, "learning_rate": 0.001}
CONFIG = {
    "train": {"batch_size": CASE["batch"], "max_gradient_norm": 10, "patience": 0, "schedule": "constant"},
    "optimizer": {"kind": "adam", "learning_rate": CASE["learning_rate"], "embedding_scope": "whole"},
}
DATA = {
    "format": "tsv",
    "fields": [{"name": "label", "kind": "label"}, {"name": "C*", "kind": "id", "encoding": "raw", "rows": ROWS}],
}
LOADERS = ("npz", "tensors")
PRECISIONS = {"deepfm": ("fp32",), "dcn_v2": ("fp32", "bf16")}


def make_data(folder, rows):
    """Writes rows for both sides."""
    sizes = {"train_rows": rows, "valid_rows": max(rows // 10, 2000), "test_rows": 0, "dense": 0, "planted_dense": 0}
    job = folder / "job.yaml"
    files = {split: str(folder / "text" / f"{split}.tsv") for split in ("train", "valid")}
    synth = {**sizes, "sparse": FIELDS, "table_rows": [ROWS], "planted": 8}
    job.write_text(json.dumps({"synth": synth, "data": {**DATA, **files}}))
    _program.run("synth", job, "--out", folder / "text")
    _program.run("prepare", job, "--out", folder / "prepared")
    for split, path in files.items():
        frame = pyarrow.csv.read_csv(path, parse_options=pyarrow.csv.ParseOptions(delimiter="\t"))
        columns = {name: frame[name].to_numpy() for name in frame.column_names}
        numpy.savez(folder / f"{split}.npz", **columns)


def measure_model(bench, folder, kind, size):
    (folder / "case.json").write_text(json.dumps({**CASE, **SIZES[size]}))
    peer, aucs = bench.peer("fuxictr"), {side: [] for side in (*PRECISIONS[kind], *LOADERS)}
    parameters = set()
    model = {"kind": kind, "embedding_dim": SIZES[size]["dim"], "hidden_units": SIZES[size]["units"]}

    def ours(precision):
        settings = {"data.prepared": str(folder / "prepared"), "train.epochs": bench.flags.epochs, "train.precision": precision}
        run = phloem.train({**CONFIG, "threads": bench.flags.threads, "model": model}, set=settings, progress=False)
        aucs[precision].append(run.metrics["valid"]["auc"])
        parameters.add(run.summary["parameters"])
        return run.summary["samples_per_s"]

    def theirs(loader):
        peer.ask(f"case {folder} model={kind} loader={loader} threads={bench.flags.threads}")
        parameters.add(int(peer.number("parameters 1")))
        seconds, epochs = 0, []
        for _ in range(bench.flags.epochs):
            seconds += peer.number("train 1")
            epochs.append(peer.number("auc 1"))
        aucs[loader].append(max(epochs))
        return bench.flags.epochs * bench.flags.rows / seconds

    values = bench.turns({**{precision: functools.partial(ours, precision) for precision in PRECISIONS[kind]},
                          **{loader: functools.partial(theirs, loader) for loader in LOADERS}})
    if len(parameters) != 1:
        raise SystemExit(f"bench_fuxictr.py: the models differ in size: {sorted(parameters)}")
    measured = [loader for loader in LOADERS if values.get(loader)]
    for precision in PRECISIONS[kind]:
        name = f"{kind}.{size}" if precision == "fp32" else f"{kind}.{size}.{precision}"
        for loader in measured:
            version = f"{peer.version}, {loader}"
            bench.record(f"{name}.{loader}", "samples/s", values[precision], version, values[loader], bar=3)
            bench.record(f"{name}.{loader}.auc", "AUC", aucs[precision], version, aucs[loader], within=0.002)
        if not measured:
            bench.record(name, "samples/s", values[precision])
            bench.record(f"{name}.auc", "AUC", aucs[precision])
    peer.close()


def main():
    rows = {"type": int, "default": 1000000, "help": "training rows"}
    epochs = {"type": int, "default": 1, "help": "epochs of a training; the AUC is that of the best"}
    threads = {"type": int, "default": 2, "help": "threads of either side"}
    with measure.Bench("fuxictr", rows=rows, epochs=epochs, threads=threads) as bench:
        with tempfile.TemporaryDirectory(prefix="phloem-bench-") as folder:
            if bench.is_quick:
                bench.flags.rows = 5000
            make_data(pathlib.Path(folder), bench.flags.rows)
            for size in SIZES:
                for kind in ("deepfm", "dcn_v2"):
                    measure_model(bench, pathlib.Path(folder), kind, size)


main()
