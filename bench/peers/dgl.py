#!/usr/bin/env python3
"""A peer of bench/kernel/bench_aggregation.c: DGL's aggregation on the CPU. The lines are those of sparse_case.py.

DGL is run by $PHLOEM_BENCH_DGL_PYTHON where that is set, since it lags behind PyTorch: `pip install --no-deps dgl==2.1.0`
beside PyTorch, NumPy, SciPy, networkx, requests, tqdm, psutil, packaging, pandas and pyyaml. Its data loader, which needs an
older PyTorch, is left out; sums are made by its own library.

Tuning: indices of 32 bits, the format that sums read made before, no autograd; a mean is DGL's own: a sum of unweighted rows,
then a division.
"""
import os
import sys
import types

import protocol
import sparse_case

sys.path.pop(0)  # this folder, whose files are named after the packages that they import

own_python = os.environ.pop("PHLOEM_BENCH_DGL_PYTHON", None)
if own_python:
    os.execv(own_python, [own_python, __file__])
os.environ.setdefault("DGLBACKEND", "pytorch")
sys.modules["dgl.graphbolt"] = types.ModuleType("dgl.graphbolt")
answers = os.dup(1)
os.dup2(2, 1)  # DGL prints when it is imported
try:
    import dgl
    import dgl.ops
    import torch
except (ImportError, OSError, AttributeError) as error:
    os.dup2(answers, 1)
    protocol.missing(error)
os.dup2(answers, 1)


class Case(sparse_case.Case):
    def __init__(self, folder, options):
        graph = sparse_case.Graph(folder)
        torch.set_num_threads(int(options["threads"]))
        self.x = torch.from_numpy(graph.x)
        targets = torch.repeat_interleave(torch.arange(graph.nodes), torch.from_numpy(graph.offsets).diff())
        self.graph = dgl.graph((torch.from_numpy(graph.ids).int(), targets.int()), num_nodes=graph.nodes)
        self.graph = self.graph.formats("csc")
        self.warm_up()

    def product(self):
        with torch.no_grad():
            self.y = dgl.ops.copy_u_mean(self.graph, self.x)


protocol.serve(f"dgl {dgl.__version__}", Case)
