#!/usr/bin/env python3
"""Steps with a teacher against docs/FOUNDATION.md, worked out in NumPy.

usage: distill_check.py PHLOEM

A small perceptron takes one step of gradient descent from rows with labels, weights and a teacher's probabilities, of
which some are blank. The checkpoint of a step without length gives the weights before, that of a step of length 1 the
gradient of every parameter, heads and adapter included. Prints the largest difference of each case, relative to the
largest gradient of the parameter; ends with 1 when one is above TOLERANCE, and with 77 where NumPy is missing.
"""
import json
import pathlib
import subprocess
import sys
import tempfile

sys.dont_write_bytecode = True  # beside the sources
try:
    import numpy
except ImportError as error:
    print(f"skipped: {error}")
    sys.exit(77)

TOLERANCE = 1e-4
NUM_ROWS, IDS, DIM, UNITS, HEAD = 64, 7, 3, 6, 5
WEIGHT, GRADIENT_SCALE, LABEL_SCALE = 0.7, 3.0, 1.5
CASES = [(way, rate) for way in ("single", "head", "adapter") for rate in (1, 0.25)]

CONFIG = """
seed: 3
threads: 1
data:
  train: rows.tsv
  format: tsv
  shuffle: false
  fields:
    - {{name: label, kind: label}}
    - {{name: teacher, kind: teacher}}
    - {{name: weight, kind: weight}}
    - {{name: A, kind: id, encoding: raw, rows: {ids}}}
    - {{name: B, kind: id, encoding: raw, rows: {ids}}}
model: {{kind: dnn, embedding_dim: {dim}, embedding_init_std: 0.5, hidden_units: [{units}]}}
train: {{batch_size: {rows}, max_steps: 1, schedule: constant, report: false, tensorboard: false, distill_units: {head},
  distill_weight: {weight}, distill_gradient_scale: {gradient_scale}, distill_label_scale: {label_scale}}}
optimizer: {{kind: sgd}}
"""


def write_rows(path, share):
    """Writes rows of which a share has the label 1."""
    draw = numpy.random.default_rng(1)
    rows = []
    for number in range(NUM_ROWS):
        teacher = "" if number % 5 == 4 else f"{draw.uniform(.02, .95):.6f}"
        rows.append([str(int(draw.random() < share)), teacher, f"{draw.uniform(.5, 2):.3f}", *map(str, draw.integers(IDS, size=2))])
    path.write_text("".join("\t".join(row) + "\n" for row in [["label", "teacher", "weight", "A", "B"], *rows]))
    return rows


def tensors_of(path):
    data = path.read_bytes()
    size = int.from_bytes(data[:8], "little")
    heads = json.loads(data[8 : 8 + size])
    heads.pop("__metadata__", None)
    found = {}
    for name, head in heads.items():
        if head["dtype"] == "F32" and ":" not in name:  # a parameter
            begin, end = head["data_offsets"]
            found[name] = numpy.frombuffer(data[8 + size + begin : 8 + size + end], "<f4").reshape(head["shape"]).astype(float)
    return found


def step(phloem, folder, way, rate, length):
    name = f"{way}_{rate}_{length}"
    sets = [f"train.distill={way}", f"data.negative_rate={rate}", f"optimizer.learning_rate={length}"]
    words = [word for text in sets for word in ("--set", text)]
    done = subprocess.run([phloem, "train", "job.yaml", "--out", name, "--quiet", *words], cwd=folder, capture_output=True, text=True, check=False)
    if done.returncode != 0:
        sys.exit(done.stderr)
    (checkpoint,) = (folder / name / "checkpoints").glob("step-*1.safetensors")
    return tensors_of(checkpoint)


def sigmoid(z):
    return 1 / (1 + numpy.exp(-z))


