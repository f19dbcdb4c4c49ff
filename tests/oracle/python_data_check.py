#!/usr/bin/env python3
"""Rows of every kind that phloem.train takes end in the bits of the same rows as CSV, read by the program.

usage: python_data_check.py SOURCE LIBPHLOEM PHLOEM

Skips (77) where NumPy or pyarrow is not importable; kinds of a package that is not importable are left out, and named.
"""
import importlib
import os
import pathlib
import subprocess
import sys
import tempfile

try:
    import numpy as np
    import pyarrow as pa
    import pyarrow.parquet
except ImportError as missing:
    print(f"skipped: {missing}")
    sys.exit(77)

NUM_ROWS = 900
FIELDS = [{"name": "click", "kind": "label"}, {"name": "city", "kind": "id"}, {"name": "user", "kind": "id"},
          {"name": "fresh", "kind": "id"}, {"name": "price", "kind": "dense"},
          {"name": "tags", "kind": "id", "list": True}, {"name": "seen", "kind": "id", "list": True, "weighted": True}]
CONFIG = {"data": {"fields": FIELDS}, "model": {"kind": "deepfm", "embedding_dim": 4, "hidden_units": [8]},
          "train": {"epochs": 2, "batch_size": 100, "report": False, "tensorboard": False}}


def make_rows():
    """Returns columns with gaps, as lists of Python, and two matrices that say the same as the lists."""
    rng = np.random.default_rng(7)
    gap = rng.random((3, NUM_ROWS)) < 0.1
    rows = {"click": rng.integers(0, 2, NUM_ROWS).tolist(),
            "city": [None if gap[0, i] else f"city {k}" for i, k in enumerate(rng.integers(0, 12, NUM_ROWS))],
            "user": [None if gap[1, i] else int(k) for i, k in enumerate(rng.integers(0, 40, NUM_ROWS))],
            "fresh": [bool(k) for k in rng.integers(0, 2, NUM_ROWS)],
            "price": [None if gap[2, i] else float(np.float32(x)) for i, x in enumerate(rng.normal(size=NUM_ROWS))]}
    tags = [sorted(rng.choice(15, rng.integers(0, 4), False).tolist()) for _ in range(NUM_ROWS)]
    rows["tags"] = tags
    rows["seen"] = [[f"{k}:{rng.integers(1, 9) / 4}" for k in sorted(rng.choice(9, rng.integers(0, 3), False))]
                    for _ in range(NUM_ROWS)]
    return rows


def csv_cell(value):
    if isinstance(value, list):
        return "|".join(map(str, value))
    if isinstance(value, bool):
        return str(int(value))
    return "" if value is None else str(value)


def write_csv(path, rows):
    lines = [",".join(rows), *(",".join(map(csv_cell, row)) for row in zip(*rows.values()))]
    path.write_text("\n".join(lines) + "\n")


def matrices(rows):
    """Returns the rows with SciPy's CSR matrices in the place of lists."""
    import scipy.sparse
    tags, seen = scipy.sparse.lil_matrix((NUM_ROWS, 15)), scipy.sparse.lil_matrix((NUM_ROWS, 9))
    for row, (plain, weighted) in enumerate(zip(rows["tags"], rows["seen"])):
        tags[row, plain] = 1
        for item in weighted:
            k, weight = item.split(":")
            seen[row, int(k)] = float(weight)
    return {**rows, "tags": tags.tocsr(), "seen": scipy.sparse.csr_array(seen)}


def kinds(rows, folder):
    """Yields (what, rows)."""
    table = pa.table(rows)
    yield "a dict of lists", rows
    yield "pyarrow", table
    other = {"click": pa.int8(), "city": pa.large_string(), "user": pa.uint32(), "fresh": pa.bool_(), "price": pa.float32(),
             "tags": pa.large_list(pa.int16()), "seen": pa.large_list(pa.large_string())}
    yield "large types, small integers", table.cast(pa.schema(other))
    yield "dictionaries", table.set_column(1, "city", table["city"].dictionary_encode())
    if hasattr(pa, "string_view"):
        yield "string views", table.set_column(1, "city", table["city"].cast(pa.string_view()))
    yield "chunks", pa.concat_tables([table.slice(0, 250), table.slice(250, 1), table.slice(251)])
    yield "a reader", table.to_reader(max_chunksize=77)
    yield "a function", lambda: table.to_reader(max_chunksize=77)
    pyarrow.parquet.write_table(table, folder / "rows.parquet", row_group_size=200, use_dictionary=["city"])
    yield "Parquet", folder / "rows.parquet"
    for module, make in (("pandas", pandas_kinds), ("polars", polars_kinds), ("duckdb", duckdb_kinds), ("scipy", scipy_kinds)):
        if importlib.util.find_spec(module):
            yield from make(importlib.import_module(module), rows, folder)
        else:
            print(f"no {module}: its rows were not looked at")


