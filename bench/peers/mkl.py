#!/usr/bin/env python3
"""A peer of bench/kernel/bench_aggregation.c: oneMKL's product of a CSR matrix and a dense one, by its inspector-executor
functions. The lines are those of sparse_case.py. Install it with `pip install mkl`; its runtime library is found beside
Python.

Tuning: indices of 32 bits, mkl_sparse_set_mm_hint and mkl_sparse_optimize before, y in the same memory.
"""
import ctypes
import pathlib
import sys

import protocol
import sparse_case

sys.path.pop(0)  # this folder, whose files are named after the packages that they import

NON_TRANSPOSE, ROW_MAJOR, GENERAL, SUCCESS, MANY_CALLS = 10, 101, 20, 0, 1000
INDEX_FROM_ZERO = 0


class Description(ctypes.Structure):
    _fields_ = [("type", ctypes.c_int), ("mode", ctypes.c_int), ("diag", ctypes.c_int)]


def load():
    for path in sorted(pathlib.Path(sys.prefix, "lib").glob("libmkl_rt.so*")):
        return ctypes.CDLL(str(path), mode=ctypes.RTLD_GLOBAL)
    return ctypes.CDLL("libmkl_rt.so")


try:
    library = load()
    import numpy
except (ImportError, OSError) as error:
    protocol.missing(error)


def check(status, what):
    if status != SUCCESS:
        raise protocol.Skipped(f"{what} gave status {status}")


def pointer(array):
    return ctypes.c_void_p(array.ctypes.data)


class Case(sparse_case.Case):
    def __init__(self, folder, options):
        graph = sparse_case.Graph(folder)
        library.MKL_Set_Num_Threads(int(options["threads"]))
        self.offsets, self.ids = graph.offsets.astype(numpy.int32), graph.ids.astype(numpy.int32)
        self.values, self.x, self.y = graph.values, graph.x, numpy.zeros_like(graph.x)
        self.matrix, self.description = ctypes.c_void_p(), Description(GENERAL, 0, 0)
        starts = ctypes.c_void_p(self.offsets.ctypes.data)
        ends = ctypes.c_void_p(self.offsets.ctypes.data + self.offsets.itemsize)
        created = library.mkl_sparse_s_create_csr(
            ctypes.byref(self.matrix), INDEX_FROM_ZERO, graph.nodes, graph.nodes, starts, ends, pointer(self.ids),
            pointer(self.values))
        check(created, "mkl_sparse_s_create_csr")
        self.width = graph.dim
        library.mkl_sparse_set_mm_hint(
            self.matrix, NON_TRANSPOSE, self.description, ROW_MAJOR, graph.dim, MANY_CALLS)
        check(library.mkl_sparse_optimize(self.matrix), "mkl_sparse_optimize")
        self.warm_up()

    def product(self):
        check(
            library.mkl_sparse_s_mm(
                NON_TRANSPOSE, ctypes.c_float(1), self.matrix, self.description, ROW_MAJOR, pointer(self.x),
                self.width, self.width, ctypes.c_float(0), pointer(self.y), self.width),
            "mkl_sparse_s_mm")

    def close(self):
        library.mkl_sparse_destroy(self.matrix)


def version():
    text = ctypes.create_string_buffer(200)
    library.MKL_Get_Version_String(text, len(text))
    words = text.value.decode().split()
    return next((word for word in words if word[:1].isdigit()), "of unknown version")


protocol.serve(f"mkl {version()}", Case)
