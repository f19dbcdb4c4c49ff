#!/usr/bin/env python3
"""Batches of pyarrow, handed over by the Arrow C data interface, are the rows that they hold: libphloem makes the same
batches of them as of the same rows written as CSV by Python's own csv module.

usage: arrow_check.py PHLOEM LIBPHLOEM

Skips (77) where pyarrow is not importable.
"""
import csv
import ctypes
import datetime
import decimal
import gc
import pathlib
import random
import subprocess
import sys
import tempfile

try:
    import pyarrow
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


def main():
    phloem, library = sys.argv[1], Library(sys.argv[2])
    rows = list(make_rows())
    with tempfile.TemporaryDirectory() as name:
        folder = pathlib.Path(name)
        write_csv(folder / "rows.csv", rows)
        (folder / "job.yaml").write_text(JOB, encoding="utf-8")
        subprocess.run([pathlib.Path(phloem).resolve(), "prepare", "job.yaml", "--out", "prepared"], cwd=folder,
                       check=True, stdout=subprocess.DEVNULL)
        before = pyarrow.total_allocated_bytes()
        table = pyarrow.table({name: pyarrow.array([row[name] for row in rows], kind) for name, kind in TYPES.items()})
        encoder = library.make("ph_encoder_load", str(folder / "prepared" / "encoder.json").encode())
        dataset = library.make("ph_dataset_create")
        for batch in table.slice(0, 2000).to_batches(max_chunksize=700) + table.slice(2000).to_batches():
            hand_over(library, dataset, batch)
        del table, batch
        assert library.functions.ph_dataset_num_rows(dataset) == NUM_ROWS
        for is_shuffled in (False, True):
            options = Options(size=ctypes.sizeof(Options), batch_size=BATCH_SIZE, is_shuffled=is_shuffled, seed=5,
                              epoch=1)
            wanted = library.contents(library.make(
                "ph_batches_open", encoder, str(folder / "rows.csv").encode(), ctypes.byref(options)))
            actual = library.contents(library.make("ph_dataset_batches_open", dataset, encoder, ctypes.byref(options)))
            assert sum(batch[0] for batch in wanted) == NUM_ROWS
            assert actual == wanted, "batches differ"
        library.destroy("ph_dataset_destroy", dataset)
        library.destroy("ph_encoder_destroy", encoder)
        gc.collect()
        assert pyarrow.total_allocated_bytes() == before, "the dataset has not released its batches"
    print(f"{NUM_ROWS} rows of pyarrow {pyarrow.__version__} and of CSV make the same batches")


if __name__ == "__main__":
    main()
