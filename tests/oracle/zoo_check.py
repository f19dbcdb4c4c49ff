#!/usr/bin/env python3
"""Every model of the zoo against its published equations, which zoo_models.py works out in NumPy.

usage: zoo_check.py PHLOEM

Each case trains a model a few steps on made-up rows, reads model.safetensors, encodes the ids itself (encoding: raw)
and compares its logits with the probabilities of phloem predict. Every learnt tensor has to be read on the way. Prints
the largest difference a case; ends with 1 when one is above TOLERANCE, and with 77 where NumPy is missing. A kind of
model without a forward in zoo_models.py is named and passed over; a forward whose kind is gone is an error.

FinalNet also learns beside its labels: one step of gradient descent has to move its output biases as worked out.
"""
import json
import pathlib
import struct
import subprocess
import sys
import tempfile

sys.dont_write_bytecode = True  # beside the sources
try:
    import numpy
    import zoo_models
except ImportError as error:
    print(f"skipped: {error}")
    sys.exit(77)

TOLERANCE = 1e-5  # of a logit, or of the largest one where that is above 1
LONG_STEP = 0.5  # of gradient descent
NUM_ROWS, NUM_DENSE, MAX_LENGTH = 400, 3, 5
# Features in the order that a file has them: rows of the table, how ids are written, whose rows an id may share.
COLUMNS = {
    "user": (30, "one", None),
    "seen": (20, "list", "item"),
    "item": (20, "one", None),
    "tags": (15, "weighted", None),
    "shop": (10, "one", None),
    "shops": (10, "list", "shop"),
}
SINGLE, LISTS = ["user", "item", "shop"], ["user", "seen", "tags", "shop"]
HISTORY, HISTORIES = ["user", "seen", "item", "tags"], ["user", "seen", "item", "shop", "shops"]

# The keys of "model" and, by kind, of "model.<kind>" that a case does not say.
COMMON = dict(embedding_dim=6, embedding_init_std=0.3, hidden_units=[24, 12], bottom_units=[], top_units=[],
    batch_norm=False, block_norm=False, bias="all", dropout=0, activation="relu", pooling="sum", interaction="dot")
OWN = {
    "dcn": dict(layers=3),
    "dcn_v2": dict(layers=2, rank=0, structure="parallel"),
    "finalnet": dict(first_units=[16, 8], second_units=[12, 6], field_gate=True, residual="concat"),
    "wukong": dict(layers=2, fm_outputs=3, compressed_outputs=2, rank=2, attentive_inputs=0, fm_units=[14],
        layer_norm=True),
    "xdeepfm": dict(cin_units=[7, 5]),
    "autoint": dict(layers=2, attention_dim=8, heads=2, scale=True, residual=True, layer_norm=True, linear_part=False),
    "masknet": dict(structure="parallel", blocks=2, block_units=9, reduction=1.5, embedding_norm=True),
    "finalmlp": dict(first_units=[16, 12], second_units=[8], heads=2, first_context="", second_context="",
        gate_units=[10]),
    "dhen": dict(layers=2, modules="dot,attention,convolution,linear,cross", ensemble="concat", outputs=3, heads=2,
        channels=2, kernel=3, layer_norm=True),
    "din": dict(targets="", histories="", attention_units=[10, 4]),
}


def case(kind, features=SINGLE, num_dense=NUM_DENSE, num_tasks=1, shares=False, **keys):
    """keys: those of "model" and of "model.<kind>" that differ from the above."""
    name = ", ".join([f"{kind} of {' '.join(features)}", f"{num_dense} dense", f"{num_tasks} tasks"]
        + ["shared rows"] * shares + [f"{key} {value}" for key, value in keys.items()])
    model = COMMON | {key: value for key, value in keys.items() if key in COMMON}
    own = OWN.get(kind, {}) | {key: value for key, value in keys.items() if key not in COMMON}
    return dict(name=name, kind=kind, features=features, num_dense=num_dense, num_tasks=num_tasks, shares=shares,
        model=model, own=own)


