"""Trained models: predictions, metrics, weights and embeddings."""
import ctypes
import json
import math
import mmap
import os
import pathlib

import numpy

from phloem import _data, _library, _program
from phloem._library import CheckpointError, DataError, UsageError

_DTYPES = {"F64": "<f8", "F32": "<f4", "F16": "<f2", "BF16": "<u2", "I64": "<i8", "I32": "<i4", "I8": "i1", "U8": "u1",
           "U16": "<u2", "U32": "<u4", "U64": "<u8", "BOOL": "?"}


class Model:
    """The model of a run's folder, ready to score. Any number of threads may use it."""

    def __init__(self, folder, threads=0):
        self.folder, self._session = pathlib.Path(folder), _library.Session()
        self._threads = threads or len(os.sched_getaffinity(0))
        options = _library.SessionOptions(max_batch=1024, num_threads=self._threads)
        _library.call("ph_session_open", os.fsencode(self.folder), ctypes.byref(options), ctypes.byref(self._session))
        self.num_labels = _library.library().ph_session_num_tasks(self._session)

    def __reduce__(self):
        return Model, (self.folder, self._threads)

    @property
    def columns(self):
        """The names of the columns that the model needs, in the order of the training data."""
        count = _library.library().ph_session_num_columns(self._session)
        return [_library.library().ph_session_column_name(self._session, ctypes.c_size_t(i)).decode() for i in range(count)]

    def predict(self, rows):
        """Returns the probabilities of rows (anything that phloem.train takes), float32: (n,), or (n, labels) for a model
        of several labels. Columns are found by name; others are ignored."""
        if _data.is_path(rows):
            return _program.predict(self.folder, rows, self.num_labels)
        parts = []
        for array, schema in _data.batches_of(_data.stream_of(rows)):
            scores = numpy.empty((array.length, self.num_labels), numpy.float32)
            try:
                _library.call("ph_session_score_arrow", self._session, ctypes.byref(array), ctypes.byref(schema),
                              scores.ctypes.data_as(ctypes.c_void_p))
            except DataError as problem:
                separator = ", " if str(problem).startswith("row ") else ": "
                raise DataError(f"rows: batch {len(parts)}{separator}{problem}") from None
            parts.append(scores)
        scores = numpy.concatenate(parts) if parts else numpy.empty((0, self.num_labels), numpy.float32)
        return scores[:, 0] if self.num_labels == 1 else scores

    def evaluate(self, rows):
        """Returns the metrics over rows with their labels, as a dict (of several labels: a list of dicts); None where the
        rows do not define one, as an AUC of one class."""
        metrics = (_library.Metrics * self.num_labels)()
        if _data.is_path(rows):
            _library.call("ph_session_evaluate", self._session, os.fsencode(rows), metrics)
        else:
            given = _data.Rows(rows, "rows")
            _library.call("ph_session_evaluate_dataset", self._session, given.dataset, metrics)
        found = [{name: _number(getattr(one, name)) for name, _ in one._fields_} for one in metrics]
        return found[0] if self.num_labels == 1 else found

    def state_dict(self):
        """Returns the weights by their names, as NumPy arrays over the mapped file, without a copy: writing to one changes
        this process's view alone. bfloat16 comes as ml_dtypes.bfloat16 where that is installed, else as its bits."""
        path = self.folder / "model.safetensors"
        with open(path, "rb") as file:
            mapped = mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_COPY)
        size = int.from_bytes(mapped[:8], "little")
        if 8 + size > len(mapped):
            raise CheckpointError(f"{path}: is not a file of safetensors")
        tensors = json.loads(mapped[8:8 + size])
        tensors.pop("__metadata__", None)
        return {name: numpy.frombuffer(mapped, _dtype(tensor["dtype"]), math.prod(tensor["shape"]),
                                       8 + size + tensor["data_offsets"][0]).reshape(tensor["shape"])
                for name, tensor in tensors.items()}

    def embedding(self, feature, ids):
        """Returns the embeddings (n, dimension) of ids of a feature, encoded as in training: an unknown id, None and NaN give
        the row of what is unknown."""
        dimension = _library.library().ph_session_embedding_dim(self._session, feature.encode())
        if dimension == 0:
            raise UsageError(f"'{feature}' has no embeddings in this model")
        ids = list(ids)
        cells, vectors = (_library.Cell * len(ids))(), numpy.empty((len(ids), dimension), numpy.float32)
        for cell, value in zip(cells, ids):
            _fill(cell, value)
        _library.call("ph_session_embed", self._session, feature.encode(), ctypes.c_size_t(len(ids)), cells,
                      vectors.ctypes.data_as(ctypes.c_void_p))
        return vectors


def _fill(cell, value):
    if value is None or value != value:
        cell.kind = _library.CELL_BLANK
    elif isinstance(value, (int, numpy.integer)):
        cell.kind, cell.integer = _library.CELL_INTEGER, int(value)
    else:
        text = str(value).encode()
        cell.kind, cell.text, cell.length = _library.CELL_TEXT, text, len(text)


def _number(value):
    return None if value != value else value


def _dtype(name):
    if name == "BF16":
        try:
            import ml_dtypes
            return ml_dtypes.bfloat16
        except ImportError:
            pass
    return numpy.dtype(_DTYPES[name])


def load(folder, threads=0):
    """Opens the model of a run's folder. threads: calls that are served at once; 0: as many as there are processors."""
    return Model(folder, threads)