class Net:
    """A perceptron of one hidden layer whose parameters begin with `name`."""

    def __init__(self, tensors, name):
        self.name = name
        self.first, self.bias = tensors[f"{name}deep.0.weight"], tensors[f"{name}deep.0.bias"]
        self.last, self.offset = tensors[f"{name}output.weight"], tensors[f"{name}output.bias"]

    def forward(self, x):
        self.x = x
        self.hidden = numpy.maximum(x @ self.first.T + self.bias, 0)
        return self.hidden @ self.last.T + self.offset

    def backward(self, dz, gradients, extra=0):
        """extra: the gradient of the hidden layer by others; returns that of x."""
        gradients[f"{self.name}output.weight"], gradients[f"{self.name}output.bias"] = dz.T @ self.hidden, dz.sum(0)
        inner = (dz @ self.last + extra) * (self.hidden > 0)
        gradients[f"{self.name}deep.0.weight"], gradients[f"{self.name}deep.0.bias"] = inner.T @ self.x, inner.sum(0)
        return inner @ self.first


def gradients_of(tensors, rows, way, rate):
    labels = numpy.array([[float(row[0])] for row in rows])
    weights = numpy.array([[float(row[2])] for row in rows])
    known = numpy.array([[row[1] != ""] for row in rows], float)
    teacher = numpy.array([[float(row[1] or .5)] for row in rows])
    ids = numpy.array([[int(cell) for cell in row[3:]] for row in rows])
    odds = teacher / (1 - teacher) / rate
    teacher = odds / (1 + odds)
    by_label, by_teacher = weights / weights.sum(), weights * known / (weights * known).sum()
    gradients = {}
    net = Net(tensors, "")
    z = net.forward(numpy.hstack([tensors["embedding.A"][ids[:, 0]], tensors["embedding.B"][ids[:, 1]]]))
    dz = by_label * (sigmoid(z) - labels)
    into = 0
    if way == "single":
        dz = dz + WEIGHT * by_teacher * (sigmoid(z) - teacher)
    else:
        targets = [("teacher", numpy.minimum(LABEL_SCALE * teacher, 1), WEIGHT)]
        if way == "adapter":
            adapter = Net(tensors, "distill.adapter.")
            adapted = numpy.log(odds) * known + adapter.forward(numpy.log(odds) * known)
            adapter.backward(by_teacher * (sigmoid(adapted) - labels), gradients)
            targets.append(("adapted", sigmoid(adapted), 1))
        for name, target, weight in targets:
            head = Net(tensors, f"distill.{name}.")
            own = head.forward(net.hidden)
            into = into + GRADIENT_SCALE * head.backward(weight * by_teacher * (sigmoid(own) - target), gradients)
    dx = net.backward(dz, gradients, into)
    for place, name in enumerate(("embedding.A", "embedding.B")):
        gradients[name] = numpy.zeros_like(tensors[name])
        numpy.add.at(gradients[name], ids[:, place], dx[:, place * DIM : (place + 1) * DIM])
    return gradients


def largest_difference(phloem, folder, rows, way, rate):
    before, after = step(phloem, folder, way, rate, 1e-30), step(phloem, folder, way, rate, 1)
    expected = gradients_of(before, rows, way, rate)
    if set(expected) != set(before):
        sys.exit(f"{way}: parameters {sorted(set(expected) ^ set(before))} are not worked out")
    return max(abs(before[name] - after[name] - gradient).max() / max(abs(gradient).max(), 1e-12)
               for name, gradient in expected.items())


def main():
    phloem = pathlib.Path(sys.argv[1]).resolve()
    failed = False
    with tempfile.TemporaryDirectory() as name:
        folder = pathlib.Path(name)
        (folder / "job.yaml").write_text(CONFIG.format(ids=IDS, dim=DIM, units=UNITS, head=HEAD, rows=NUM_ROWS, weight=WEIGHT,
            gradient_scale=GRADIENT_SCALE, label_scale=LABEL_SCALE))
        for way, rate in CASES:
            # Without negatives no row is left out, so that a rate changes the teacher alone.
            rows = write_rows(folder / "rows.tsv", .4 if rate == 1 else 1)
            difference = largest_difference(phloem, folder, rows, way, rate)
            failed |= not difference <= TOLERANCE
            print(f"{way:8} negative_rate {rate:4}  largest difference {difference:.1e}")
    sys.exit(1 if failed else 0)


if __name__ == "__main__":
    main()
