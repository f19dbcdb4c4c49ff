#!/usr/bin/env python3
"""Writes a miniature of MLPerf's multi-hot Criteo data: PREFIX_labels.npy, PREFIX_dense.npy, PREFIX_sparse_multi_hot.npz.

    mlperf_arrays.py PREFIX SAMPLES SEED

13 dense values and 26 features with the benchmark's numbers of ids a sample; ids go up to 100, or to fewer where the benchmark's
table is shorter. The label is whether the id of C7 is odd, of one sample in ten at random. Standard library only: the
layout of .npy (format 1.0) is written by hand, so that our reader meets bytes which no code of ours made.
"""
import random
import struct
import sys
import zipfile

HOTNESS = (3, 2, 1, 2, 6, 1, 1, 1, 1, 7, 3, 8, 1, 6, 9, 5, 1, 1, 1, 12, 100, 27, 10, 3, 1, 1)
ROWS = {6: 3, 9: 63, 13: 10, 17: 4, 19: 14, 26: 36}  # of the tables that have fewer than 100
TOLD_BY = 7


def array(kind, code, shape, values):
    header = f"{{'descr': '{kind}', 'fortran_order': False, 'shape': {shape!r}, }}"
    header += " " * (-(len(header) + 11) % 64) + "\n"
    prologue = b"\x93NUMPY\x01\x00" + struct.pack("<H", len(header)) + header.encode()
    return prologue + struct.pack(f"<{len(values)}{code}", *values)


def write(path, content):
    with open(path, "wb") as file:
        file.write(content)


def main():
    prefix, samples, seed = sys.argv[1], int(sys.argv[2]), int(sys.argv[3])
    source = random.Random(seed)
    with zipfile.ZipFile(f"{prefix}_sparse_multi_hot.npz", "w") as archive:
        for feature, hotness in enumerate(HOTNESS, 1):
            rows = ROWS.get(feature, 100)
            ids = [source.randrange(rows) for _ in range(samples * hotness)]
            archive.writestr(f"{feature - 1}.npy", array("<i4", "i", (samples, hotness), ids))
            if feature == TOLD_BY:
                odd = [each % 2 for each in ids]
    labels = [source.randrange(2) if source.random() < 0.1 else label for label in odd]
    write(f"{prefix}_labels.npy", array("<i4", "i", (samples, 1), labels))
    dense = [source.gauss(0, 1) for _ in range(samples * 13)]
    write(f"{prefix}_dense.npy", array("<f4", "f", (samples, 13), dense))


if __name__ == "__main__":
    main()
