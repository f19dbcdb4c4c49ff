#!/usr/bin/env python3
"""The package phloem does what its docstrings say: it trains on frames to the bits of the program on the same rows, stops and
goes on, and names what is wrong.

usage: python_api_check.py SOURCE LIBPHLOEM PHLOEM C_COMPILER

Skips (77) where NumPy or pyarrow is not importable. Frames of pandas and Polars are looked at where they are.
"""
import csv
import ctypes
import gc
import importlib.util
import os
import pathlib
import signal
import subprocess
import sys
import tempfile
import threading
import warnings

try:
    import numpy as np
    import pyarrow
    import pyarrow.parquet
except ImportError as missing:
    print(f"skipped: {missing}")
    sys.exit(77)

NUM_ROWS = 3000
FIELDS = [{"name": "click", "kind": "label"}, {"name": "city", "kind": "id"}, {"name": "price", "kind": "dense"},
          {"name": "tags", "kind": "id", "list": True}]
CONFIG = {"seed": 3, "threads": 2, "data": {"fields": FIELDS},
          "model": {"kind": "dlrm", "embedding_dim": 4, "bottom_units": [8], "top_units": [8]},
          "train": {"epochs": 2, "batch_size": 100, "report_seconds": 0}}


def make_rows(seed=1):
    rng = np.random.default_rng(seed)
    city, price = rng.integers(0, 20, NUM_ROWS), rng.normal(size=NUM_ROWS).round(3)
    click = (rng.random(NUM_ROWS) < 1 / (1 + np.exp(-price - np.sin(city)))).astype(np.int64)
    tags = [[f"t{i}" for i in rng.integers(0, 9, rng.integers(0, 4))] for _ in range(NUM_ROWS)]
    return {"click": click, "city": [f"city {i}" for i in city], "price": price, "tags": tags}


def write_csv(path, rows):
    with open(path, "w", newline="") as file:
        writer = csv.writer(file)
        writer.writerow(rows)
        for click, city, price, tags in zip(*rows.values()):
            writer.writerow([click, city, repr(float(price)), "|".join(tags)])


def raises(kind, part, function, *arguments, **named):
    try:
        function(*arguments, **named)
    except kind as problem:
        assert part in str(problem), f"'{problem}' lacks '{part}'"
        return problem
    raise AssertionError(f"{kind.__name__} was not raised")


def check_structures(library, source, compiler, folder):
    """Structures, the version of the API and statuses are laid out and numbered as the compiler has them."""
    names = {value.__doc__.split()[1].rstrip("."): value for value in vars(library).values()
             if isinstance(value, type) and issubclass(value, ctypes.Structure) and (value.__doc__ or "").startswith("struct ph_")}
    assert len(names) >= 5
    wanted = {"PH_API_VERSION": library.API_VERSION, "PH_ERROR_DATA": library.ERROR_DATA, "PH_CELL_INTEGER": library.CELL_INTEGER}
    for name, structure in names.items():
        wanted[f"sizeof(struct {name})"] = ctypes.sizeof(structure)
        for member, _ in structure._fields_:
            wanted[f"offsetof(struct {name}, {member})"] = getattr(structure, member).offset
            wanted[f"sizeof(((struct {name} *)0)->{member})"] = getattr(structure, member).size
    lines = "".join(f'printf("%lld\\n", (long long)({expression}));\n' for expression in wanted)
    (folder / "measure.c").write_text("#include <stddef.h>\n#include <stdio.h>\n#include <phloem/phloem.h>\n"
                                      f"int main(void) {{\n{lines}}}\n")
    subprocess.run([compiler, "-std=c17", f"-I{source / 'include'}", folder / "measure.c", "-o", folder / "measure"], check=True)
    printed = subprocess.run([folder / "measure"], check=True, capture_output=True, text=True).stdout.split()
    differ = [f"{expression} is {number}, not {value}" for (expression, value), number in zip(wanted.items(), printed)
              if int(number) != value]
    assert not differ and len(printed) == len(wanted), differ


