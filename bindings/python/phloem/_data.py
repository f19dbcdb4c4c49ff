"""Rows from Python: whatever has __arrow_c_stream__, dicts of arrays, SciPy CSR, Parquet, as datasets of the library."""
import collections.abc
import ctypes
import json
import os
import pathlib

from phloem import _library
from phloem._library import DataError, Dataset, UsageError

# ---- structs of the Arrow C data interface -------------------------------------------------------------------------------


class ArrowSchema(ctypes.Structure):
    _fields_ = [("format", ctypes.c_char_p), ("name", ctypes.c_char_p), ("metadata", ctypes.c_void_p),
                ("flags", ctypes.c_int64), ("n_children", ctypes.c_int64), ("children", ctypes.c_void_p),
                ("dictionary", ctypes.c_void_p), ("release", ctypes.c_void_p), ("private_data", ctypes.c_void_p)]


class ArrowArray(ctypes.Structure):
    _fields_ = [("length", ctypes.c_int64), ("null_count", ctypes.c_int64), ("offset", ctypes.c_int64),
                ("n_buffers", ctypes.c_int64), ("n_children", ctypes.c_int64), ("buffers", ctypes.c_void_p),
                ("children", ctypes.c_void_p), ("dictionary", ctypes.c_void_p), ("release", ctypes.c_void_p),
                ("private_data", ctypes.c_void_p)]


class ArrowArrayStream(ctypes.Structure):
    _fields_ = [(name, ctypes.c_void_p) for name in ("get_schema", "get_next", "get_last_error", "release", "private_data")]


_CAPSULE = ctypes.pythonapi.PyCapsule_GetPointer
_CAPSULE.restype, _CAPSULE.argtypes = ctypes.c_void_p, [ctypes.py_object, ctypes.c_char_p]
_GET = ctypes.CFUNCTYPE(ctypes.c_int, ctypes.c_void_p, ctypes.c_void_p)
_GET_ERROR = ctypes.CFUNCTYPE(ctypes.c_char_p, ctypes.c_void_p)
_RELEASE = ctypes.CFUNCTYPE(None, ctypes.c_void_p)


def _release(struct):
    if struct.release:
        _RELEASE(struct.release)(ctypes.addressof(struct))


def _move_stream(rows, address):
    """Moves a new stream of the rows to the address."""
    capsule = rows.__arrow_c_stream__()  # owns the stream until it is moved
    stream = ArrowArrayStream.from_address(_CAPSULE(capsule, b"arrow_array_stream"))
    ctypes.memmove(address, ctypes.byref(stream), ctypes.sizeof(stream))
    stream.release = None


def batches_of(rows):
    """Yields each record batch of the rows with its schema. Both are released when the next one is asked for."""
    stream, schema = ArrowArrayStream(), ArrowSchema()
    _move_stream(rows, ctypes.addressof(stream))

    def get(function, out):
        if _GET(function)(ctypes.addressof(stream), ctypes.addressof(out)) != 0:
            text = _GET_ERROR(stream.get_last_error)(ctypes.addressof(stream))
            raise DataError(f"the stream failed: {(text or b'it does not say why').decode(errors='replace')}")

    try:
        get(stream.get_schema, schema)
        while True:
            array = ArrowArray()
            get(stream.get_next, array)
            if not array.release:
                return
            try:
                yield array, schema
            finally:
                _release(array)
    finally:
        _release(schema)
        _release(stream)


# ---- rows as streams -----------------------------------------------------------------------------------------------------


def _pyarrow():
    try:
        import pyarrow
        return pyarrow
    except ImportError as problem:
        raise UsageError("dicts, SciPy matrices, arrays and Parquet are read by pyarrow, which is not installed: "
                         "pip install pyarrow, or pass a frame with __arrow_c_stream__ (Polars, pandas, DuckDB)") from problem


_WEIGHTED = b"phloem.weighted"  # metadata of a table: the names of columns that came from matrices with weights
_NO_ARROW = (ValueError, TypeError, NotImplementedError, OverflowError)  # what pyarrow raises for values


def _table_of_dict(columns):
    pyarrow, lengths, arrays, weighted = _pyarrow(), {}, {}, []
    for name, values in columns.items():
        try:
            if hasattr(values, "tocsr"):
                values, is_weighted = _array_of_csr(values)
                weighted += [str(name)] * is_weighted
            values = values if hasattr(values, "__len__") else list(values)
            lengths[name] = len(values)
            arrays[str(name)] = pyarrow.array(values, from_pandas=True)
        except _NO_ARROW as problem:
            raise DataError(f"column '{name}': the values are not of one type that Arrow has: {problem}") from problem
    first = next(iter(lengths), None)
    for name, length in lengths.items():
        if length != lengths[first]:
            raise DataError(f"column '{name}' has {length} rows, but column '{first}' has {lengths[first]}")
    return pyarrow.table(arrays).replace_schema_metadata({_WEIGHTED: json.dumps(weighted)} if weighted else None)


def _array_of_csr(matrix):
    """Returns lists of the indices that each row stores, `id:weight` where values are not all 1, and whether there are weights."""
    pyarrow = _pyarrow()
    import numpy
    matrix = matrix.tocsr()
    is_weighted = not bool((matrix.data == 1).all())
    if not is_weighted:
        items = pyarrow.array(matrix.indices)
    else:
        items = pyarrow.array([f"{i}:{w!r}" for i, w in zip(matrix.indices.tolist(), matrix.data.astype(float).tolist())])
    return pyarrow.LargeListArray.from_arrays(matrix.indptr.astype(numpy.int64), items), is_weighted


