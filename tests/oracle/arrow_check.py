#!/usr/bin/env python3
"""Batches of pyarrow, handed over by the Arrow C data interface or in streams out of a Parquet file, are the rows that
they hold: libphloem makes the same batches of them as of the same rows written as CSV by Python's own csv module. A
session scores and measures them as phloem predict and phloem eval do the CSV, and gives the embeddings that the
checkpoint has.

usage: arrow_check.py PHLOEM LIBPHLOEM

Skips (77) where pyarrow is not importable.
"""
import csv
import ctypes
import datetime
import decimal
import gc
import json
import pathlib
import random
import struct
import subprocess
import sys
import tempfile

try:
    import pyarrow
    import pyarrow.parquet
    from pyarrow.cffi import ffi
except ImportError as missing:
    print(f"skipped: {missing}")
    sys.exit(77)

NUM_ROWS = 3000
EPOCH = datetime.datetime(1970, 1, 1)
BATCH_SIZE = 128
JOB = """data:
  train: rows.csv
  format: csv
  fields:
    - {name: click, kind: label}
    - {name: price, kind: dense, transform: standardise, missing_indicator: true}
    - {name: weight, kind: weight}
    - {name: user, kind: id, group: true}
    - {name: tags, kind: id, list: true}
    - {name: words, kind: id, list: true}
    - {name: cost, kind: dense, transform: log1p}
    - {name: weekday, from: when, kind: id, part: weekday}
    - {name: hour, from: when, kind: id, part: hour}
    - {name: weekend, from: day, kind: id, part: weekend}
    - {name: "*", kind: id}
model: {kind: lr}
train: {epochs: 1, batch_size: 100}
"""


class Options(ctypes.Structure):
    """The first members of struct ph_batches_options, which is longer; the library takes the others as zero."""

    _fields_ = [("size", ctypes.c_size_t), ("batch_size", ctypes.c_size_t), ("is_shuffled", ctypes.c_bool),
                ("shuffle_bytes", ctypes.c_size_t), ("shuffle_lanes", ctypes.c_size_t),
                ("num_prefetched", ctypes.c_size_t), ("max_bad_rows", ctypes.c_uint64),
                ("negative_rate", ctypes.c_double), ("seed", ctypes.c_uint64), ("epoch", ctypes.c_uint64)]


class Batch(ctypes.Structure):
    """struct ph_batch."""

    _fields_ = [(name, ctypes.c_size_t) for name in ("num_samples", "num_dense", "num_sparse", "num_tasks", "num_ids")]
    _fields_ += [("first_sample", ctypes.c_uint64)]
    _fields_ += [(name, ctypes.c_void_p) for name in ("dense", "labels", "label_mask", "weights", "lengths", "offsets",
                                                      "ids", "id_weights", "groups")]

    def bytes_of(self, name, count, size):
        address = getattr(self, name)
        return None if address is None else ctypes.string_at(address, count * size)

    def content(self):
        samples, bags = self.num_samples, self.num_samples * self.num_sparse
        return (samples, self.first_sample, self.bytes_of("dense", samples * self.num_dense, 4),
                self.bytes_of("labels", samples * self.num_tasks, 4), self.bytes_of("weights", samples, 4),
                self.bytes_of("lengths", bags, 4), self.bytes_of("ids", self.num_ids, 8),
                self.bytes_of("groups", samples, 8))


class Opener(ctypes.Structure):
    """struct ph_stream_opener."""

    OPEN = ctypes.CFUNCTYPE(ctypes.c_int, ctypes.c_void_p, ctypes.c_void_p)
    _fields_ = [("size", ctypes.c_size_t), ("open", OPEN), ("context", ctypes.c_void_p), ("name", ctypes.c_char_p)]


class Cell(ctypes.Structure):
    """struct ph_cell."""

    _fields_ = [("kind", ctypes.c_int), ("text", ctypes.c_char_p), ("length", ctypes.c_size_t),
                ("integer", ctypes.c_int64), ("real", ctypes.c_double), ("integers", ctypes.c_void_p),
                ("weights", ctypes.c_void_p), ("count", ctypes.c_size_t)]


class Metrics(ctypes.Structure):
    """struct ph_metrics."""

    _fields_ = [("num_samples", ctypes.c_uint64)] + [(name, ctypes.c_double) for name in (
        "auc", "auc_error", "logloss", "ne", "calibration", "grouped_auc", "base_rate")]


TYPES = {
    "click": pyarrow.bool_(), "price": pyarrow.float64(), "weight": pyarrow.float32(), "user": pyarrow.uint64(),
    "tags": pyarrow.list_(pyarrow.int16()), "words": pyarrow.large_list(pyarrow.string()), "view": pyarrow.string_view(),
    "large": pyarrow.large_string(), "city": pyarrow.dictionary(pyarrow.int16(), pyarrow.string()),
    "nothing": pyarrow.null(), "pair": pyarrow.int8(), "day": pyarrow.date32(), "when": pyarrow.timestamp("us"),
    "zoned": pyarrow.timestamp("s", "Asia/Tokyo"), "cost": pyarrow.decimal128(12, 3),
}