CASES = [
    case("lr", LISTS), case("lr", num_dense=0), case("lr", LISTS, num_tasks=2, pooling="mean"),
    case("fm", LISTS), case("fm", num_dense=0), case("fm", num_tasks=2), case("fm", HISTORY, shares=True),
    case("dnn", LISTS, dropout=0.2), case("dnn", batch_norm=True, num_tasks=2), case("dnn", activation="sigmoid"),
    case("dnn", HISTORIES, shares=True, pooling="mean", batch_norm=True, activation="identity"),
    case("wide_deep", LISTS, pooling="mean"), case("wide_deep", batch_norm=True, num_tasks=2),
    case("deepfm", LISTS), case("deepfm", batch_norm=True, num_tasks=2),
    case("dlrm", bottom_units=[9], top_units=[11]), case("dlrm", LISTS, bottom_units=[9], batch_norm=True),
    case("dlrm", num_dense=0), case("dlrm", LISTS, interaction="cat", bottom_units=[9, 7], num_tasks=2),
    case("dlrm", interaction="cat", num_dense=0, batch_norm=True),
    case("dcn", LISTS), case("dcn", batch_norm=True, layers=1, num_tasks=2), case("dcn", hidden_units=[]),
    case("dcn_v2", LISTS), case("dcn_v2", rank=3, batch_norm=True), case("dcn_v2", structure="stacked", num_tasks=2),
    case("dcn_v2", rank=4, structure="stacked", bottom_units=[9], batch_norm=True),
    case("dcn_v2", LISTS, bottom_units=[9]), case("dcn_v2", hidden_units=[], rank=2),
    case("finalnet", LISTS), case("finalnet", batch_norm=True, activation="identity", num_tasks=2),
    case("finalnet", second_units=[], residual="sum"), case("finalnet", residual="sum", field_gate=False),
    case("finalnet", second_units=[], field_gate=False, batch_norm=True),
    case("wukong", LISTS, bottom_units=[9]), case("wukong", rank=0, batch_norm=True, num_tasks=2),
    case("wukong", attentive_inputs=2, fm_units=[14, 8]), case("wukong", num_dense=0, fm_units=[], attentive_inputs=3),
    case("wukong", layer_norm=False, activation="identity", hidden_units=[], fm_units=[], rank=0),
    case("wukong", layer_norm=False, fm_outputs=2, layers=3), # as many rows as before: no residual matrix
    case("xdeepfm", LISTS), case("xdeepfm", batch_norm=True, num_tasks=2), case("xdeepfm", hidden_units=[]),
    case("xdeepfm", cin_units=[6]), case("xdeepfm", cin_units=[]),
    case("autoint", LISTS), case("autoint", residual=False, linear_part=True), case("autoint", scale=False, heads=1),
    case("autoint", layer_norm=False, attention_dim=6, batch_norm=True, num_tasks=2), # no residual matrix
    case("autoint", hidden_units=[], layer_norm=False, residual=False, layers=1),
    case("masknet", LISTS), case("masknet", structure="serial"), case("masknet", embedding_norm=False, batch_norm=True),
    case("masknet", structure="serial", embedding_norm=False, reduction=0.3, num_tasks=2),
    case("finalmlp", LISTS), case("finalmlp", first_context="user", second_context="shop, item", batch_norm=True),
    case("finalmlp", LISTS, heads=4, second_context="tags,seen", num_tasks=2, gate_units=[]),
    *[case("dhen", modules=module) for module in ("dot", "attention", "convolution", "linear", "cross")],
    case("dhen", LISTS, num_tasks=2), case("dhen", ensemble="sum", batch_norm=True), case("dhen", ensemble="weighted"),
    case("dhen", modules="dot, linear", outputs=4, ensemble="sum", bottom_units=[9]), # no shortcut matrix
    case("dhen", layer_norm=False), case("dhen", layer_norm=False, modules="dot, linear", outputs=8, batch_norm=True),
    case("dhen", layers=1, ensemble="sum", layer_norm=False), case("dhen", layers=3), case("dhen", layers=3, outputs=2),
    case("dhen", modules="dot", outputs=1, kernel=5), case("dhen", modules="convolution,convolution", kernel=5),
    case("ffm", num_dense=0), case("ffm", LISTS, num_tasks=2), case("ffm", HISTORY, shares=True),
    *[case(kind, LISTS, block_norm=True, bias="last", activation="hard_swish")
        for kind in ("dnn", "dlrm", "dcn_v2", "finalnet", "wukong", "xdeepfm", "autoint", "masknet", "finalmlp", "dhen")],
    case("dnn", block_norm=True, hidden_units=[300, 520]), case("dlrm", bias="last", num_tasks=2, bottom_units=[9]),
    case("din", HISTORY, targets="item", histories="seen", block_norm=True, bias="last", activation="hard_swish"),
    case("dcn", hidden_units=[300], block_norm=True, activation="sigmoid"),
    case("din", LISTS, batch_norm=True), case("din", HISTORY, targets="item", histories="seen"),
    case("din", HISTORY, targets="item", histories="seen", shares=True, batch_norm=True, pooling="mean"),
    case("din", HISTORY, targets="user", histories="tags", num_dense=0, num_tasks=2, activation="sigmoid"),
    case("din", HISTORIES, targets="shop,item", histories="shops,seen", shares=True),
]

