#!/usr/bin/env python3
"""Parquet through tools/parquet_to_phloem.py is the data that it holds: a model learns the same bits from it as from the
same rows written as CSV by Python's own csv module, on standard input both.

usage: parquet_check.py PHLOEM TOOL

Skips (77) where pyarrow is not importable.
"""
import csv
import datetime
import json
import pathlib
import random
import subprocess
import sys
import tempfile

try:
    import pyarrow
    import pyarrow.parquet
except ImportError as missing:
    print(f"skipped: {missing}")
    sys.exit(77)

NUM_ROWS = 5000
JOB = """data:
  train: "-"
  format: csv
  encoding: hash
  rows: 5000
  fields:
    - {name: click, kind: label}
    - {name: price, kind: dense, missing: -1}
    - {name: user, kind: id}
    - {name: city, kind: id}
    - {name: tags, kind: id, list: true}
    - {name: words, kind: id, list: true}
    - {name: hour, from: when, kind: id, part: hour}
model: {kind: lr}
train: {epochs: 1, batch_size: 100}
"""


def make_rows():
    draw = random.Random(7)
    start = datetime.datetime(2014, 10, 21)
    for i in range(NUM_ROWS):
        yield {
            "click": draw.random() < 0.3,
            "price": draw.choice([None, float("nan"), draw.randrange(4000) / 16, -draw.random()]),
            "user": draw.choice([None, draw.randrange(-5, 2**40)]),
            "city": draw.choice([None, "", 'a "quoted", one', "Zürich", f"c{i % 90}"]),
            "tags": draw.choice([None, [], [draw.randrange(50) for _ in range(draw.randrange(5))], [None, 3]]),
            "words": draw.choice([None, ["a", "b"], [f"w{i % 11}", None, "z"]]),
            "when": start + datetime.timedelta(minutes=17 * i, microseconds=i),
        }


def text_of(value):
    if value is None or value != value:
        return ""
    if isinstance(value, bool):
        return str(int(value))
    if isinstance(value, list):
        return "|".join(str(item) for item in value if item is not None)
    return value.strftime("%Y-%m-%d %H:%M:%S") if isinstance(value, datetime.datetime) else str(value)


def write_files(folder, rows):
    types = {"click": pyarrow.bool_(), "price": pyarrow.float64(), "user": pyarrow.int64(),
             "city": pyarrow.dictionary(pyarrow.int8(), pyarrow.string()),
             "tags": pyarrow.list_(pyarrow.int32()), "words": pyarrow.large_list(pyarrow.string()),
             "when": pyarrow.timestamp("us")}
    table = pyarrow.table({name: pyarrow.array([row[name] for row in rows], kind) for name, kind in types.items()})
    (folder / "parts").mkdir()
    for part in range(2):
        half = table.slice(part * NUM_ROWS // 2, NUM_ROWS // 2)
        pyarrow.parquet.write_table(half, folder / "parts" / f"{part}.parquet", row_group_size=700)
    with open(folder / "rows.csv", "w", newline="", encoding="utf-8") as file:
        writer = csv.writer(file, lineterminator="\n")
        writer.writerow(types)
        writer.writerows([[text_of(row[name]) for name in types] for row in rows])


def train(phloem, folder, name, stdin):
    """The SHA-256 of what is learnt from standard input."""
    command = [phloem, "train", folder / "job.yaml", "--out", folder / name, "--quiet"]
    subprocess.run(command, stdin=stdin, check=True, stdout=subprocess.DEVNULL)
    summary = json.loads((folder / name / "summary.json").read_text(encoding="utf-8"))
    return summary["checkpoint_sha256"]


def check_refusals(tool, folder):
    table = pyarrow.table({"a": pyarrow.array([["x|y"]])})
    pyarrow.parquet.write_table(table, folder / "bad.parquet")
    for path, part in (("bad.parquet", "column 'a': an item holds '|'"), ("rows.csv", "rows.csv: "), ("none", "none: ")):
        done = subprocess.run([sys.executable, tool, folder / path], capture_output=True, text=True, check=False)
        assert done.returncode == 3 and part in done.stderr and done.stderr.count("\n") == 1, done


def main():
    phloem, tool = sys.argv[1:3]
    with tempfile.TemporaryDirectory() as name:
        folder = pathlib.Path(name)
        write_files(folder, list(make_rows()))
        (folder / "job.yaml").write_text(JOB, encoding="utf-8")
        with open(folder / "rows.csv", "rb") as file:
            wanted = train(phloem, folder, "from_csv", file)
        with subprocess.Popen([sys.executable, tool, "--batch-rows", "999", folder / "parts"],
                              stdout=subprocess.PIPE) as process:
            actual = train(phloem, folder, "from_parquet", process.stdout)
        assert process.returncode == 0, process.returncode
        assert actual == wanted, "the models differ"
        check_refusals(tool, folder)
    print(f"{NUM_ROWS} rows of Parquet and of CSV make the same model, {wanted}")


if __name__ == "__main__":
    main()