def check_bits(phloem, folder, rows):
    """A frame, the program on the same rows as CSV, and a Parquet folder end in the same bits."""
    table = pyarrow.table(rows)
    run = phloem.train(CONFIG, rows, table, out=folder / "dict")
    write_csv(folder / "rows.csv", rows)
    from_path = phloem.train(CONFIG, folder / "rows.csv", folder / "rows.csv", out=folder / "path")
    (folder / "parquet").mkdir()
    for part in range(3):
        pyarrow.parquet.write_table(table.slice(part * 1000, 1000), folder / "parquet" / f"{part}.parquet", row_group_size=300)
    streamed = phloem.train(CONFIG, folder / "parquet", folder / "parquet", out=folder / "streamed")
    called = phloem.train(CONFIG, lambda: table.to_reader(max_chunksize=700), table)
    own = subprocess.run([os.environ["PHLOEM_PROGRAM"], "train", folder / "path" / "config.yaml", "--out", folder / "program",
                          "--quiet"], capture_output=True, text=True)
    assert own.returncode == 0, own.stderr
    sums = {run.summary["checkpoint_sha256"] for run in (run, from_path, streamed, called, phloem.Run(folder / "program"))}
    assert len(sums) == 1, sums
    for module in ("pandas", "polars"):
        if importlib.util.find_spec(module):
            frame = importlib.import_module(module).DataFrame(rows)
            assert phloem.train(CONFIG, frame, frame).summary["checkpoint_sha256"] in sums, module
    return run


def check_run(phloem, run, rows):
    scores = run.predict(rows)
    assert scores.dtype == np.float32 and scores.shape == (NUM_ROWS,)
    order = np.argsort(scores, kind="stable")
    ranks = np.empty(NUM_ROWS)
    ranks[order] = np.arange(1, NUM_ROWS + 1)
    for value in np.unique(scores):  # ties count half
        ranks[scores == value] = ranks[scores == value].mean()
    positive = rows["click"] == 1
    area = (ranks[positive].sum() - positive.sum() * (positive.sum() + 1) / 2) / (positive.sum() * (~positive).sum())
    metrics = run.evaluate(rows)
    assert abs(metrics["auc"] - area) < 1e-5, (metrics, area)  # that of logits, which tie less often
    of_file = phloem.Run(run.folder.parent / "path")
    assert metrics == of_file.evaluate(run.folder.parent / "rows.csv")
    assert run.metrics["valid"]["auc"] == metrics["auc"]
    assert np.array_equal(scores, of_file.predict(run.folder.parent / "rows.csv"))
    kinds = [line["event"] for line in run.history]
    assert kinds.count("train") == 60 and kinds.count("valid") == 2
    assert "<iframe" in run._repr_html_() and run.report.exists() and "auc" in repr(run)
    model = phloem.load(run.folder)
    weights = model.state_dict()
    table = weights["embedding.city"]
    vectors = model.embedding("city", ["city 3", "nowhere", None])
    assert any(np.array_equal(vectors[0], row) for row in table) and np.array_equal(vectors[1], table[0])
    assert np.array_equal(vectors[2], table[0]) and not table.flags.owndata
    raises(phloem.UsageError, "pass them as a dataset", run.evaluate, run.folder.parent / "rows.csv")
    assert np.array_equal(np.from_dlpack(table), table)


def check_stops(phloem, folder, rows):
    """What a callback raises arrives, Ctrl-C too, and a resumed training ends in the same bits."""
    whole = phloem.train(CONFIG, rows, rows)

    def at_step_20(event):
        if event["event"] == "train" and event["step"] == 20:
            raise RuntimeError("enough")

    def interrupt_at_step_40(event):
        if event["event"] == "train" and event["step"] == 40:
            signal.raise_signal(signal.SIGINT)

    raises(RuntimeError, "enough", phloem.train, CONFIG, rows, rows, out=folder / "stopped", callbacks=[at_step_20])
    raises(KeyboardInterrupt, "", phloem.train, CONFIG, rows, rows, out=folder / "stopped", resume=True,
           callbacks=[interrupt_at_step_40])
    resumed = phloem.train(CONFIG, rows, rows, out=folder / "stopped", resume=True)
    assert resumed.summary["checkpoint_sha256"] == whole.summary["checkpoint_sha256"]
    raises(phloem.UsageError, "stopped", phloem.train, CONFIG, rows, rows, out=folder / "stopped")
    raises(phloem.ConfigError, "may not change", phloem.train, CONFIG, rows, rows, out=folder / "stopped", resume=True,
           set={"optimizer.learning_rate": 0.5})


