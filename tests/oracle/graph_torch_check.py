#!/usr/bin/env python3
"""Losses and gradients of graph models against PyTorch, with dense matrices in double precision.

usage: graph_torch_check.py PHLOEM

Two layers over a small graph of nodes with words and numbers, of which some have no label, no word or no neighbour. The
checkpoint of a step of gradient descent without length gives the weights before, that of a step of length 1 the gradient
of every parameter; phloem eval gives loss and accuracy. Prints the largest difference of each case, relative to the
largest gradient of the parameter; ends with 1 when one is above TOLERANCE, and with 77 where a package is missing.
"""
import json
import pathlib
import subprocess
import sys
import tempfile

sys.dont_write_bytecode = True  # beside the sources
try:
    import numpy
    import torch
    from zoo_check import read_safetensors
except ImportError as error:
    print(f"skipped: {error}")
    sys.exit(77)

TOLERANCE = 1e-4
NODES, WORDS, DENSE, UNITS, CLASSES = 60, 9, 6, 4, 3
CASES = [(kind, rule, loops) for kind in ("gcn", "sage") for rule in ("sum", "mean", "symmetric") for loops in (0, 1)]

CONFIG = """
seed: 3
threads: 1
data:
  format: graph
  train: nodes.csv#train
  graph: {{edges: edges.csv, self_loops: {loops}}}
  fields:
    - {{name: node, kind: ignore}}
    - {{name: topic, kind: label, classes: [a, b, c]}}
    - {{name: split, kind: split}}
    - {{name: words, kind: id, list: true, encoding: raw, rows: {words}}}
    - {{name: "x*", kind: dense}}
    - {{name: neighbours, kind: id, encoding: raw, rows: {nodes}}}
model: {{kind: {kind}, hidden_units: [{units}], embedding_init_std: 0.2, pooling: mean, {kind}: {{neighbours: neighbours, normalisation: {rule}}}}}
train: {{batch_size: 7, max_steps: 1, schedule: constant, selection: logloss, report: false, tensorboard: false}}
optimizer: {{kind: sgd}}
"""


def make_graph(folder):
    """Writes the files; returns what they say."""
    random = numpy.random.default_rng(5)
    labels = random.integers(-1, CLASSES, NODES)
    is_train = random.random(NODES) < 0.6
    words = [random.integers(0, WORDS, random.integers(0, 4)) for _ in range(NODES)]
    dense = random.normal(0, 0.3, (NODES, DENSE)).round(4)
    edges = random.integers(0, NODES - 5, (2 * NODES, 2))  # the last nodes have none
    lines = ["node,topic,split,words," + ",".join(f"x{i}" for i in range(DENSE))]
    for node in range(NODES):
        cells = [str(node), "-1" if labels[node] < 0 else "abc"[labels[node]], "train" if is_train[node] else "test",
            "|".join(map(str, words[node]))]
        lines.append(",".join(cells + [repr(float(x)) for x in dense[node]]))
    (folder / "nodes.csv").write_text("\n".join(lines) + "\n")
    (folder / "edges.csv").write_text("".join(f"{a},{b}\n" for a, b in edges))
    return labels, is_train, words, dense, edges


def adjacency_of(edges, rule, loops):
    matrix = numpy.zeros((NODES, NODES))
    for a, b in edges:
        if a != b:
            matrix[a, b] = matrix[b, a] = 1
    matrix += loops * numpy.eye(NODES)
    degrees = numpy.maximum(matrix.sum(1), 1)
    if rule == "mean":
        matrix /= degrees[:, None]
    if rule == "symmetric":
        matrix /= numpy.sqrt(degrees[:, None] * degrees)
    return torch.tensor(matrix)


def forward(kind, weights, near, bags, dense):
    """(nodes, classes)"""
    product = bags @ weights["layer.0.embedding.words"]
    if kind == "gcn":
        x = near @ product + near @ dense @ weights["layer.0.weight"].T
        x = torch.relu(x + weights["layer.0.bias"])
        return near @ x @ weights["layer.1.weight"].T + weights["layer.1.bias"]
    x = product[:, :UNITS] + near @ product[:, UNITS:]
    x = x + dense @ weights["layer.0.own"].T + near @ dense @ weights["layer.0.near"].T
    x = torch.relu(x + weights["layer.0.bias"])
    return x @ weights["layer.1.own"].T + near @ x @ weights["layer.1.near"].T + weights["layer.1.bias"]


def phloem(folder, *words):
    return subprocess.run([program, *map(str, words)], cwd=folder, check=True, capture_output=True, text=True).stdout


def check(folder, graph, kind, rule, loops):
    labels, is_train, words, dense, edges = graph
    job = folder / f"{kind}.{rule}.{loops}.yaml"
    job.write_text(CONFIG.format(kind=kind, rule=rule, loops=str(bool(loops)).lower(), words=WORDS, nodes=NODES, units=UNITS))
    tensors = {}
    for rate in (1e-30, 1):
        out = job.with_suffix(f".{rate}")
        phloem(folder, "train", job.name, "--out", out, "--quiet", "--set", f"optimizer.learning_rate={rate}",
            "--set", "train.min_learning_rate=0")
        tensors[rate] = read_safetensors(out / "model.safetensors")
    metrics = json.loads(phloem(folder, "eval", job.with_suffix(".1e-30"), "nodes.csv#train"))
    weights = {name: torch.tensor(value, requires_grad=True) for name, value in tensors[1e-30].items()}
    bags = torch.zeros(NODES, WORDS, dtype=torch.double)
    for node, bag in enumerate(words):
        for word in bag:
            bags[node, word] += 1 / len(bag)
    logits = forward(kind, weights, adjacency_of(edges, rule, loops), bags, torch.tensor(dense))
    known = torch.tensor(is_train & (labels >= 0))
    loss = torch.nn.functional.cross_entropy(logits[known], torch.tensor(labels)[known])
    loss.backward()
    chosen = logits[known].detach().numpy().round(9).argmax(1)  # the first one of equals, as isolated nodes have
    accuracy = (chosen == labels[known.numpy()]).mean()
    worst = max(abs(metrics["logloss"] - loss.item()), abs(metrics["accuracy"] - accuracy))
    for name, value in weights.items():
        gradient = tensors[1e-30][name] - tensors[1][name]
        wanted = value.grad.numpy()
        worst = max(worst, numpy.abs(gradient - wanted).max() / numpy.abs(wanted).max())
    print(f"{kind}, {rule}, {'with' if loops else 'without'} self loops: {worst:.2e}")
    return worst


program = pathlib.Path(sys.argv[1]).resolve()
with tempfile.TemporaryDirectory() as work:
    made = make_graph(pathlib.Path(work))
    differences = [check(pathlib.Path(work), made, *one) for one in CASES]
sys.exit(0 if max(differences) <= TOLERANCE else 1)
