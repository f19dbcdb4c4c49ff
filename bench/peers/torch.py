#!/usr/bin/env python3
"""The peer of the model benchmarks: the same DLRM in PyTorch on the CPU, with the bench's own batches.

    case FOLDER threads=N optimizer=sgd|adagrad|rowwise_adagrad mode=eager|compile precision=fp32|bf16|int8 batch=N
        [for=WHAT]
    train STEPS      seconds of that many training steps
    infer STEPS      seconds of forward and sigmoid of that many batches
    latency CALLS    microseconds of each call of forward and sigmoid
    end

FOLDER is written by dlrm_data_write. Batches are taken in turn, the first `batch` samples of each, default all. A case is
ready when two training steps have run, or with for=infer two calls of inference. Other verbs run twice untimed before their
first timed run. So compiling is never timed, and a model that cannot be compiled is refused at its first try.

The model is written as PyTorch's users write it: one EmbeddingBag(mode="sum", sparse=True) a table, Linear and ReLU, the
pairs below the diagonal of X X^T. Tuning, so that it is not beaten by its defaults:
- threads: as many as the case has, none between operators; the bench's own wait policy is not handed on (bench/peer.c);
- the allocator: tcmalloc where it is installed (tools/bench.sh), else glibc keeps large blocks (bench/peer.c);
- subnormal numbers are flushed to zero, as on our side;
- dense parameters have the fused optimizer; tables have another one, since sparse gradients do not allow it;
- the pairs are taken by gather, whose backward was faster than that of indexing and no slower than index_select;
- mode=compile compiles the whole model, tables included, for fixed shapes and called from C++: sparse gradients pass
  through it, and compiling the dense side alone was no faster;
- inference: inference_mode; compiled, with frozen weights; for bf16, weights that are converted once instead of by autocast
  in each call;
- int8, for=infer alone: quantize_dynamic of all Linear layers, weights with a scale an output, activations with one a call.
  It is deprecated, but torchao 0.18, its successor, was slower on a DLRM's layers (Int8DynamicActivationInt8WeightConfig,
  eager and compiled; with max_autotune about as fast). Of the engines that are there the case takes the one whose eager
  model is the fastest in some calls. Those of x86 narrow activations to 7 bits, lest sums saturate without VNNI.
"""
import copy
import json
import pathlib
import sys
import time
import warnings

import protocol

sys.path.pop(0)  # this folder, whose files are named after the packages that they import

try:
    import torch
except ImportError as error:
    protocol.missing(error)

WARM_UP_STEPS = 2
LEARNING_RATE = 0.01
PRECISIONS = {"fp32": torch.float32, "bf16": torch.bfloat16, "int8": torch.float32}  # of what is not quantised
INT8_ENGINES = ("x86", "fbgemm", "onednn")
TRIALS = 5
OPTIMIZERS = {"sgd": (torch.optim.SGD, {}), "adagrad": (torch.optim.Adagrad, {"eps": 1e-10})}


def mlp(widths, last_is_linear):
    layers = []
    for i in range(len(widths) - 1):
        layers.append(torch.nn.Linear(widths[i], widths[i + 1]))
        if i + 2 < len(widths) or not last_is_linear:
            layers.append(torch.nn.ReLU())
    return torch.nn.Sequential(*layers)


class Tables(torch.nn.Module):
    def __init__(self, count, rows, dim):
        super().__init__()
        self.tables = torch.nn.ModuleList(
            torch.nn.EmbeddingBag(rows, dim, mode="sum", sparse=True) for _ in range(count)
        )

    def forward(self, ids, offsets):
        return [table(ids[i], offsets) for i, table in enumerate(self.tables)]


