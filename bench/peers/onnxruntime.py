#!/usr/bin/env python3
"""The peer of the scoring benchmark: the model exported by phloem, in onnxruntime on one thread, driven over a pipe so
that its rounds and ours can take turns.

Reads lines from standard input and answers each with one line; ends at end of file.
    case MODEL.onnx INPUTS BATCH   "ready": INPUTS is an .npz or a folder of .npy files, one array an input of the model
    run CALLS                      seconds of all calls, of the median call and of the 99th percentile

Call i scores rows [i * BATCH, (i + 1) * BATCH) of INPUTS, from the beginning again behind the last whole batch.
Tuning: one thread in the operators and one between them, all optimisations of the graph, subnormal numbers as zero, and
inputs and outputs bound to their memory beforehand, so that a call is little more than the library's own run. The inputs
are encoded ids: unlike in a session of phloem, encoding is not timed.
"""
import pathlib
import sys
import time

import onnx_session

sys.path.pop(0)  # this folder, whose files are named after the packages that they import

try:
    import numpy
    import onnxruntime
except ImportError as error:
    print(f"missing {error}", flush=True)
    sys.exit(0)

WARM_UP_CALLS = 50


def load(path):
    path = pathlib.Path(path)
    if path.is_dir():
        return {file.stem: numpy.load(file) for file in path.glob("*.npy")}
    return dict(numpy.load(path))


def percentile(ascending, percent):
    """Returns the smallest value that at least `percent` percent of all values do not exceed."""
    return ascending[max(0, (percent * len(ascending) + 99) // 100 - 1)]


class Case:
    def __init__(self, model, inputs, batch):
        self.session = onnx_session.open_session(onnxruntime, model, threads=1)
        arrays = load(inputs)
        names = [value.name for value in self.session.get_inputs()]
        num_batches = len(arrays[names[0]]) // batch
        if num_batches == 0:
            raise ValueError(f"{inputs} has no {batch} rows")
        self.kept = []  # bindings borrow their memory
        self.bindings = [self.bind(names, arrays, first * batch, batch) for first in range(num_batches)]
        self.call = 0
        self.run(WARM_UP_CALLS)

    def bind(self, names, arrays, first, batch):
        binding = self.session.io_binding()
        for name in names:
            rows = numpy.ascontiguousarray(arrays[name][first : first + batch])
            value = onnxruntime.OrtValue.ortvalue_from_numpy(rows)
            binding.bind_ortvalue_input(name, value)
            self.kept += [rows, value]
        output = self.session.get_outputs()[0]
        shape = [batch, output.shape[1]]
        value = onnxruntime.OrtValue.ortvalue_from_shape_and_type(shape, numpy.float32)
        binding.bind_ortvalue_output(output.name, value)
        self.kept.append(value)
        return binding

    def run(self, calls):
        run, clock = self.session.run_with_iobinding, time.perf_counter
        seconds = []
        for _ in range(calls):
            binding = self.bindings[self.call % len(self.bindings)]
            self.call += 1
            start = clock()
            run(binding)
            seconds.append(clock() - start)
        return seconds


def main():
    print(f"onnxruntime {onnxruntime.__version__}", flush=True)
    case = None
    for line in sys.stdin:
        words = line.split()
        if words[0] == "case":
            case = None  # frees the old model first
            case = Case(words[1], words[2], int(words[3]))
            print("ready", flush=True)
        elif words[0] == "run":
            seconds = sorted(case.run(int(words[1])))
            print(sum(seconds), percentile(seconds, 50), percentile(seconds, 99), flush=True)


main()
