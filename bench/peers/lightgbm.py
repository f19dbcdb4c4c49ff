#!/usr/bin/env python3
"""The peer of bench/python/bench_frames.py: LightGBM's Dataset, which cuts each column of a frame into bins.

    case FILE.parquet threads=N   a frame with a column "label", read into pandas
    construct COUNT               seconds of COUNT calls of Dataset(frame, label).construct()
    end

Install it by `pip install lightgbm pandas pyarrow`. Tuning: none is needed beyond its number of threads; the frame is in memory,
and integers are numbers to it, which costs it less than categories.
"""
import sys
import time

import protocol

sys.path.pop(0)  # this folder, whose files are named after the packages that they import

try:
    import lightgbm
    import pandas
except (ImportError, OSError) as error:
    protocol.missing(error)


class Case:
    def __init__(self, path, options):
        frame = pandas.read_parquet(path)
        self.labels = frame.pop("label")
        self.frame = frame
        self.settings = {"num_threads": int(options["threads"]), "verbose": -1}
        self.construct(1)

    def construct(self, count):
        start = time.perf_counter()
        for _ in range(count):
            lightgbm.Dataset(self.frame, label=self.labels, params=self.settings).construct()
        return time.perf_counter() - start


protocol.serve(f"lightgbm {lightgbm.__version__}", Case)
