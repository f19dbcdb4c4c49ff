#!/usr/bin/env python3
"""The peer of the scoring benchmark: the model exported by phloem, in onnxruntime on one thread, driven over a pipe so
that its rounds and ours can take turns.

Reads lines from standard input and answers each with one line; ends at end of file.
    case MODEL.onnx INPUTS BATCH [int8]   "ready", or with int8 "skipped WHY": INPUTS is an .npz or a folder of .npy files,
                                          one array an input of the model
    run CALLS                             seconds of all calls, of the median call and of the 99th percentile

Call i scores rows [i * BATCH, (i + 1) * BATCH) of INPUTS, from the beginning again behind the last whole batch.
Tuning: one thread in the operators and one between them, all optimisations of the graph, subnormal numbers as zero, and
inputs and outputs bound to their memory beforehand, so that a call is little more than the library's own run. The inputs
are encoded ids: unlike in a session of phloem, encoding is not timed.

With int8 the library's own quantize_dynamic makes MatMul and Gemm products of bytes: weights have a scale a channel, and
activations get one a call, which the call works out. The library then fuses them into DynamicQuantizeMatMul; all other
operators stay in fp32. A case is skipped where no product became one of bytes.
"""
import logging
import pathlib
import sys
import tempfile
import time

import onnx_session
import protocol

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


def quantize(model, quantized):
    """Writes the model with its products as products of bytes; needs the package onnx."""
    import onnx
    from onnxruntime.quantization import QuantType, quantize_dynamic

    logging.disable(logging.WARNING)  # it recommends another tool's preprocessing
    quantize_dynamic(
        model, quantized, op_types_to_quantize=["MatMul", "Gemm"], per_channel=True, weight_type=QuantType.QInt8
    )
    if not any(node.op_type == "MatMulInteger" for node in onnx.load(quantized, load_external_data=False).graph.node):
        raise protocol.Skipped("onnxruntime made no product of bytes")


def open_session(model, precision):
    if precision != "int8":
        return onnx_session.open_session(onnxruntime, model, threads=1)
    with tempfile.TemporaryDirectory() as folder:
        quantized = f"{folder}/model.onnx"
        quantize(model, quantized)
        return onnx_session.open_session(onnxruntime, quantized, threads=1)


class Case:
    def __init__(self, model, inputs, batch, precision):
        self.session = open_session(model, precision)
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


def make_case(model, inputs, batch, precision="fp32"):
    """Returns the case, or None and why: an int8 case may lack a package, or have an operator that cannot be quantised."""
    try:
        return Case(model, inputs, int(batch), precision), "ready"
    except Exception as error:
        if precision == "fp32":
            raise
        return None, f"skipped {protocol.one_line(error)}"


def main():
    print(f"onnxruntime {onnxruntime.__version__}", flush=True)
    case = None
    for line in sys.stdin:
        words = line.split()
        if words[0] == "case":
            case = None  # frees the old model first
            case, answer = make_case(*words[1:])
            print(answer, flush=True)
        elif words[0] == "run":
            seconds = sorted(case.run(int(words[1])))
            print(sum(seconds), percentile(seconds, 50), percentile(seconds, 99), flush=True)


main()
