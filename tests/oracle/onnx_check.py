#!/usr/bin/env python3
"""Exported ONNX models against phloem predict: every model and its variants, single ids and lists, both poolings.

usage: onnx_check.py PHLOEM

Trains each model a few steps on made-up rows, exports it, lets onnxruntime score the same rows and compares with what
phloem predict writes. Ids are encoded as they are (encoding: raw) and dense values are not transformed, so that the
inputs of the ONNX model can be made here without phloem. Where the onnx package is importable, its checker looks at each
file, too. Prints the largest difference a case; ends with 1 when one is
above TOLERANCE, and with 77 where onnxruntime or NumPy is missing.
"""
import pathlib
import subprocess
import sys
import tempfile

try:
    import numpy
    import onnxruntime
except ImportError as error:
    print(f"skipped: {error}")
    sys.exit(77)
try:
    import onnx
except ImportError:
    onnx = None  # fewer checks

TOLERANCE = 1e-5  # of a probability
NUM_ROWS = 600
TABLE_ROWS = 50
MAX_LENGTH = 5
ONE, LIST, WEIGHTED = "", ", list: true", ", list: true, weighted: true"  # kinds of features, as a config says them
# Lists between single ids, so that the order of the features matters; names that the graph uses itself.
MIXED = [("user", ONE), ("order", LIST), ("single", ONE), ("tags", LIST)]
SINGLE = [("user", ONE), ("item", ONE), ("shop", ONE)]
LISTS = [("seen", LIST), ("tags", LIST)]
WEIGHTS = [("tags", LIST), ("user", ONE), ("bought", WEIGHTED)]

# name: model section, features, dense features, labels
CASES = {
    "lr": ("kind: lr", MIXED, 3, 1),
    "lr without dense features": ("kind: lr", SINGLE, 0, 1),
    "fm": ("kind: fm", MIXED, 3, 1),
    "fm of two tasks": ("kind: fm", SINGLE, 2, 2),
    "dnn": ("kind: dnn, batch_norm: true, dropout: 0.2", MIXED, 3, 1),
    "wide_deep": ("kind: wide_deep, activation: sigmoid, pooling: mean", MIXED, 3, 1),
    "deepfm": ("kind: deepfm, pooling: mean, batch_norm: true", MIXED, 3, 2),
    "deepfm of lists": ("kind: deepfm", LISTS, 1, 1),
    "deepfm of weighted ids": ("kind: deepfm", WEIGHTS, 1, 1),
    "dnn of weighted ids": ("kind: dnn, pooling: mean", WEIGHTS, 1, 1),
    "dlrm": ("kind: dlrm, bottom_units: [16], top_units: [16]", SINGLE, 3, 1),
    "dlrm of lists": ("kind: dlrm, pooling: mean, bottom_units: [16]", MIXED, 3, 1),
    "dlrm without dense features": ("kind: dlrm", MIXED, 0, 1),
    "autoint": ("kind: autoint, autoint: {layers: 2, attention_dim: 8, heads: 2, layer_norm: true}", MIXED, 3, 1),
    "dlrm side by side": ("kind: dlrm, interaction: cat", MIXED, 3, 1),
    "wukong": ("kind: wukong, wukong: {layers: 2, rank: 3}", MIXED, 3, 1),
    "xdeepfm": ("kind: xdeepfm, xdeepfm: {cin_units: [7, 5]}", MIXED, 3, 1),
    "dhen": ("kind: dhen, dhen: {modules: 'dot,attention,convolution,linear,cross'}", MIXED, 3, 1),
    "ffm": ("kind: ffm", MIXED, 0, 1),
    "finalmlp": ("kind: finalmlp", MIXED, 3, 1),
    "finalmlp of contexts": ("kind: finalmlp, finalmlp: {first_context: [tags], second_context: [user, single]}", MIXED, 3, 1),
    "dcn": ("kind: dcn", MIXED, 3, 1),
    "dcn_v2": ("kind: dcn_v2, batch_norm: true", MIXED, 3, 1),
    "dcn_v2 of low rank, stacked": ("kind: dcn_v2, dcn_v2: {rank: 3, structure: stacked}", MIXED, 3, 2),
    "finalnet": ("kind: finalnet, batch_norm: true, finalnet: {first_units: [16, 8], second_units: [12]}", MIXED, 3, 1),
    "finalnet of sums": ("kind: finalnet, finalnet: {residual: sum, second_units: [], field_gate: false}", SINGLE, 3, 2),
    "masknet": ("kind: masknet, masknet: {block_units: 16}", MIXED, 3, 1),
    "masknet, serial": ("kind: masknet, masknet: {structure: serial, embedding_norm: false}", LISTS, 3, 1),
    "wukong, attentive": ("kind: wukong, wukong: {layers: 2, rank: 3, attentive_inputs: 2}", MIXED, 3, 1),
    "dhen of sums": ("kind: dhen, dhen: {ensemble: sum, layer_norm: false, modules: 'dot,linear'}", MIXED, 3, 1),
    "dhen of weighted sums": ("kind: dhen, dhen: {ensemble: weighted, heads: 2}", MIXED, 3, 1),
    "dlrm of towers": ("kind: dlrm, towers: 'user, order | single, tags', tower_dim: 4", MIXED, 3, 1),
    "dcn of towers": ("kind: dcn, pooling: mean, towers: 'tags | user, bought', tower_module: cross", WEIGHTS, 1, 1),
    "dnn of block norm": (
        "kind: dnn, block_norm: true, bias: last, activation: hard_swish, hidden_units: [300, 24]", MIXED, 3, 1),
    "finalnet of block norm": ("kind: finalnet, block_norm: true", MIXED, 3, 1),
    "dlrm of hard swish": ("kind: dlrm, activation: hard_swish, bottom_units: [16]", MIXED, 3, 1),
    "din": ("kind: din, batch_norm: true", MIXED, 3, 1),
}


