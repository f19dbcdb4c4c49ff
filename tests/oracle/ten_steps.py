#!/usr/bin/env python3
"""Ten training steps of LR and DNN, written independently with NumPy: the oracle of test_ten_steps.c.

Batches and initial weights come from closed formulas that both sides know. Prints "model step loss" lines; the values
checked in as ten_steps.txt are this script's output. With --check FILE it compares instead, and exits 77 where NumPy is
missing, 1 where the file differs.

LR: momentum SGD. DNN: batch norm, ReLU, Adam on every row of the tables with whole-table L2, clipping by global norm.
"""
import sys

try:
    import numpy as np
except ImportError as error:
    print(f"skipped: {error}", file=sys.stderr)
    sys.exit(77)

B, DENSE, ROWS, DIM, STEPS = 16, 2, [5, 7, 11], 4, 10
HIDDEN = [8, 6]


def fill(name, shape):
    """Initial value of a tensor: a sine of its name's byte sum and the element's index; scales start at 1."""
    count = int(np.prod(shape))
    base = 1.0 if name.endswith("gamma") else 0.0
    phase = 1.7 * sum(name.encode())
    return (base + 0.3 * np.sin(phase + 0.37 * np.arange(count))).reshape(shape)


def batch(step):
    dense = np.array([[np.sin(b + 2 * d + step) for d in range(DENSE)] for b in range(B)])
    labels = np.array([1.0 if (7 * b + step) % 3 == 0 else 0.0 for b in range(B)])
    ids = [
        [[(31 * b + 17 * f + 7 * j + 13 * step) % ROWS[f] for j in range((b + f) % 3)] for b in range(B)]
        for f in range(len(ROWS))
    ]
    return dense, labels, ids


def lookup(tables, ids):
    """(B,F,D) sums of rows; an empty bag is zero."""
    out = np.zeros((B, len(tables), tables[0].shape[1]))
    for f, table in enumerate(tables):
        for b in range(B):
            for i in ids[f][b]:
                out[b, f] += table[i]
    return out


def scatter(tables, ids, grad):
    """Dense gradients of the tables for the output gradient grad (B,F,D)."""
    grads = [np.zeros_like(t) for t in tables]
    for f in range(len(tables)):
        for b in range(B):
            for i in ids[f][b]:
                grads[f][i] += grad[b, f]
    return grads


def bce(logits, labels):
    loss = np.mean(np.maximum(logits, 0) - logits * labels + np.log1p(np.exp(-np.abs(logits))))
    return loss, (1 / (1 + np.exp(-logits)) - labels) / len(labels)


def lr():
    tables = [fill(f"linear.C{f + 1}", (rows, 1)) for f, rows in enumerate(ROWS)]
    weight, bias = fill("linear_part.weight", (1, DENSE)), fill("linear_part.bias", (1,))
    learnt = tables + [weight, bias]
    moments = [np.zeros_like(p) for p in learnt]
    touched_rate, momentum = 0.1, 0.9
    for step in range(1, STEPS + 1):
        dense, labels, ids = batch(step)
        logits = lookup(tables, ids).sum(axis=(1, 2)) + dense @ weight[0] + bias[0]
        loss, d = bce(logits, labels)
        yield "lr", step, loss
        grads = scatter(tables, ids, np.repeat(d[:, None, None], len(ROWS), axis=1))
        grads += [(d @ dense)[None, :], np.array([d.sum()])]
        for p, m, g in zip(learnt, moments, grads):
            m[...] = momentum * m + g
            p -= touched_rate * m


class Linear:
    def __init__(self, name, outputs, inputs):
        self.weight, self.bias = fill(name + ".weight", (outputs, inputs)), fill(name + ".bias", (outputs,))

    def forward(self, x):
        self.x = x
        return x @ self.weight.T + self.bias

    def backward(self, dy):
        self.grads = [dy.T @ self.x, dy.sum(axis=0)]
        return dy @ self.weight


class BatchNorm:
    def __init__(self, name, width):
        self.gamma, self.beta = fill(name + ".gamma", (width,)), fill(name + ".beta", (width,))

    def forward(self, x):
        self.inverse = 1 / np.sqrt(x.var(axis=0) + 1e-5)
        self.hat = (x - x.mean(axis=0)) * self.inverse
        return self.hat * self.gamma + self.beta

    def backward(self, dy):
        self.grads = [(dy * self.hat).sum(axis=0), dy.sum(axis=0)]
        dhat = dy * self.gamma
        return self.inverse * (dhat - dhat.mean(axis=0) - self.hat * (dhat * self.hat).mean(axis=0))


def dnn():
    l2, max_norm, rate, beta1, beta2, epsilon = 0.05, 0.5, 0.01, 0.9, 0.999, 1e-8
    tables = [fill(f"embedding.C{f + 1}", (rows, DIM)) for f, rows in enumerate(ROWS)]
    widths = [len(ROWS) * DIM + DENSE] + HIDDEN
    hidden = []
    for i in range(len(HIDDEN)):
        hidden.append((Linear(f"deep.{i}", widths[i + 1], widths[i]), BatchNorm(f"deep.{i}.norm", widths[i + 1])))
    output = Linear("output", 1, widths[-1])
    learnt = list(tables)
    for linear, norm in hidden:
        learnt += [linear.weight, linear.bias, norm.gamma, norm.beta]
    learnt += [output.weight, output.bias]
    first, second = [np.zeros_like(p) for p in learnt], [np.zeros_like(p) for p in learnt]
    for step in range(1, STEPS + 1):
        dense, labels, ids = batch(step)
        x = np.concatenate([lookup(tables, ids).reshape(B, -1), dense], axis=1)
        active = []
        for linear, norm in hidden:
            x = np.maximum(norm.forward(linear.forward(x)), 0)
            active.append(x > 0)
        loss, d = bce(output.forward(x)[:, 0], labels)
        yield "dnn", step, loss
        dx = output.backward(d[:, None])
        for (linear, norm), mask in zip(reversed(hidden), reversed(active)):
            dx = linear.backward(norm.backward(dx * mask))
        grads = scatter(tables, ids, dx[:, : len(ROWS) * DIM].reshape(B, len(ROWS), DIM))
        grads = [g + l2 * t for g, t in zip(grads, tables)]
        for linear, norm in hidden:
            grads += linear.grads + norm.grads
        grads += output.grads
        norm = np.sqrt(sum((g * g).sum() for g in grads))
        clip = min(1.0, max_norm / (norm + 1e-6))
        for p, m, v, g in zip(learnt, first, second, grads):
            m[...] = beta1 * m + (1 - beta1) * clip * g
            v[...] = beta2 * v + (1 - beta2) * (clip * g) ** 2
            p -= rate * (m / (1 - beta1**step)) / (np.sqrt(v / (1 - beta2**step)) + epsilon)


def main():
    rows = [f"{model} {step} {loss:.15f}" for steps in (lr(), dnn()) for model, step, loss in steps]
    if len(sys.argv) == 3 and sys.argv[1] == "--check":
        with open(sys.argv[2], encoding="utf-8") as file:
            known = [line.split() for line in file]
        for row, was in zip([r.split() for r in rows], known, strict=True):
            if row[:2] != was[:2] or abs(float(row[2]) - float(was[2])) > 1e-12:
                sys.exit(f"{sys.argv[2]}: {' '.join(was)} is now {' '.join(row)}")
    else:
        print("\n".join(rows))


main()
