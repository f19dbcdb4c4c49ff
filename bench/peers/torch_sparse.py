#!/usr/bin/env python3
"""A peer of bench/kernel/bench_aggregation.c: PyTorch's product of a CSR matrix and a dense one, torch.sparse.mm. The lines
are those of sparse_case.py.

Tuning: indices of 32 bits, which PyTorch hands to MKL as they are; threads and allocator as for torch.py; no autograd.
"""
import sys
import warnings

import protocol
import sparse_case

sys.path.pop(0)  # this folder, whose files are named after the packages that they import

try:
    import torch
except (ImportError, OSError) as error:
    protocol.missing(error)


class Case(sparse_case.Case):
    def __init__(self, folder, options):
        graph = sparse_case.Graph(folder)
        torch.set_num_threads(int(options["threads"]))
        self.x = torch.from_numpy(graph.x)
        self.matrix = torch.sparse_csr_tensor(
            torch.from_numpy(graph.offsets).int(),
            torch.from_numpy(graph.ids).int(),
            torch.from_numpy(graph.values),
            size=(graph.nodes, graph.nodes),
        )
        self.warm_up()

    def product(self):
        with torch.no_grad():
            self.y = torch.sparse.mm(self.matrix, self.x)


def main():
    warnings.simplefilter("ignore")
    torch.set_flush_denormal(True)
    torch.set_num_interop_threads(1)
    protocol.serve(f"torch_sparse {torch.__version__}", Case)


main()
