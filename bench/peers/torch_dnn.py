#!/usr/bin/env python3
"""The peer of bench/python/bench_small.py: a perceptron over embeddings in plain PyTorch on the CPU.

    case FOLDER threads=N mode=eager|compile   ready when an epoch has run, so that compiling is never timed
    train EPOCHS                               seconds of that many epochs
    end

FOLDER has ids.i64 (rows, fields), numbered over all fields, labels.f32 and case.json. The model is written as PyTorch's users
write it: one Embedding, Linear, BatchNorm1d, ReLU and Dropout, BCEWithLogitsLoss, Adam. Tuning:
- rows are tensors in memory; an epoch draws a permutation, and a batch is one index_select each of ids and labels;
- one table for all fields: one lookup where a table a field would take ten;
- the gradient of the table is dense, which suits Adam and its size, and all parameters have the fused Adam;
- mode=compile compiles model and loss for fixed shapes, called from C++; the optimizer is one fused call already. Dropout draws
  from PyTorch's own generator: with the compiler's a step took 1.4 times as long;
- subnormal numbers are flushed to zero; the allocator is that of bench/peer.c.
"""
import json
import pathlib
import sys
import time

import protocol

sys.path.pop(0)  # this folder, whose files are named after the packages that they import

try:
    import torch
except (ImportError, OSError) as error:
    protocol.missing(error)

COMPILER = {"cpp_wrapper": True, "fallback_random": True}


def make_model(case):
    layers, width = [torch.nn.Embedding(case["rows"], case["dim"]), torch.nn.Flatten()], case["fields"] * case["dim"]
    torch.nn.init.normal_(layers[0].weight, std=1e-4)
    for units in case["units"]:
        layers += [torch.nn.Linear(width, units), torch.nn.BatchNorm1d(units), torch.nn.ReLU()]
        layers += [torch.nn.Dropout(case["dropout"])]
        width = units
    return torch.nn.Sequential(*layers, torch.nn.Linear(width, 1))


class Case:
    def __init__(self, folder, options):
        folder = pathlib.Path(folder)
        case = json.loads((folder / "case.json").read_text())
        torch.compiler.reset()
        torch.set_num_threads(int(options["threads"]))
        torch.manual_seed(1)
        self.batch = case["batch"]
        self.ids = torch.frombuffer(bytearray((folder / "ids.i64").read_bytes()), dtype=torch.int64)
        self.ids = self.ids.view(-1, case["fields"])
        self.labels = torch.frombuffer(bytearray((folder / "labels.f32").read_bytes()), dtype=torch.float32).view(-1, 1)
        model, loss = make_model(case), torch.nn.BCEWithLogitsLoss()
        self.optimizer = torch.optim.Adam(model.parameters(), lr=case["learning_rate"], fused=True)
        self.loss = lambda ids, labels: loss(model(ids), labels)
        if options["mode"] == "compile":
            self.loss = torch.compile(self.loss, dynamic=False, options=COMPILER)
        self.train(1)

    def train(self, epochs):
        start = time.perf_counter()
        for _ in range(epochs):
            for rows in torch.randperm(len(self.ids)).split(self.batch):
                self.optimizer.zero_grad(set_to_none=True)
                self.loss(self.ids.index_select(0, rows), self.labels.index_select(0, rows)).backward()
                self.optimizer.step()
        return time.perf_counter() - start


torch.set_flush_denormal(True)
torch.set_num_interop_threads(1)
protocol.serve(f"torch_dnn {torch.__version__}", Case)
