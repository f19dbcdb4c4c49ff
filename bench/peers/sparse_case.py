"""Shared by the peers of bench/kernel/bench_aggregation.c: reads the graph, times products, compares results.

    case FOLDER threads=N
    multiply STEPS   seconds of that many products y = A x, A (nodes, nodes) with 1/d of each of the d edges of a row
    squares 1        the sum of y's squares
    end

FOLDER has offsets.i64, ids.i64, x.f32 (nodes, dim) and case.json. What depends on A alone is prepared before; y is written
into the same memory each time where the library allows it.
"""
import json
import pathlib
import time

import numpy

WARM_UP_STEPS = 3


class Graph:
    def __init__(self, folder):
        folder = pathlib.Path(folder)
        case = json.loads((folder / "case.json").read_text())
        self.nodes, self.dim = case["nodes"], case["dim"]
        self.offsets = numpy.fromfile(folder / "offsets.i64", dtype=numpy.int64)
        self.ids = numpy.fromfile(folder / "ids.i64", dtype=numpy.int64)
        self.x = numpy.fromfile(folder / "x.f32", dtype=numpy.float32).reshape(self.nodes, self.dim)
        degrees = numpy.diff(self.offsets)
        self.values = numpy.repeat(1 / numpy.maximum(degrees, 1), degrees).astype(numpy.float32)


class Case:
    """A subclass makes `self.y` an array (nodes, dim) in product()."""

    def warm_up(self):
        for _ in range(WARM_UP_STEPS):
            self.product()

    def multiply(self, steps):
        start = time.perf_counter()
        for _ in range(steps):
            self.product()
        return time.perf_counter() - start

    def squares(self, _):
        self.product()
        return float((numpy.asarray(self.y).astype(numpy.float64) ** 2).sum())