def make_rows():
    draw = random.Random(11)
    for i in range(NUM_ROWS):
        yield {
            "click": draw.random() < 0.3,
            "price": draw.choice([None, draw.randrange(4000) / 16, -draw.randrange(99) / 4]),
            "weight": draw.randrange(1, 9) / 4,
            "user": draw.choice([None, draw.randrange(60), 2**64 - 1 - i % 5]),
            "tags": draw.choice([None, [], [draw.randrange(50) for _ in range(draw.randrange(5))], [None, 3]]),
            "words": draw.choice([None, ["a", "b"], [f"w{i % 11}", None, "z"]]),
            "view": draw.choice([None, "", "short", f"a text of more than twelve bytes {i % 40}"]),
            "large": draw.choice([None, "Zürich", f"l{i % 70}"]),
            "city": draw.choice([None, "", f"c{i % 90}"]),
            "nothing": None,
            "pair": draw.randrange(-3, 4),
            "day": draw.choice([None, EPOCH.date() + datetime.timedelta(draw.randrange(-9000, 30000))]),
            "when": EPOCH + datetime.timedelta(hours=draw.randrange(-90000, 500000),
                                               microseconds=draw.choice([0, 0, 1, 250000])),
            "cost": draw.choice([None, decimal.Decimal(draw.randrange(-5000, 90000)).scaleb(-3)]),
            "zoned": EPOCH + datetime.timedelta(seconds=draw.randrange(60)),
        }


def text_of(value):
    if value is None:
        return ""
    if isinstance(value, bool):
        return str(int(value))
    return "|".join(str(item) for item in value if item is not None) if isinstance(value, list) else str(value)


def write_csv(path, rows):
    with open(path, "w", newline="", encoding="utf-8") as file:
        writer = csv.writer(file, lineterminator="\n")
        writer.writerow(TYPES)
        writer.writerows([[text_of(row[name]) for name in TYPES] for row in rows])


class Library:
    """The functions of libphloem that are called here."""

    def __init__(self, path):
        self.functions = ctypes.CDLL(path)
        self.functions.ph_error_text.restype = ctypes.c_char_p
        self.functions.ph_dataset_num_rows.restype = ctypes.c_uint64

    def call(self, name, *arguments):
        status = getattr(self.functions, name)(*arguments)
        assert status == 0, self.functions.ph_error_text().decode()

    def make(self, name, *arguments):
        made = ctypes.c_void_p()
        self.call(name, *arguments, ctypes.byref(made))
        return made

    def destroy(self, name, handle):
        getattr(self.functions, name).restype = None
        getattr(self.functions, name)(handle)

    def contents(self, batches):
        """All batches, as bytes; closes them."""
        found = []
        while True:
            batch = ctypes.POINTER(Batch)()
            self.call("ph_batches_next", batches, ctypes.byref(batch))
            if not batch:
                break
            found.append(batch.contents.content())
        self.destroy("ph_batches_close", batches)
        return found


def hand_over(library, dataset, batch):
    array, schema = ffi.new("struct ArrowArray*"), ffi.new("struct ArrowSchema*")
    addresses = [int(ffi.cast("uintptr_t", pointer)) for pointer in (array, schema)]
    batch._export_to_c(*addresses)
    library.call("ph_dataset_append_arrow", dataset, *(ctypes.c_void_p(address) for address in addresses))
    assert array.release == ffi.NULL and schema.release == ffi.NULL


def hand_over_streams(library, path):
    """A dataset of the Parquet file, and its opener, which must stay; each pass reads the file anew."""
    def open_stream(_, stream):
        file = pyarrow.parquet.ParquetFile(path, read_dictionary=["city"])
        schema = file.schema_arrow
        batches = (pyarrow.record_batch(batch.columns, schema=schema) for batch in file.iter_batches(batch_size=433))
        pyarrow.RecordBatchReader.from_batches(schema, batches)._export_to_c(stream)
        return 0

    opener = Opener(ctypes.sizeof(Opener), Opener.OPEN(open_stream), None, str(path).encode())
    return library.make("ph_dataset_create_from_streams", ctypes.byref(opener)), opener


def same_figures(metrics, wanted):
    return all(getattr(metrics, name) == wanted[name] for name in ("auc", "logloss", "ne", "calibration"))


def stored_rows(path, name):
    """A table of the checkpoint as (rows, floats)."""
    content = path.read_bytes()
    size = struct.unpack("<Q", content[:8])[0]
    entry = json.loads(content[8:8 + size])[name]
    first, last = entry["data_offsets"]
    numbers = struct.unpack(f"<{(last - first) // 4}f", content[8 + size + first:8 + size + last])
    dim = entry["shape"][1]
    return [numbers[at:at + dim] for at in range(0, len(numbers), dim)]