def pandas_kinds(pandas, rows, _folder):
    frame = pandas.DataFrame(rows)  # integers with gaps become floats
    yield "pandas", frame
    yield "pandas' categories and nullable types", frame.astype({
        "city": "category", "user": "Int64", "fresh": "boolean", "price": "Float64", "click": "UInt8"})
    yield "pandas' types of pyarrow", frame.astype({"city": "string[pyarrow]", "user": "int64[pyarrow]",
                                                    "price": "double[pyarrow]"})
    yield "pandas with an index", frame.set_index(np.arange(NUM_ROWS)[::-1])


def polars_kinds(polars, rows, _folder):
    frame = polars.DataFrame(rows)
    yield "Polars", frame
    yield "Polars' categories", frame.with_columns(polars.col("city").cast(polars.Categorical),
                                                   polars.col("price").cast(polars.Float32))
    yield "a LazyFrame", frame.lazy().with_columns(polars.col("user") + 0)


def duckdb_kinds(duckdb, _rows, folder):
    connection = duckdb.connect()
    query = f"select * from read_parquet('{folder}/rows.parquet')"
    yield "a relation of DuckDB", connection.sql(query)
    yield "a function of DuckDB", lambda: connection.sql(query)


def scipy_kinds(_scipy, rows, _folder):
    yield "SciPy's CSR in a dict", matrices(rows)
    yield "arrays of NumPy", {**matrices(rows), "click": np.array(rows["click"], np.int8), "fresh": np.array(rows["fresh"]),
                              "user": np.array([np.nan if k is None else k for k in rows["user"]]),
                              "price": np.array([np.nan if x is None else x for x in rows["price"]], np.float32)}


def main():
    source, library, program = (pathlib.Path(argument).resolve() for argument in sys.argv[1:])
    os.environ.update(PHLOEM_LIBRARY=str(library), PHLOEM_PROGRAM=str(program))
    sys.dont_write_bytecode = True
    sys.path.insert(0, str(source / "bindings" / "python"))
    import phloem
    rows, names = make_rows(), []
    with tempfile.TemporaryDirectory() as folder:
        folder = pathlib.Path(folder)
        write_csv(folder / "rows.csv", rows)
        of_csv = phloem.train(CONFIG, folder / "rows.csv", out=folder / "csv")
        subprocess.run([program, "train", folder / "csv" / "config.yaml", "--out", folder / "program", "--quiet"],
                       check=True, capture_output=True)
        wanted = phloem.Run(folder / "program").summary["checkpoint_sha256"]
        assert of_csv.summary["checkpoint_sha256"] == wanted
        for what, given in kinds(rows, folder):
            run = phloem.train(CONFIG, given)
            assert run.summary["checkpoint_sha256"] == wanted, what
            if what != "a reader":  # which the training has read
                assert np.array_equal(run.predict(given), of_csv.predict(folder / "rows.csv")), what
            names.append(what)
        if "SciPy's CSR in a dict" in names:
            assert phloem.default_fields(matrices(rows), "click").count("weighted: true") == 1
            assert phloem.default_fields(matrices(rows)["seen"], []).strip().splitlines()[1:-1] == [
                '  {name: "ids", kind: id, list: true, weighted: true},']
        check_dlpack(phloem, of_csv)
    print(f"the bits of the program on CSV come from {', '.join(names)}")


def check_dlpack(phloem, run):
    weights = phloem.load(run.folder).state_dict()
    for name, array in weights.items():
        assert np.shares_memory(np.from_dlpack(array), array), name
    if importlib.util.find_spec("torch"):
        import torch
        tensors = {name: torch.from_dlpack(array) for name, array in weights.items()}
        for name, array in weights.items():
            assert tensors[name].data_ptr() == array.ctypes.data and np.array_equal(tensors[name].numpy(), array), name
        next(iter(tensors.values())).zero_()  # changes this view alone
        assert not next(iter(weights.values())).any() and next(iter(phloem.load(run.folder).state_dict().values())).any()


if __name__ == "__main__":
    main()