class _Parquet:
    """Streams the row groups of a Parquet file, or of all in a folder, anew each time."""

    def __init__(self, path):
        _pyarrow()
        import pyarrow.dataset
        if not os.path.exists(path):
            raise DataError(f"{path}: cannot open: No such file or directory")
        # With pre_buffer, which is pyarrow's default, what was read of a file stays in memory until the file's end.
        read = pyarrow.dataset.ParquetFragmentScanOptions(pre_buffer=False, use_buffered_stream=True)
        try:
            self.dataset = pyarrow.dataset.dataset(
                path, format=pyarrow.dataset.ParquetFileFormat(default_fragment_scan_options=read))
        except (OSError, ValueError) as problem:
            raise DataError(f"{path}: cannot be read as Parquet: {' '.join(str(problem).split())}") from problem

    def __arrow_c_stream__(self, requested_schema=None):
        scanner = self.dataset.scanner(batch_size=1 << 14, batch_readahead=2, fragment_readahead=1)
        return scanner.to_reader().__arrow_c_stream__(requested_schema)


class _Called:
    """Streams what a function returns, anew each time."""

    def __init__(self, function):
        self.function = function

    def __arrow_c_stream__(self, requested_schema=None):
        rows = self.function()  # a reader is new in each pass, and so need not be collected
        is_reader = type(rows).__name__ in ("RecordBatchReader", "DuckDBPyRelation") and hasattr(rows, "__arrow_c_stream__")
        return (rows if is_reader else stream_of(rows)).__arrow_c_stream__(requested_schema)


def is_parquet(path):
    path = pathlib.Path(path)
    return path.suffix in (".parquet", ".pq") or (path.is_dir() and any(path.glob("**/*.parquet")))


def is_path(rows):
    """Tells a file that the library reads itself, by its path."""
    return isinstance(rows, (str, os.PathLike)) and not is_parquet(rows)


def stream_of(rows):
    """Returns something with __arrow_c_stream__ that has the rows, each time that it is asked."""
    if isinstance(rows, (str, os.PathLike)):
        return _Parquet(os.fspath(rows))
    if isinstance(rows, collections.abc.Mapping):
        return _table_of_dict(rows)
    if hasattr(rows, "tocsr"):
        return _table_of_dict({"ids": rows})
    package, kind = type(rows).__module__.split(".")[0], type(rows).__name__
    if package == "duckdb":  # a relation's stream can be read once
        return rows.arrow() if not hasattr(rows, "to_arrow_table") else rows.to_arrow_table()
    if package == "polars" and kind == "LazyFrame":
        return rows.collect()
    if package == "pandas" and kind == "DataFrame":
        return _table_of_pandas(rows)
    if kind == "RecordBatchReader":  # can be read once, and training reads several times
        return rows.read_all()
    if hasattr(rows, "__arrow_c_stream__") and kind not in ("Series", "ChunkedArray"):
        return rows
    if callable(rows):
        return _Called(rows)
    raise UsageError(f"cannot read rows from {type(rows).__name__}: pass a path, a dict of arrays and SciPy CSR matrices, an "
                     "object with __arrow_c_stream__ (Polars, pandas, pyarrow, DuckDB), or a function that returns one")


def _table_of_pandas(frame):
    pyarrow = _pyarrow()
    try:
        return pyarrow.Table.from_pandas(frame, preserve_index=False)
    except _NO_ARROW as problem:
        for i, name in enumerate(frame.columns):  # names the column, unless the names are what is wrong
            _table_of_dict({name: frame.iloc[:, i]})
        raise DataError(f"the frame does not fit Arrow: {' '.join(str(part) for part in problem.args)}") from problem


class Rows:
    """A dataset of the library over rows of Python."""

    def __init__(self, rows, name):
        stream, self._problems = stream_of(rows), []
        problems = self._problems
        metadata = getattr(getattr(stream, "schema", None), "metadata", None)
        self._weighted = json.loads((metadata or {}).get(_WEIGHTED, "[]"))

        def give(_context, address):
            try:
                _move_stream(stream, address)
                return _library.OK
            except BaseException as problem:  # must not pass through C: raised where the call ends
                problems.append(problem)
                return _library.fail(_library.ERROR_DATA, f"{type(problem).__name__}: {problem}")

        self._opener = _library.StreamOpener(open=_library.OpenStream(give), name=name.encode())
        self.dataset = Dataset()
        _library.call("ph_dataset_create_from_streams", ctypes.byref(self._opener), ctypes.byref(self.dataset))

    def take_problem(self):
        """Returns what a stream raised when it was opened, or None."""
        return self._problems.pop() if self._problems else None

    def default_fields(self, labels):
        names = (ctypes.c_char_p * len(labels))(*[name.encode() for name in labels])
        text = _library.text_of("ph_dataset_default_fields", self.dataset, names, ctypes.c_size_t(len(labels)))
        for name in self._weighted:
            plain = f"{{name: {json.dumps(name)}, kind: id, list: true"
            text = text.replace(plain, f"{plain}, weighted: true")
        return text
