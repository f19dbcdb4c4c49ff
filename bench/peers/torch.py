#!/usr/bin/env python3
"""The peer of bench_dlrm: the same DLRM in eager PyTorch, driven over a pipe so that rounds can be interleaved.

Reads lines from standard input: "case POOLING OPTIMIZER THREADS TABLES ROWS DIM BATCH" builds the model, "run STEPS"
trains and answers with seconds taken; ends at end of file. Ids follow the same power law as the bench's own batches.
Embeddings are nn.EmbeddingBag(mode="sum", sparse=True), one a table, with a sparse gradient step of the same kind.
"""
import sys
import time

sys.path.pop(0)  # this folder: its files are named after the packages that they import

try:
    import torch
except ImportError as error:
    print(f"missing {error}", flush=True)
    sys.exit(0)

NUM_DENSE = 13
NUM_BATCHES = 8


class Dlrm(torch.nn.Module):
    def __init__(self, tables, rows, dim):
        super().__init__()
        self.bottom = mlp([NUM_DENSE, 512, 256, dim], last_is_linear=False)
        self.embeddings = torch.nn.ModuleList(
            torch.nn.EmbeddingBag(rows, dim, mode="sum", sparse=True) for _ in range(tables)
        )
        pairs = (tables + 1) * tables // 2
        self.top = mlp([dim + pairs, 512, 256, 1], last_is_linear=True)
        self.register_buffer("lower", torch.tril_indices(tables + 1, tables + 1, offset=-1))

    def forward(self, dense, ids, offsets):
        bottom = self.bottom(dense)
        vectors = [bottom] + [bag(i, o) for bag, i, o in zip(self.embeddings, ids, offsets)]
        stacked = torch.stack(vectors, dim=1)
        products = torch.bmm(stacked, stacked.transpose(1, 2))
        pairs = products[:, self.lower[0], self.lower[1]]
        return self.top(torch.cat([bottom, pairs], dim=1))


def mlp(widths, last_is_linear):
    layers = []
    for i in range(len(widths) - 1):
        layers.append(torch.nn.Linear(widths[i], widths[i + 1]))
        if i + 2 < len(widths) or not last_is_linear:
            layers.append(torch.nn.ReLU())
    return torch.nn.Sequential(*layers)


def power_law_ids(count, rows, generator):
    uniform = torch.rand(count, generator=generator, dtype=torch.float64)
    exponent = 1.05  # density of the rank is rank ** -1.05, cut at `rows`; as in bench_dlrm.c
    ranks = (1 - uniform * (1 - float(rows + 1) ** (1 - exponent))) ** (1 / (1 - exponent))
    return ranks.floor().long().clamp(1, rows) - 1


def make_batch(pooling, tables, rows, batch, generator):
    dense = torch.rand(batch, NUM_DENSE, generator=generator)
    ids = [power_law_ids(batch * pooling, rows, generator) for _ in range(tables)]
    offsets = [torch.arange(0, batch * pooling, pooling) for _ in range(tables)]
    labels = (torch.rand(batch, 1, generator=generator) < 0.25).float()
    return dense, ids, offsets, labels


class Case:
    def __init__(self, words):
        pooling, optimizer, threads, tables, rows, dim, batch = words
        torch.set_num_threads(int(threads))
        torch.manual_seed(1)
        self.model = Dlrm(int(tables), int(rows), int(dim))
        kind = {"sgd": torch.optim.SGD, "adagrad": torch.optim.Adagrad}[optimizer]
        self.optimizer = kind(self.model.parameters(), lr=0.01)
        generator = torch.Generator().manual_seed(2)
        self.batches = [
            make_batch(int(pooling), int(tables), int(rows), int(batch), generator) for _ in range(NUM_BATCHES)
        ]
        self.loss = torch.nn.BCEWithLogitsLoss()
        self.step = 0

    def run(self, steps):
        start = time.perf_counter()
        for _ in range(steps):
            dense, ids, offsets, labels = self.batches[self.step % NUM_BATCHES]
            self.step += 1
            self.optimizer.zero_grad(set_to_none=True)
            self.loss(self.model(dense, ids, offsets), labels).backward()
            self.optimizer.step()
        return time.perf_counter() - start


def main():
    print(f"torch {torch.__version__}", flush=True)
    case = None
    for line in sys.stdin:
        words = line.split()
        if words[0] == "case":
            case = None  # frees the old tables first
            case = Case(words[1:])
            print("ready", flush=True)
        elif words[0] == "run":
            print(case.run(int(words[1])), flush=True)


main()