def make_rows(features, num_dense, num_tasks, rng):
    """Columns by name: labels and dense values as arrays, ids as lists of lists of (id, weight)."""
    columns = {f"label{t}": rng.integers(0, 2, NUM_ROWS) for t in range(num_tasks)}
    for i in range(num_dense):
        columns[f"d{i}"] = rng.normal(size=NUM_ROWS).astype(numpy.float32)
    for name, kind in features:
        lengths = numpy.ones(NUM_ROWS, int) if kind == ONE else rng.integers(0, MAX_LENGTH + 1, NUM_ROWS)
        weight = (lambda: rng.integers(-8, 9) / 4) if kind == WEIGHTED else (lambda: None)
        columns[name] = [[(rng.integers(0, TABLE_ROWS), weight()) for _ in range(n)] for n in lengths]
    return columns


def cell(value):
    if isinstance(value, list):
        return "^".join(str(i) if weight is None else f"{i}:{weight}" for i, weight in value)
    return repr(float(value)) if isinstance(value, numpy.floating) else str(value)


def write_rows(path, columns):
    lines = ["\t".join(columns)]
    lines += ["\t".join(cell(value) for value in row) for row in zip(*columns.values())]
    path.write_text("\n".join(lines) + "\n")


def write_config(path, model, features, num_dense, num_tasks):
    fields = [f"{{name: label{t}, kind: label}}" for t in range(num_tasks)]
    fields += [f"{{name: d{i}, kind: dense}}" for i in range(num_dense)]
    fields += [
        f"{{name: {name}, kind: id, encoding: raw, rows: {TABLE_ROWS}{kind}}}"
        for name, kind in features
    ]
    hidden = "" if "hidden_units" in model else ", hidden_units: [24, 12]"
    path.write_text(
        "seed: 3\nthreads: 1\n"
        f"data: {{train: {path.parent}/rows.tsv, format: tsv, list_separator: '^', fields: [{', '.join(fields)}]}}\n"
        f"model: {{{model}, embedding_dim: 6, embedding_init_std: 0.3{hidden}}}\n"
        "train: {epochs: 1, batch_size: 50, report_seconds: 0}\n"
        "optimizer: {kind: adam, learning_rate: 0.02}\n"
    )


def phloem(*arguments):
    done = subprocess.run([sys.argv[1], *map(str, arguments)], capture_output=True, text=True, check=False)
    if done.returncode != 0:
        sys.exit(f"phloem {' '.join(map(str, arguments))}: {done.returncode}\n{done.stderr}")
    return done.stdout