# Without batch norm, whose statistics of the batch no forward here knows.
TEACHING = [case("finalnet"), case("finalnet", LISTS, num_tasks=2, residual="sum"), case("finalnet", second_units=[])]


def make_rows(rng):
    """Columns by name: labels and dense values (B); of ids those of zoo_models.Model."""
    columns = {f"label{t}": rng.integers(0, 2, NUM_ROWS) for t in range(2)}
    columns |= {f"d{i}": rng.integers(-4, 5, NUM_ROWS) / 4 for i in range(NUM_DENSE)}
    for name, (rows, form, _) in COLUMNS.items():
        lengths = numpy.ones(NUM_ROWS, int) if form == "one" else rng.integers(0, MAX_LENGTH + 1, NUM_ROWS)
        weights = (numpy.arange(MAX_LENGTH) < lengths[:, None]).astype(float)
        if form == "weighted":
            weights *= rng.integers(-4, 5, weights.shape) / 4
        columns[name] = (rng.integers(0, rows, weights.shape), weights, lengths)
    return columns


def cells(name, column):
    if name not in COLUMNS:
        return [str(value) for value in column]
    form = "{}:{}" if COLUMNS[name][1] == "weighted" else "{}"
    return ["^".join(form.format(i, w) for i, w in zip(ids[:n], weights)) for ids, weights, n in zip(*column)]


def write_rows(path, columns):
    lines = ["\t".join(columns)] + ["\t".join(row) for row in zip(*[cells(*pair) for pair in columns.items()])]
    path.write_text("\n".join(lines) + "\n")


def owner_of(name, settings):
    return settings["shares"] and COLUMNS[name][2] or name


def id_field(name, settings):
    rows, form, _ = COLUMNS[name]
    owner = owner_of(name, settings)
    encoding = {"encoding": "raw", "rows": rows} if owner == name else {"shares": owner}
    return {"name": name, "kind": "id", "list": form != "one", "weighted": form == "weighted", **encoding}


def write_config(path, settings):
    """JSON is YAML, too."""
    fields = [{"name": f"label{t}", "kind": "label"} for t in range(settings["num_tasks"])]
    fields += [{"name": f"d{i}", "kind": "dense"} for i in range(settings["num_dense"])]
    fields += [id_field(name, settings) for name in settings["features"]] + [{"name": "*", "kind": "ignore"}]
    own = {settings["kind"]: settings["own"]} if settings["own"] else {}
    rows = str(path.parent / "rows.tsv")
    path.write_text(json.dumps({
        "seed": 3,
        "threads": 1,
        "data": {"train": rows, "format": "tsv", "list_separator": "^", "fields": fields},
        "model": {"kind": settings["kind"], **settings["model"], **own},
        "train": {"epochs": 1, "batch_size": 50, "report": False, "tensorboard": False},
        "optimizer": {"kind": "adam", "learning_rate": 0.02}, # no bias stays near 0, no scale near 1
    }))


def read_safetensors(path):
    """fp32 tensors by name"""
    data = path.read_bytes()
    begin = 8 + struct.unpack_from("<Q", data)[0]
    tensors = {}
    for name, entry in json.loads(data[8:begin]).items():
        if name != "__metadata__":
            assert entry["dtype"] == "F32", (name, entry)
            first, last = entry["data_offsets"]
            tensors[name] = numpy.frombuffer(data[begin + first : begin + last], "<f4").astype(float)
            tensors[name] = tensors[name].reshape(entry["shape"])
    return tensors


