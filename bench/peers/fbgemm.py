#!/usr/bin/env python3
"""The peer of the embedding benchmarks: fbgemm's table-batched embedding on the CPU, with the bench's own ids.

    case FOLDER threads=N optimizer=sgd|adagrad|rowwise_adagrad rows=fp32|fp16|bf16|int8|int4
    forward STEPS    seconds of that many batches' pooled rows
    update STEPS     seconds of backward with the fused exact optimizer; the forward before it is not timed
    end

FOLDER is written by dlrm_data_write; batches are taken in turn. rows=int8 and rows=int4 belong to the inference class and
have no update. Install it beside PyTorch with `pip install --no-deps fbgemm-gpu-cpu==1.8.0`: 1.8.0 is the release that loads
with PyTorch 2.13.

Tuning: threads and allocator as for torch.py, subnormal numbers flushed to zero, ids and offsets prepared in the library's
combined format, with 32 bits (forward up to 1.1 times as fast as with 64), no bounds checks, no autograd in a timed
forward, sums in fp32. The gradient given to backward is the same in each step and ready in memory.
"""
import json
import pathlib
import sys
import time

import protocol

sys.path.pop(0)  # this folder, whose files are named after the packages that they import

try:
    import torch
    import fbgemm_gpu
    from fbgemm_gpu.split_embedding_configs import EmbOptimType, SparseType
    from fbgemm_gpu.split_table_batched_embeddings_ops_common import BoundsCheckMode, EmbeddingLocation
    from fbgemm_gpu.split_table_batched_embeddings_ops_inference import IntNBitTableBatchedEmbeddingBagsCodegen
    from fbgemm_gpu.split_table_batched_embeddings_ops_training import (
        ComputeDevice,
        SplitTableBatchedEmbeddingBagsCodegen,
    )
except (ImportError, OSError) as error:
    protocol.missing(error)

WARM_UP_STEPS = 2
OPTIMIZERS = {
    "sgd": EmbOptimType.EXACT_SGD,
    "adagrad": EmbOptimType.EXACT_ADAGRAD,
    "rowwise_adagrad": EmbOptimType.EXACT_ROWWISE_ADAGRAD,
}
ROWS = {
    "fp32": SparseType.FP32,
    "fp16": SparseType.FP16,
    "bf16": SparseType.BF16,
    "int8": SparseType.INT8,
    "int4": SparseType.INT4,
}


def inference_tables(case, rows):
    tables = IntNBitTableBatchedEmbeddingBagsCodegen(
        [("", case["rows"], case["dim"], rows, EmbeddingLocation.HOST)] * case["tables"],
        device="cpu",
        output_dtype=SparseType.FP32,
        bounds_check_mode=BoundsCheckMode.NONE,
    )
    tables.fill_random_weights()
    return tables


def training_tables(case, rows, optimizer):
    tables = SplitTableBatchedEmbeddingBagsCodegen(
        [(case["rows"], case["dim"], EmbeddingLocation.HOST, ComputeDevice.CPU)] * case["tables"],
        optimizer=OPTIMIZERS[optimizer],
        weights_precision=rows,
        output_dtype=SparseType.FP32,
        learning_rate=0.01,
        eps=1e-10,
        bounds_check_mode=BoundsCheckMode.NONE,
    )
    tables.init_embedding_weights_uniform(-0.01, 0.01)
    return tables


class Case:
    def __init__(self, folder, options):
        folder = pathlib.Path(folder)
        case = json.loads((folder / "case.json").read_text())
        protocol.refuse_beyond_memory(case, options.get("optimizer"))
        torch.set_num_threads(int(options.get("threads", 1)))
        torch.manual_seed(1)
        rows = ROWS[options.get("rows", "fp32")]
        self.can_update = rows not in (SparseType.INT8, SparseType.INT4)
        self.offsets = torch.arange(0, case["tables"] * case["batch"] + 1, dtype=torch.int32) * case["pooling"]
        self.batches = self.read_ids(folder, case)
        if self.can_update:
            self.tables = training_tables(case, rows, options.get("optimizer", "sgd"))
        else:
            self.tables = inference_tables(case, rows)
        self.gradient = torch.randn(case["batch"], case["tables"] * case["dim"]) * 1e-3
        self.next = 0
        self.forward(WARM_UP_STEPS)
        if self.can_update:
            self.update(WARM_UP_STEPS)

    @staticmethod
    def read_ids(folder, case):
        ids = torch.frombuffer(bytearray((folder / "ids.i64").read_bytes()), dtype=torch.int64)
        return [batch.int() for batch in ids.view(case["num_batches"], -1)]

    def pool(self):
        ids = self.batches[self.next % len(self.batches)]
        self.next += 1
        return self.tables(ids, self.offsets)

    def forward(self, steps):
        with torch.no_grad():
            start = time.perf_counter()
            for _ in range(steps):
                self.pool()
            return time.perf_counter() - start

    def update(self, steps):
        if not self.can_update:
            raise protocol.Skipped("rows of the inference class have no update")
        seconds = 0
        for _ in range(steps):
            pooled = self.pool()
            start = time.perf_counter()
            pooled.backward(self.gradient)
            seconds += time.perf_counter() - start
        return seconds


def main():
    torch.set_flush_denormal(True)
    torch.set_num_interop_threads(1)
    protocol.serve(f"fbgemm {fbgemm_gpu.__version__}", Case)


main()