def onnx_inputs(columns, features, num_dense):
    inputs = {}
    if num_dense > 0:
        inputs["dense"] = numpy.stack([columns[f"d{i}"] for i in range(num_dense)], axis=1)
    single = [name for name, kind in features if kind == ONE]
    if single:
        inputs["ids"] = numpy.array([[ids[0][0] for ids in columns[name]] for name in single], numpy.int64).T.copy()
    for name, kind in features:
        if kind != ONE:
            inputs[f"ids.{name}"] = padded(columns[name], 0, numpy.int64)
        if kind == WEIGHTED:
            inputs[f"weights.{name}"] = padded(columns[name], 1, numpy.float32, padding=numpy.nan)  # is not looked at
    return inputs


def padded(lists, part, dtype, padding=-1):
    array = numpy.full((NUM_ROWS, MAX_LENGTH + 1), padding, dtype)
    for row, ids in enumerate(lists):
        array[row, : len(ids)] = [pair[part] for pair in ids]
    return array


def check_names(session, features, num_dense):
    metadata = session.get_modelmeta().custom_metadata_map
    single = [name for name, kind in features if kind == ONE]
    assert metadata["ids"].split("\n") == (single or [""]), metadata
    assert metadata["dense"].split("\n") == ([f"d{i}" for i in range(num_dense)] or [""]), metadata


def check_empty_lists(session, inputs):
    """A list without room for an id is an empty bag, as one of padding is."""
    lists = [name for name in inputs if "." in name]
    padded_only = {name: numpy.full_like(v, -1) if name in lists else v for name, v in inputs.items()}
    no_room = {name: v[:, :0] if name in lists else v for name, v in inputs.items()}
    assert (session.run(["logits"], padded_only)[0] == session.run(["logits"], no_room)[0]).all()


def difference(folder, case, rng):
    model, features, num_dense, num_tasks = case
    columns = make_rows(features, num_dense, num_tasks, rng)
    write_rows(folder / "rows.tsv", columns)
    write_config(folder / "job.yaml", model, features, num_dense, num_tasks)
    phloem("train", folder / "job.yaml", "--out", folder / "run", "--quiet")
    phloem("predict", folder / "run", folder / "rows.tsv", "--out", folder / "scores.npy")
    phloem("export", folder / "run", "--onnx", folder / "model.onnx")
    wanted = numpy.load(folder / "scores.npy").reshape(NUM_ROWS, num_tasks)
    if onnx is not None:
        onnx.checker.check_model(str(folder / "model.onnx"), full_check=True)
    session = onnxruntime.InferenceSession(folder / "model.onnx", providers=["CPUExecutionProvider"])
    check_names(session, features, num_dense)
    inputs = onnx_inputs(columns, features, num_dense)
    scores, logits = session.run(["probability", "logits"], inputs)
    assert scores.shape == wanted.shape, (scores.shape, wanted.shape)
    assert wanted.std() > 1e-3, "scores that are all alike show nothing"
    one = {name: values[:1] for name, values in inputs.items()}
    alone = session.run(["probability"], one)[0]
    check_empty_lists(session, inputs)
    return max(
        abs(scores - wanted).max(),
        abs(1 / (1 + numpy.exp(-logits.astype(float))) - wanted).max(),
        abs(alone - wanted[:1]).max(),
    )


def check_kinds():
    kinds = {line.split()[0] for line in phloem("models").split("\n\n")[0].splitlines()}
    covered = {case[0].removeprefix("kind: ").split(",")[0] for case in CASES.values()}
    assert kinds == covered, f"without a case: {sorted(kinds - covered)}; no such model: {sorted(covered - kinds)}"


def main():
    check_kinds()
    rng = numpy.random.default_rng(5)
    is_fine = True
    for name, case in CASES.items():
        with tempfile.TemporaryDirectory() as folder:
            largest = difference(pathlib.Path(folder), case, rng)
        print(f"{name}: max |difference| {largest:.2g}")
        is_fine &= bool(largest <= TOLERANCE)
    print(f"checked by onnx: {'no' if onnx is None else onnx.__version__}")
    print(f"onnxruntime {onnxruntime.__version__}, tolerance {TOLERANCE}: {'fine' if is_fine else 'NOT MET'}")
    return 0 if is_fine else 1


if __name__ == "__main__":
    sys.exit(main())
