#!/usr/bin/env python3
"""Training from Python beside the program, from frames beside prepared data, and the ingestion of a frame.

Two models train on 200,000 rows of 10 columns, 6 of ids and 4 of numbers: `dlrm`, with the default sizes, and `small`, with the
layers of configs/demo/dlrm.yaml, whose step takes little longer than reading its rows.

- `prepared`: phloem.train on prepared data beside `phloem train` of the same build with the same config. Both models must
  have the same bits. Samples/s are those of summary.json: of the time that a training trains.
- `frame`, `text_frame`: phloem.train on an Arrow table beside prepared data of the same rows. A frame is encoded anew in
  each epoch; it fits data.shuffle_bytes, so an epoch begins when all of it is encoded. In the text frame ids are texts.
- `ingest`: rows/s from a pandas frame of 1,000,000 rows to encoded rows in memory, beside LightGBM's
  Dataset(frame).construct(). Ours is the whole call of phloem.train with one step of logistic regression, which learns the
  vocabularies, encodes all rows for shuffling and writes the run's folder.
"""
import json
import pathlib
import subprocess
import tempfile
import time

import measure
import numpy
import pyarrow
import pyarrow.csv
import pyarrow.parquet

import phloem
from phloem import _program

SECONDS = 5  # of a training
CONFIG = {"threads": 2, "train": {"batch_size": 2048, "patience": 0, "schedule": "constant"}}
MODELS = {
    "dlrm": {"kind": "dlrm", "embedding_dim": 16},
    "small": {"kind": "dlrm", "embedding_dim": 16, "bottom_units": [64, 32], "top_units": [64, 32]},
}


def make_frame(rows):
    rng = numpy.random.default_rng(1)
    columns = {f"id{i}": numpy.minimum(rng.zipf(1.2, rows), 20000) for i in range(6)}
    columns.update({f"x{i}": rng.normal(size=rows) for i in range(4)})
    odds = columns["x0"] + columns["id0"] % 3 - columns["id1"] % 2
    columns["label"] = (rng.random(rows) < 1 / (1 + numpy.exp(-odds))).astype(numpy.int64)
    return pyarrow.table(columns)


def with_texts(frame):
    for i, name in enumerate(frame.column_names):
        if name.startswith("id"):
            texts = [f"{name} of {value}" for value in frame[name].to_pylist()]
            frame = frame.set_column(i, name, pyarrow.array(texts))
    return frame


class Sides:
    """The trainings that take turns, on the same rows and settings."""

    def __init__(self, folder, frame):
        self.folder, self.epochs, self.sums, self.config = folder, 1, set(), CONFIG
        self.frames = {"frame": frame, "text_frame": with_texts(frame)}
        pyarrow.csv.write_csv(frame, folder / "rows.csv")
        fields = phloem.default_fields(frame)
        self.job = folder / "job.yaml"
        self.job.write_text(json.dumps({"data": {"train": str(folder / "rows.csv")}}))
        self.program("prepare", self.job, "--out", folder / "prepared", "--set", f"data.fields={fields}")

    def choose(self, model):
        self.config, self.epochs = {**CONFIG, "model": model}, 1
        self.job.write_text(json.dumps(self.config))

    @staticmethod
    def program(*words):
        subprocess.run([_program.path(), *map(str, words)], check=True, stdout=subprocess.DEVNULL)

    def take(self, summary):
        """Returns a run's samples/s, and keeps the model's sum."""
        self.sums.add(summary["checkpoint_sha256"])
        return summary["samples_per_s"]

    def train_program(self):
        with tempfile.TemporaryDirectory(dir=self.folder) as out:
            settings = [f"data.prepared={self.folder / 'prepared'}", f"train.epochs={self.epochs}"]
            words = [word for text in settings for word in ("--set", text)]
            self.program("train", self.job, "--quiet", "--out", pathlib.Path(out) / "run", *words)
            return self.take(json.loads((pathlib.Path(out) / "run" / "summary.json").read_text()))

    def train_prepared(self):
        settings = {"data.prepared": str(self.folder / "prepared"), "train.epochs": self.epochs}
        return self.take(phloem.train(self.job, set=settings, progress=False).summary)

    def train_frame(self, name):
        run = phloem.train(self.config, self.frames[name], set={"train.epochs": self.epochs}, progress=False)
        return run.summary["samples_per_s"]


def measure_training(bench, sides, name):
    sides.choose(MODELS[name])
    speed = sides.train_program()
    sides.epochs = 1 if bench.is_quick else max(1, round(SECONDS * speed / sides.frames["frame"].num_rows))
    sides.sums.clear()
    values = bench.turns(
        {
            "program": sides.train_program,
            "prepared": sides.train_prepared,
            "frame": lambda: sides.train_frame("frame"),
            "text_frame": lambda: sides.train_frame("text_frame"),
        }
    )
    if len(sides.sums) != 1:
        raise SystemExit("bench_frames.py: the program and Python have trained different models")
    bench.record(f"{name}.prepared", "samples/s", values["prepared"], "phloem train", values["program"], bar=0.97)
    for frame in sides.frames:
        bench.record(f"{name}.{frame}", "samples/s", values[frame], "prepared data", values["prepared"], bar=0.9)


def ingest(frame):
    """Returns rows/s of a whole call."""
    settings = {"model.kind": "lr", "train.max_steps": 1, "train.report": False, "train.tensorboard": False}
    start = time.perf_counter()
    phloem.train({"threads": 2, "data": {"shuffle_bytes": 1 << 30}}, frame, set=settings, progress=False)
    return len(frame) / (time.perf_counter() - start)


def measure_ingestion(bench, folder, frame):
    pyarrow.parquet.write_table(frame, folder / "rows.parquet")
    try:
        pandas_frame = frame.to_pandas()
    except ImportError as error:
        print(f"ingest: skipped: {error}")
        return
    peer = bench.peer("lightgbm")

    def construct():
        peer.case(f"{folder / 'rows.parquet'} threads=2")
        return frame.num_rows / peer.number("construct 1")

    values = bench.turns({"ingest": lambda: ingest(pandas_frame), "lightgbm": construct})
    name = f"{peer.version}, Dataset" if "lightgbm" in values else None
    bench.record("ingest", "rows/s", values["ingest"], name, values.get("lightgbm"))


def main():
    with measure.Bench("frames") as bench, tempfile.TemporaryDirectory(prefix="phloem-bench-") as folder:
        sides = Sides(pathlib.Path(folder), make_frame(5000 if bench.is_quick else 200000))
        for name in MODELS:
            measure_training(bench, sides, name)
        measure_ingestion(bench, pathlib.Path(folder), make_frame(5000 if bench.is_quick else 1000000))


main()