def model_of(settings, columns, tensors):
    dense = [columns[f"d{i}"] for i in range(settings["num_dense"])]
    owners = {name: owner_of(name, settings) for name in settings["features"]}
    return zoo_models.Model(settings["model"], settings["own"], settings["features"], columns, owners,
        numpy.stack(dense, axis=1) if dense else None, settings["num_tasks"], tensors)


def logits_of(settings, columns, tensors):
    model = model_of(settings, columns, tensors)
    logits = zoo_models.FORWARDS[settings["kind"]](model)
    assert not model.unread, f"{settings['name']}: nothing reads {sorted(model.unread)}"
    assert (logits.std(axis=0) > 0.01).all(), f"{settings['name']}: logits that are all alike show nothing"
    return logits


def phloem(*arguments):
    done = subprocess.run([sys.argv[1], *map(str, arguments)], capture_output=True, text=True, check=False)
    if done.returncode != 0:
        sys.exit(f"phloem {' '.join(map(str, arguments))}: {done.returncode}\n{done.stderr}")
    return done.stdout


def difference(folder, settings, columns):
    write_rows(folder / "rows.tsv", columns)
    write_config(folder / "job.yaml", settings)
    phloem("train", folder / "job.yaml", "--out", folder / "run", "--quiet")
    phloem("predict", folder / "run", folder / "rows.tsv", "--out", folder / "scores.npy")
    p = numpy.load(folder / "scores.npy").astype(float).reshape(NUM_ROWS, settings["num_tasks"])
    logits = logits_of(settings, columns, read_safetensors(folder / "run" / "model.safetensors"))
    assert logits.shape == p.shape, (settings["name"], logits.shape)
    return abs(numpy.log(p / (1 - p)) - logits).max() / max(1, abs(logits).max())


def trained(folder, learning_rate):
    """The tensors after one step of gradient descent on all rows; after one of 1e-30 they are as they began."""
    phloem("train", folder / "job.yaml", "--out", folder / f"run{learning_rate}", "--quiet",
        "--set", f"train.batch_size={NUM_ROWS}", "--set", "optimizer.kind=sgd",
        "--set", f"optimizer.learning_rate={learning_rate}")
    return read_safetensors(folder / f"run{learning_rate}" / "model.safetensors")


def teaching_difference(folder, settings, columns):
    """How far the biases of FinalNet's outputs are from where their gradients move them, of the largest way."""
    write_rows(folder / "rows.tsv", columns)
    write_config(folder / "job.yaml", settings)
    before, after = (trained(folder, rate) for rate in (1e-30, LONG_STEP))
    labels = numpy.stack([columns[f"label{t}"] for t in range(settings["num_tasks"])], axis=1)
    wanted = -LONG_STEP * numpy.array(zoo_models.finalnet_bias_gradients(model_of(settings, columns, before), labels))
    names = [f"{block}.output.bias" for block in ("first", "second")][: len(wanted)]
    moved = numpy.array([after[name] - before[name] for name in names])
    return abs(moved - wanted).max() / abs(wanted).max()


def check_kinds():
    """A new model need not be known here; what is known must be there and have a case."""
    kinds = {line.split()[0] for line in phloem("models").split("\n\n")[0].splitlines()}
    known = set(zoo_models.FORWARDS)
    assert known <= kinds, f"no such model any more: {sorted(known - kinds)}"
    assert known == {settings["kind"] for settings in CASES}
    for kind in sorted(kinds - known):
        print(f"warning: not covered: {kind}")


def main():
    check_kinds()
    columns = make_rows(numpy.random.default_rng(5))
    is_fine = True
    measured = [(difference, settings) for settings in CASES]
    measured += [(teaching_difference, settings) for settings in TEACHING]
    for measure, settings in measured:
        with tempfile.TemporaryDirectory() as folder:
            largest = measure(pathlib.Path(folder), settings, columns)
        print(f"{'one step of ' * (measure is teaching_difference)}{settings['name']}: {largest:.2g}")
        is_fine &= bool(largest <= TOLERANCE)
    outcome = "fine" if is_fine else "NOT MET"
    print(f"{len(measured)} cases, NumPy {numpy.__version__}, tolerance {TOLERANCE}: {outcome}")
    return 0 if is_fine else 1


if __name__ == "__main__":
    sys.exit(main())
