#!/usr/bin/env python3
"""A peer of bench/kernel/bench_aggregation.c: SciPy's product of a CSR matrix and a dense one. The lines are those of
sparse_case.py. It has one thread, and skips a case of more.
"""
import sys

import protocol
import sparse_case

sys.path.pop(0)  # this folder, whose files are named after the packages that they import

try:
    import scipy.sparse
except (ImportError, OSError) as error:
    protocol.missing(error)


class Case(sparse_case.Case):
    def __init__(self, folder, options):
        if options["threads"] != "1":
            raise protocol.Skipped("SciPy multiplies with one thread")
        graph = sparse_case.Graph(folder)
        self.x = graph.x
        self.matrix = scipy.sparse.csr_matrix(
            (graph.values, graph.ids.astype("int32"), graph.offsets.astype("int32")), shape=(graph.nodes, graph.nodes)
        )
        self.warm_up()

    def product(self):
        self.y = self.matrix @ self.x


protocol.serve(f"scipy {scipy.__version__}", Case)
