#!/usr/bin/env python3
"""A peer of bench/kernel/bench_aggregation.c: SuiteSparse:GraphBLAS, the product of a CSR matrix and a full one over
plus-times in fp32. The lines are those of sparse_case.py. Install it with `apt-get install libgraphblas-dev`; the library is
called by ctypes.

Tuning: both matrices by row, kept from step to step; the product is added to a full matrix of zeros, for which the library has
a faster method than for a result of unknown pattern; the kernels are those that were compiled into the library.
"""
import ctypes
import ctypes.util
import sys

import protocol
import sparse_case

sys.path.pop(0)  # this folder, whose files are named after the packages that they import

# From GraphBLAS.h, version 7.4.
SUCCESS, NONBLOCKING, BY_ROW, FORMAT, NUM_THREADS, LIBRARY_VERSION = 0, 0, 0, 1, 5, 9

try:
    library = ctypes.CDLL(ctypes.util.find_library("graphblas") or "libgraphblas.so")
    import numpy
except (ImportError, OSError) as error:
    protocol.missing(error)


def check(status, what):
    if status != SUCCESS:
        raise protocol.Skipped(f"{what} gave status {status}")


def symbol(name):
    return ctypes.c_void_p.in_dll(library, name)


def set_global(field, value):
    check(library.GxB_Global_Option_set(field, ctypes.c_int(value)), "GxB_Global_Option_set")


def build(rows, columns, row_of, column_of, values):
    matrix = ctypes.c_void_p()
    check(
        library.GrB_Matrix_new(
            ctypes.byref(matrix), symbol("GrB_FP32"), ctypes.c_uint64(rows), ctypes.c_uint64(columns)),
        "GrB_Matrix_new")
    indices = [numpy.ascontiguousarray(array, dtype=numpy.uint64) for array in (row_of, column_of)]
    values = numpy.ascontiguousarray(values, dtype=numpy.float32)
    check(
        library.GrB_Matrix_build_FP32(
            matrix, *(ctypes.c_void_p(array.ctypes.data) for array in (*indices, values)),
            ctypes.c_uint64(len(values)), symbol("GrB_PLUS_FP32")),
        "GrB_Matrix_build_FP32")
    return matrix


def extract(matrix, rows, columns):
    count = ctypes.c_uint64(rows * columns)
    values = numpy.zeros(rows * columns, dtype=numpy.float32)
    check(
        library.GrB_Matrix_extractTuples_FP32(
            None, None, ctypes.c_void_p(values.ctypes.data), ctypes.byref(count), matrix),
        "GrB_Matrix_extractTuples_FP32")
    return values


class Case(sparse_case.Case):
    def __init__(self, folder, options):
        graph = sparse_case.Graph(folder)
        set_global(NUM_THREADS, int(options["threads"]))
        self.shape = graph.nodes, graph.dim
        targets = numpy.repeat(numpy.arange(graph.nodes), numpy.diff(graph.offsets))
        self.matrix = build(graph.nodes, graph.nodes, targets, graph.ids, graph.values)
        self.x = build(
            *self.shape, numpy.repeat(numpy.arange(graph.nodes), graph.dim),
            numpy.tile(numpy.arange(graph.dim), graph.nodes), graph.x.ravel())
        self.result = build(*self.shape, [], [], [])
        self.warm_up()

    def product(self):
        everywhere = symbol("GrB_ALL")
        check(
            library.GrB_Matrix_assign_FP32(
                self.result, None, None, ctypes.c_float(0), everywhere, ctypes.c_uint64(self.shape[0]), everywhere,
                ctypes.c_uint64(self.shape[1]), None),
            "GrB_Matrix_assign_FP32")
        check(
            library.GrB_mxm(
                self.result, None, symbol("GrB_PLUS_FP32"), symbol("GrB_PLUS_TIMES_SEMIRING_FP32"), self.matrix, self.x,
                None),
            "GrB_mxm")
        check(library.GrB_Matrix_wait(self.result, 0), "GrB_Matrix_wait")

    @property
    def y(self):
        return extract(self.result, *self.shape)


def version():
    text = ctypes.c_uint * 3
    numbers = text()
    check(library.GxB_Global_Option_get(LIBRARY_VERSION, numbers), "GxB_Global_Option_get")
    return ".".join(map(str, numbers))


def main():
    check(library.GrB_init(NONBLOCKING), "GrB_init")
    set_global(FORMAT, BY_ROW)
    protocol.serve(f"graphblas {version()}", Case)


main()