class DenseSide(torch.nn.Module):
    def __init__(self, num_dense, tables, dim, bottom, top):
        super().__init__()
        vectors = tables + 1
        self.bottom = mlp([num_dense, *bottom, dim], last_is_linear=False)
        self.top = mlp([vectors * (vectors - 1) // 2 + dim, *top, 1], last_is_linear=True)
        row, column = torch.tril_indices(vectors, vectors, offset=-1)
        self.register_buffer("lower", (row * vectors + column).unsqueeze(0))

    def forward(self, dense, bags):
        bottom = self.bottom(dense)
        stacked = torch.stack([bottom, *(bag.to(bottom.dtype) for bag in bags)], dim=1)
        products = torch.bmm(stacked, stacked.transpose(1, 2)).flatten(1)
        pairs = torch.gather(products, 1, self.lower.expand(products.shape[0], -1))
        return self.top(torch.cat([bottom, pairs], dim=1))


class Dlrm(torch.nn.Module):
    def __init__(self, tables, dense_side):
        super().__init__()
        self.tables = tables
        self.dense_side = dense_side

    def forward(self, dense, ids, offsets):
        return self.dense_side(dense, self.tables(ids, offsets))


class Batches:
    def __init__(self, folder, case, samples):
        count, batch, tables, pooling = case["num_batches"], case["batch"], case["tables"], case["pooling"]
        dense = read(folder / "dense.f32", torch.float32, (count, batch, case["num_dense"]))
        labels = read(folder / "labels.f32", torch.float32, (count, batch, 1))
        ids = read(folder / "ids.i64", torch.int64, (count, tables, batch, pooling))
        offsets = torch.arange(0, samples * pooling, pooling)
        self.inputs = [
            (dense[i, :samples].clone(), ids[i, :, :samples].reshape(tables, -1).clone(), offsets)
            for i in range(count)
        ]
        self.labels = [labels[i, :samples].clone() for i in range(count)]
        self.next = 0

    def take(self):
        i = self.next % len(self.inputs)
        self.next += 1
        return self.inputs[i], self.labels[i]


def read(path, dtype, shape):
    return torch.frombuffer(bytearray(path.read_bytes()), dtype=dtype).view(shape)


def make_optimizers(tables, dense_side, kind):
    if kind not in OPTIMIZERS:
        raise protocol.Skipped(f"torch has no optimizer {kind}")
    make, settings = OPTIMIZERS[kind]
    return [
        make(tables.parameters(), lr=LEARNING_RATE, **settings),
        make(dense_side.parameters(), lr=LEARNING_RATE, fused=True, **settings),
    ]


def refuse_precision(options):
    precision = options.get("precision", "fp32")
    if precision not in PRECISIONS:
        raise protocol.Skipped(f"the precision {precision} is not known")
    if precision == "int8" and options.get("for") != "infer":
        raise protocol.Skipped("int8 needs for=infer: torch trains no products of bytes")


def quantized_by(engine, model):
    from torch.ao.quantization import per_channel_dynamic_qconfig, quantize_dynamic

    torch.backends.quantized.engine = engine
    with warnings.catch_warnings(action="ignore"):  # deprecated
        return quantize_dynamic(model, {torch.nn.Linear: per_channel_dynamic_qconfig}, dtype=torch.qint8)


class Case:
    def __init__(self, folder, options):
        folder = pathlib.Path(folder)
        refuse_precision(options)
        case = json.loads((folder / "case.json").read_text())
        optimizer = options.get("optimizer", "sgd")
        torch.compiler.reset()  # a function's compilations are limited in number
        protocol.refuse_beyond_memory(case, optimizer)
        torch.set_num_threads(int(options.get("threads", 1)))
        torch.manual_seed(1)
        tables = Tables(case["tables"], case["rows"], case["dim"])
        dense_side = DenseSide(case["num_dense"], case["tables"], case["dim"], case["bottom"], case["top"])
        self.batches = Batches(folder, case, int(options.get("batch", case["batch"])))
        self.precision = options.get("precision", "fp32")
        self.is_bf16 = self.precision == "bf16"
        self.is_compiled = options.get("mode", "eager") == "compile"
        self.optimizers = make_optimizers(tables, dense_side, optimizer)
        self.loss = torch.nn.BCEWithLogitsLoss()
        self.model = self.compile(Dlrm(tables, dense_side), {"cpp_wrapper": True})
        self.predictor = None
        self.tables, self.dense_side = tables, dense_side
        self.is_warm = set()
        self.warm_up(self.predict if options.get("for") == "infer" else self.train_step)

    def compile(self, model, options):
        return torch.compile(model, dynamic=False, options=options) if self.is_compiled else model

    def warm_up(self, step):
        """Runs untimed steps, the first of which compiles."""
        if step.__name__ not in self.is_warm:
            for _ in range(WARM_UP_STEPS):
                step()
            self.is_warm.add(step.__name__)

    def train_step(self):
        inputs, labels = self.batches.take()
        for optimizer in self.optimizers:
            optimizer.zero_grad(set_to_none=True)
        with torch.autocast("cpu", dtype=torch.bfloat16, enabled=self.is_bf16):
            logits = self.model(*inputs)
        self.loss(logits.float(), labels).backward()
        for optimizer in self.optimizers:
            optimizer.step()

    def make_predictor(self):
        """Makes the predictor from the weights as they are now: later changes do not matter for speed."""
        dense_side = copy.deepcopy(self.dense_side).to(PRECISIONS[self.precision]).eval()
        if self.precision == "int8":
            dense_side = self.quantize(dense_side)
        return self.compile(Dlrm(self.tables, dense_side).eval(), {"cpp_wrapper": True, "freezing": True})

    def quantize(self, dense_side):
        """Returns the dense side with products of bytes, and leaves the fastest engine set, which runs them."""
        engines = [engine for engine in INT8_ENGINES if engine in torch.backends.quantized.supported_engines]
        if not engines:
            raise protocol.Skipped("torch has no engine of products of bytes here")
        seconds = {}
        for engine in engines:
            self.predictor = Dlrm(self.tables, quantized_by(engine, dense_side))
            seconds[engine] = min(seconds_of(self.predict, 1) for _ in range(WARM_UP_STEPS + TRIALS))
        return quantized_by(min(seconds, key=seconds.get), dense_side)

    def predict(self):
        with torch.inference_mode():
            if self.predictor is None:
                self.predictor = self.make_predictor()
            (dense, ids, offsets), _ = self.batches.take()
            return torch.sigmoid(self.predictor(dense.bfloat16() if self.is_bf16 else dense, ids, offsets))

    def train(self, steps):
        self.warm_up(self.train_step)
        return seconds_of(self.train_step, steps)

    def infer(self, steps):
        self.warm_up(self.predict)
        return seconds_of(self.predict, steps)

    def latency(self, calls):
        self.warm_up(self.predict)
        return " ".join(str(1e6 * seconds_of(self.predict, 1)) for _ in range(calls))


def seconds_of(step, count):
    start = time.perf_counter()
    for _ in range(count):
        step()
    return time.perf_counter() - start


def main():
    torch.set_flush_denormal(True)
    torch.set_num_interop_threads(1)
    protocol.serve(f"torch {torch.__version__}", Case)


main()