def failures(phloem, rows, model):
    """Returns (kind, part of the text, function) of bad input: of columns, of labels, of rows that are no frame, of arguments."""
    table, number = pyarrow.table(rows), len(rows["click"])
    plain = {name: rows[name] for name in ("click", "city", "price")}

    def with_column(name, values):
        return lambda: phloem.train(None, {**plain, name: values}, label="click")

    def train(given, **named):
        return lambda: phloem.train(CONFIG, given, **named)

    def fails():
        raise KeyError("no such bucket")

    found = [
        (phloem.ConfigError, "did you mean 'train.epochs'", lambda: phloem.train({"train": {"epoch": 2}}, rows)),
        (phloem.ConfigError, "train.epochs: must be an integer", train(rows, set={"train.epochs": "x"})),
        (phloem.UsageError, "set must be a dict", train(rows, set=["train.epochs=3"])),
        (phloem.UsageError, "callbacks must be functions", train(rows, callbacks=[3])),
        (phloem.UsageError, "resume=True requires out", train(rows, resume=True)),
        (phloem.ConfigError, "'tags' is not a column", train(table.drop_columns(["tags"]))),
        (phloem.ConfigError, "data.train is missing", lambda: phloem.train(CONFIG)),
        (phloem.DataError, "'clack' is not a column", lambda: phloem.train(None, rows, label="clack")),
        (phloem.DataError, "column 'city' has 2 rows, but column 'click' has 1", lambda: phloem.train(
            None, {"click": [1], "city": ["a", "b"]}, label="click")),
        (phloem.DataError, "column 'm'", with_column("m", [1, "b"] * (number // 2))),
        (phloem.DataError, "column 'm'", with_column("m", [object()] * number)),
        (phloem.DataError, "column 'm'", with_column("m", 3)),
        (phloem.DataError, "column 'm'", with_column("m", [2**70] * number)),
        (phloem.DataError, "column 'm'", with_column("m", np.ones(number, complex))),
        (phloem.DataError, "column 'm'", with_column("m", np.ones((number, 2)))),
        (phloem.DataError, "row 1: field 'm': inf", with_column("m", [1.0, np.inf] * (number // 2))),
        (phloem.DataError, "row 1: field 'click': 7", train({**rows, "click": [1, 7, *rows["click"][2:]]})),
        (phloem.DataError, "label 'click'", with_column("click", ["yes"] * number)),
        (phloem.DataError, "label 'click'", with_column("click", [[1]] * number)),
        (phloem.DataError, "row 0: field 'm': 1.5 is not an id", lambda: phloem.train(
            None, {"click": [1, 0], "m": [1.5, np.nan]}, fields=[{"name": "click", "kind": "label"}, {"name": "m", "kind": "id"}])),
        (phloem.DataError, "train: has no batches", train(table.slice(0, 0))),
        (phloem.DataError, "train: has no batches", train({name: [] for name in rows})),
        (phloem.ConfigError, "two columns are called 'city'", train(table.append_column("city", table["city"]))),
        (phloem.DataError, "valid: batch 0: the batch has no column 'city'", train(rows, valid=table.drop_columns(["city"]))),
        (phloem.UsageError, "cannot read rows from int", train(3)),
        (phloem.UsageError, "cannot read rows from ndarray", train(np.ones((3, 2)))),
        (phloem.UsageError, "cannot read rows from ChunkedArray", train(table["city"])),
        (phloem.DataError, "nowhere.parquet: cannot open", train("nowhere.parquet")),
        (phloem.DataError, "no such bucket", train(fails)),
        (phloem.DataError, "batch 0: the batch has no column 'city'", lambda: model.predict(table.drop_columns(["city"]))),
        (phloem.DataError, "batch 0, row 0: field 'price': 'x'", lambda: model.predict({**rows, "price": ["x"] * number})),
        (phloem.DataError, "column 'city' (format '+s<l>')", lambda: model.predict({**rows, "city": [{"a": 1}] * number})),
        (phloem.DataError, "the batch has no column 'click'", lambda: model.evaluate(table.drop_columns(["click"]))),
        (phloem.UsageError, "'price' has no embeddings", lambda: model.embedding("price", [1])),
        (phloem.CheckpointError, "nowhere", lambda: phloem.load("/nowhere")),
    ]
    if importlib.util.find_spec("pandas"):
        import pandas
        frame = pandas.DataFrame(plain)
        found += [(phloem.DataError, "column 'm'", train(frame.assign(m=[1, "b"] * (number // 2)))),
                  (phloem.DataError, "column 'm'", train(frame.assign(m=1j))),
                  (phloem.DataError, "Duplicate column names found: ['click', 'city', 'city']", train(
                      frame.set_axis(["click", "city", "city"], axis=1))),
                  (phloem.UsageError, "cannot read rows from Series", train(frame["city"]))]
    if importlib.util.find_spec("polars"):
        import polars
        found += [(phloem.DataError, "label 'click'", lambda: phloem.train(None, polars.DataFrame({"click": ["a"], "m": [1]}),
                                                                          label="click")),
                  (phloem.UsageError, "cannot read rows from Series", train(polars.Series([1])))]
    return found


def check_errors(phloem, rows, model):
    found = failures(phloem, rows, model)
    for kind, part, function in found:
        raises(kind, part, function)
    bucket, = (raises(kind, part, function) for kind, part, function in found if part == "no such bucket")
    assert isinstance(bucket.__cause__, KeyError)
    assert phloem.DataError.exit_code == 3 and phloem.ConfigError.exit_code == 2
    with warnings.catch_warnings(record=True) as warned:
        warnings.simplefilter("always")
        phloem.train({"model": {"kind": "lr"}}, {"click": [1, 0], "a": [1, 2], "s": [{"a": 1}, None]}, label="click")
    assert [str(one.message) for one in warned if 'column "s" is left out' in str(one.message)], warned


def resident_bytes():
    return int(pathlib.Path("/proc/self/statm").read_text().split()[1]) * os.sysconf("SC_PAGE_SIZE")


def check_leaks(phloem, rows, model):
    """A thousand failures, of each kind, leave neither memory nor Arrow's batches nor folders behind."""
    table = pyarrow.table(rows).slice(0, 50)
    tries = [function for _, _, function in failures(phloem, {name: values[:50] for name, values in rows.items()}, model)]

    def callback_fails(event):
        raise RuntimeError("enough")

    tries.append(lambda: phloem.train(CONFIG, table, callbacks=[callback_fails]))

    def fail_often(times):
        for i in range(times):
            raises(Exception, "", tries[i % len(tries)])

    fail_often(200)
    gc.collect()
    folders = set(pathlib.Path(tempfile.gettempdir()).glob("phloem-*"))
    before, arrow = resident_bytes(), pyarrow.total_allocated_bytes()
    fail_often(1000)
    gc.collect()
    grown = resident_bytes() - before
    assert grown < 8 << 20, f"{grown} bytes more after 1,000 failures"
    assert pyarrow.total_allocated_bytes() <= arrow
    assert set(pathlib.Path(tempfile.gettempdir()).glob("phloem-*")) <= folders
    assert not phloem._train._running


def check_processes(phloem, folder, rows):
    """Two trainings at once, a training in a forked child, an interpreter that ends while one runs."""
    wanted, found = phloem.train(CONFIG, rows, rows).summary["checkpoint_sha256"], [None, None]

    def train(i):
        found[i] = phloem.train(CONFIG, rows, rows).summary["checkpoint_sha256"]

    threads = [threading.Thread(target=train, args=(i,)) for i in range(2)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert found == [wanted, wanted]
    child = os.fork()
    if child == 0:
        train(0)
        os._exit(0 if found[0] == wanted else 1)
    assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 0
    script = """
import sys, threading, time, phloem
config = {"data": {"train": sys.argv[1], "valid": sys.argv[1], "fields": eval(sys.argv[3])}, "model": {"kind": "fm"},
          "train": {"epochs": 1000000, "patience": 0, "report_seconds": 0}}
begun = threading.Event()
threading.Thread(target=lambda: phloem.train(config, out=sys.argv[2], callbacks=[lambda event: begun.set()]), daemon=True).start()
begun.wait()
"""
    ended = subprocess.run([sys.executable, "-c", script, folder / "rows.csv", folder / "ended", repr(FIELDS)], timeout=120)
    assert ended.returncode == 0
    assert list((folder / "ended" / "checkpoints").iterdir()), "nothing was saved when the interpreter ended"


def check_schema(phloem):
    keys = {f"{section['section']}.{key['key']}".lstrip("."): key for section in phloem.schema() for key in section["keys"]}
    assert keys["train.epochs"]["default"] == "1" and keys["seed"]["type"] == "integer"
    assert "{name: \"click\", kind: label}" in phloem.default_fields(make_rows(), "click")


def main():
    source, library, program = (pathlib.Path(argument).resolve() for argument in sys.argv[1:4])
    bindings = source / "bindings" / "python"
    os.environ.update(PYTHONPATH=str(bindings), PYTHONDONTWRITEBYTECODE="1", PHLOEM_LIBRARY=str(library),
                      PHLOEM_PROGRAM=str(program))
    sys.dont_write_bytecode = True
    sys.path.insert(0, str(bindings))
    import phloem
    import phloem._library
    rows = make_rows()
    with tempfile.TemporaryDirectory() as folder:
        folder = pathlib.Path(folder)
        tempfile.tempdir = str(folder)
        check_structures(phloem._library, source, sys.argv[4], folder)
        run = check_bits(phloem, folder, rows)
        check_run(phloem, run, rows)
        check_stops(phloem, folder, rows)
        check_errors(phloem, rows, run.model)
        check_processes(phloem, folder, rows)
        check_leaks(phloem, rows, run.model)
        check_schema(phloem)
    print("frames, files and the program end in the same bits; stops, errors and forks are as the docstrings say")


if __name__ == "__main__":
    main()