def check_session(library, run, folder, dataset, table):
    """The session of a trained model against what the program says of the CSV."""
    functions = library.functions
    functions.ph_session_embedding_dim.restype = ctypes.c_size_t
    run("train", "job.yaml", "--out", "run", "--quiet", "--set", "model.kind=deepfm")
    run("predict", "run", "rows.csv", "--out", "scores.csv")
    wanted = [float(line) for line in (folder / "scores.csv").read_text().split()[1:]]
    session = ctypes.c_void_p()
    library.call("ph_session_open", str(folder / "run").encode(), None, ctypes.byref(session))
    scores = []
    for batch in table.to_batches(max_chunksize=1000):
        array, schema = ffi.new("struct ArrowArray*"), ffi.new("struct ArrowSchema*")
        addresses = [int(ffi.cast("uintptr_t", pointer)) for pointer in (array, schema)]
        batch._export_to_c(*addresses)
        probabilities = (ctypes.c_float * batch.num_rows)()
        library.call("ph_session_score_arrow", session, *(ctypes.c_void_p(address) for address in addresses),
                     probabilities)
        scores += probabilities
        pyarrow.RecordBatch._import_from_c(*addresses)  # releases the batch, which stayed ours
    assert [struct.pack("f", score) for score in scores] == [struct.pack("f", score) for score in wanted]
    metrics, evaluated = Metrics(), json.loads(run("eval", "run", "rows.csv"))
    library.call("ph_session_evaluate_dataset", session, dataset, ctypes.byref(metrics))
    assert metrics.num_samples == NUM_ROWS and same_figures(metrics, evaluated), "a stream's figures differ"
    library.call("ph_session_evaluate", session, str(folder / "rows.csv").encode(), ctypes.byref(metrics))
    assert same_figures(metrics, evaluated), "a file's figures differ"
    vocabulary = list(dict.fromkeys(text for text in table["large"].to_pylist() if text))
    rows = stored_rows(folder / "run" / "model.safetensors", "embedding.large")
    assert len(rows) == len(vocabulary) + 1
    dim = functions.ph_session_embedding_dim(session, b"large")
    texts = [text.encode() for text in ["no such id", *vocabulary]]
    cells = (Cell * len(texts))(*(Cell(kind=1, text=text, length=len(text)) for text in texts))
    vectors = (ctypes.c_float * (dim * len(texts)))()
    library.call("ph_session_embed", session, b"large", ctypes.c_size_t(len(texts)), cells, vectors)
    assert [tuple(vectors[at:at + dim]) for at in range(0, len(vectors), dim)] == rows, "embeddings differ"
    library.destroy("ph_session_close", session)


def main():
    phloem, library = sys.argv[1], Library(sys.argv[2])
    rows = list(make_rows())
    with tempfile.TemporaryDirectory() as name:
        folder = pathlib.Path(name)
        write_csv(folder / "rows.csv", rows)
        (folder / "job.yaml").write_text(JOB, encoding="utf-8")

        def run(*arguments):
            return subprocess.run([pathlib.Path(phloem).resolve(), *arguments], cwd=folder, check=True,
                                  stdout=subprocess.PIPE, encoding="utf-8").stdout

        run("prepare", "job.yaml", "--out", "prepared")
        before = pyarrow.total_allocated_bytes()
        table = pyarrow.table({name: pyarrow.array([row[name] for row in rows], kind) for name, kind in TYPES.items()})
        encoder = library.make("ph_encoder_load", str(folder / "prepared" / "encoder.json").encode())
        dataset = library.make("ph_dataset_create")
        for batch in table.slice(0, 2000).to_batches(max_chunksize=700) + table.slice(2000).to_batches():
            hand_over(library, dataset, batch)
        del batch
        pyarrow.parquet.write_table(table, folder / "rows.parquet", row_group_size=1234)
        streamed, opener = hand_over_streams(library, folder / "rows.parquet")
        assert library.functions.ph_dataset_num_rows(dataset) == NUM_ROWS
        for is_shuffled in (False, True):
            options = Options(size=ctypes.sizeof(Options), batch_size=BATCH_SIZE, is_shuffled=is_shuffled, seed=5,
                              epoch=1)
            wanted = library.contents(library.make(
                "ph_batches_open", encoder, str(folder / "rows.csv").encode(), ctypes.byref(options)))
            assert sum(batch[0] for batch in wanted) == NUM_ROWS
            for rows_of, prefetched in ((dataset, 0), (streamed, 0), (streamed, 3)):
                options.num_prefetched = prefetched
                actual = library.contents(
                    library.make("ph_dataset_batches_open", rows_of, encoder, ctypes.byref(options)))
                assert actual == wanted, "batches differ"
        check_session(library, run, folder, streamed, table)
        del table
        library.destroy("ph_dataset_destroy", streamed)
        library.destroy("ph_dataset_destroy", dataset)
        library.destroy("ph_encoder_destroy", encoder)
        gc.collect()
        assert pyarrow.total_allocated_bytes() == before, "the dataset has not released its batches"
    print(f"{NUM_ROWS} rows of pyarrow {pyarrow.__version__} and of CSV make the same batches, scores and figures")


if __name__ == "__main__":
    main()
