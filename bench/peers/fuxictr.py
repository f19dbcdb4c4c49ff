#!/usr/bin/env python3
"""The peer of bench/python/bench_fuxictr.py: DeepFM and DCN-V2 of FuxiCTR on the CPU.

    case FOLDER model=deepfm|dcn_v2 loader=npz|tensors threads=N   a new model
    train EPOCHS   seconds of that many epochs, without evaluation
    parameters 1   their number
    auc 1          the AUC on valid.npz by FuxiCTR's own evaluation
    end

FOLDER has train.npz and valid.npz, a column each feature with ids below case.json's `rows`, and `label`. Install it by
`pip install fuxictr==2.3.10` beside PyTorch. The wheel has the layers, BaseModel and the loaders. The two models of its
repository's model_zoo are not in the wheel: here they are written as there, of the same layers.

Tuning:
- loader=npz is FuxiCTR's own NpzDataLoader with its default of one worker process. loader=tensors takes the same shuffled rows
  from memory, one index_select a batch, and spends no time on collecting rows, but has no process beside the model's;
- no progress bar; threads as many as the case has; subnormal numbers flushed to zero; the allocator of bench/peer.c;
- the rest is BaseModel.train_epoch as it is: Adam, gradients clipped to a norm of 10.
"""
import json
import logging
import pathlib
import sys
import tempfile
import time

import protocol

sys.path.pop(0)  # this folder, whose files are named after the packages that they import

try:
    import fuxictr
    import numpy
    import torch
    from fuxictr.features import FeatureMap
    from fuxictr.pytorch.dataloaders.npz_dataloader import NpzDataLoader
    from fuxictr.pytorch.layers import CrossNetV2, FactorizationMachine, FeatureEmbedding, MLP_Block
    from fuxictr.pytorch.models import BaseModel
except (ImportError, OSError) as error:
    protocol.missing(error)


class Model(BaseModel):
    def __init__(self, features, case, folder):
        super().__init__(features, verbose=0, model_root=folder, metrics=["AUC"])
        self.embedding_layer = FeatureEmbedding(features, case["dim"])
        self.add_layers(features, features.sum_emb_out_dim(), case)
        self.compile("adam", "binary_crossentropy", case["learning_rate"])
        self.reset_parameters()
        self.model_to_device()

    def forward(self, inputs):
        inputs = self.get_inputs(inputs)
        logits = self.logits(inputs, self.embedding_layer(inputs))
        return {"y_pred": self.output_activation(logits)}


class DeepFM(Model):
    def add_layers(self, features, width, case):
        self.fm = FactorizationMachine(features)
        self.mlp = MLP_Block(width, case["units"], output_dim=1)

    def logits(self, inputs, vectors):
        return self.fm(inputs, vectors) + self.mlp(vectors.flatten(start_dim=1))


class DcnV2(Model):
    def add_layers(self, features, width, case):
        self.crossnet = CrossNetV2(width, case["cross_layers"])
        self.mlp = MLP_Block(width, case["units"])
        self.output = torch.nn.Linear(width + case["units"][-1], 1)

    def logits(self, inputs, vectors):
        flat = vectors.flatten(start_dim=1)
        return self.output(torch.cat([self.crossnet(flat), self.mlp(flat)], dim=-1))


MODELS = {"deepfm": DeepFM, "dcn_v2": DcnV2}


class Tensors:
    """Loader of shuffled batches from memory, with the columns that FuxiCTR's own gives."""

    def __init__(self, features, path, batch_size):
        with numpy.load(path) as columns:
            self.names = [*features.features, *features.labels]
            self.rows = torch.from_numpy(numpy.column_stack([columns[name] for name in self.names]))
        self.batch_size = batch_size

    def __iter__(self):
        for rows in torch.randperm(len(self.rows)).split(self.batch_size):
            yield dict(zip(self.names, self.rows.index_select(0, rows).unbind(1)))


def feature_map(case):
    features = FeatureMap("bench", ".")
    spec = {"type": "categorical", "source": "", "vocab_size": case["rows"]}
    features.features.update({f"C{i + 1}": spec for i in range(case["fields"])})
    features.labels, features.default_emb_dim = ["label"], case["dim"]
    features.num_fields = features.get_num_fields()
    features.set_column_index()
    return features


class Case:
    def __init__(self, folder, options):
        folder = pathlib.Path(folder)
        case = json.loads((folder / "case.json").read_text())
        torch.set_num_threads(int(options["threads"]))
        torch.manual_seed(1)
        features, batch = feature_map(case), case["batch"]
        path = str(folder / "train.npz")
        if options["loader"] == "npz":
            self.rows = NpzDataLoader(features, path, batch_size=batch, shuffle=True)
        else:
            self.rows = Tensors(features, path, batch)
        self.valid = NpzDataLoader(features, str(folder / "valid.npz"), batch_size=batch)
        self.scratch = tempfile.TemporaryDirectory(prefix="phloem-peer-")
        self.model = MODELS[options["model"]](features, case, self.scratch.name)
        # What BaseModel.fit sets before its first epoch; the evaluation after each is left out.
        self.model._max_gradient_norm, self.model._total_steps, self.model._stop_training = 10.0, 0, False
        self.model._eval_steps = sys.maxsize

    def train(self, epochs):
        start = time.perf_counter()
        for _ in range(epochs):
            self.model.train_epoch(self.rows)
        return time.perf_counter() - start

    def parameters(self, _):
        return sum(parameter.numel() for parameter in self.model.parameters())

    def auc(self, _):
        return self.model.evaluate(self.valid, metrics=["AUC"])["AUC"]


logging.disable(logging.WARNING)
torch.set_flush_denormal(True)
torch.set_num_interop_threads(1)
protocol.serve(f"fuxictr {fuxictr.__version__}", Case)
