"""Loads the shared library, once a process, and calls it: errors become exceptions with the library's own text."""
import ctypes
import functools
import os
import pathlib

LIBRARY = "libphloem.so.0"
API_VERSION = 1  # PH_API_VERSION of include/phloem/version.h

# ---- errors, by exit code of the program phloem --------------------------------------------------------------------------


class Error(Exception):
    """Error of Phloem: a line that says what failed, where and why. exit_code: that of the program phloem for it."""

    exit_code = 1


class UsageError(Error, ValueError):
    """Wrong arguments."""

    exit_code = 2


class ConfigError(UsageError):
    """An unknown key, a value out of range, or settings that contradict one another."""


class DataError(Error, ValueError):
    """Bad data: the text names row and column."""

    exit_code = 3


class DivergedError(Error, ArithmeticError):
    """A loss, weight or score is not finite."""

    exit_code = 3


class CheckpointError(Error):
    """A run folder that is damaged, missing, or of another training."""

    exit_code = 4


class ResourceError(Error, OSError):
    """Out of memory or disk."""

    exit_code = 5


class OutOfMemoryError(ResourceError, MemoryError):
    """Out of memory: also a training that cannot fit, before its first step."""


class PeerError(Error, ConnectionError):
    """Another process of the job failed."""

    exit_code = 6


class Terminated(Error):
    """Stopped, after saving, because the interpreter ends."""

    exit_code = 143


OK, ERROR_DATA, ERROR_INTERRUPTED = 0, -4, -9
_ERRORS = {-2: UsageError, -3: ConfigError, -4: DataError, -5: CheckpointError, -6: OutOfMemoryError, -7: ResourceError,
           -8: PeerError, -9: KeyboardInterrupt, -10: Terminated, -11: DivergedError}

# ---- structures of the public headers ------------------------------------------------------------------------------------


class Structure(ctypes.Structure):
    """C structure that is zero except for its size and the members given."""

    def __init__(self, **members):
        if self._fields_[0][0] == "size":
            members["size"] = ctypes.sizeof(self)
        super().__init__(**members)


OnProgress = ctypes.CFUNCTYPE(ctypes.c_int, ctypes.c_void_p, ctypes.c_void_p)
OnNote = ctypes.CFUNCTYPE(None, ctypes.c_void_p, ctypes.c_char_p)
OpenStream = ctypes.CFUNCTYPE(ctypes.c_int, ctypes.c_void_p, ctypes.c_void_p)


class Observer(Structure):
    """struct ph_train_observer."""

    _fields_ = [("size", ctypes.c_size_t), ("context", ctypes.c_void_p), ("on_progress", OnProgress),
                ("on_start", ctypes.c_void_p), ("on_note", OnNote), ("on_watch", ctypes.c_void_p)]


class TrainOptions(Structure):
    """struct ph_train_options."""

    _fields_ = [("size", ctypes.c_size_t), ("folder", ctypes.c_char_p), ("is_resumed", ctypes.c_bool)]
    _fields_ += [(name, ctypes.c_void_p) for name in ("train_dataset", "valid_dataset", "test_dataset")]
    _fields_ += [("observer", ctypes.POINTER(Observer)), ("stop_signal", ctypes.POINTER(ctypes.c_int))]
    _fields_ += [(name, ctypes.c_void_p) for name in ("comm", "reducer")]
    _fields_ += [(name, ctypes.c_char_p) for name in ("profile_path", "trace_path")]
    _fields_ += [("first_bad_rows", ctypes.c_void_p * 6), ("summary_json", ctypes.POINTER(ctypes.c_void_p))]


class StreamOpener(Structure):
    """struct ph_stream_opener."""

    _fields_ = [("size", ctypes.c_size_t), ("open", OpenStream), ("context", ctypes.c_void_p), ("name", ctypes.c_char_p)]


class SessionOptions(Structure):
    """struct ph_session_options."""

    _fields_ = [("size", ctypes.c_size_t), ("max_batch", ctypes.c_size_t), ("num_threads", ctypes.c_size_t),
                ("list_length", ctypes.c_size_t), ("row_format", ctypes.c_int), ("precision", ctypes.c_int)]


class Metrics(ctypes.Structure):
    """struct ph_metrics."""

    _fields_ = [("num_samples", ctypes.c_uint64)]
    _fields_ += [(name, ctypes.c_double) for name in ("auc", "auc_error", "logloss", "ne", "calibration", "grouped_auc",
                                                      "base_rate")]


class Cell(ctypes.Structure):
    """struct ph_cell."""

    _fields_ = [("kind", ctypes.c_int), ("text", ctypes.c_char_p), ("length", ctypes.c_size_t),
                ("integer", ctypes.c_int64), ("real", ctypes.c_double), ("integers", ctypes.c_void_p),
                ("weights", ctypes.c_void_p), ("count", ctypes.c_size_t)]


CELL_BLANK, CELL_TEXT, CELL_INTEGER = 0, 1, 2

# ---- calls ---------------------------------------------------------------------------------------------------------------

_RESULTS = {"ph_version": ctypes.c_char_p, "ph_error_text": ctypes.c_char_p, "ph_config_destroy": None,
            "ph_dataset_destroy": None, "ph_session_close": None, "ph_text_free": None,
            "ph_session_num_tasks": ctypes.c_size_t, "ph_session_num_columns": ctypes.c_size_t,
            "ph_session_column_name": ctypes.c_char_p, "ph_session_embedding_dim": ctypes.c_size_t}


def path_of(variable, fallback):
    """Returns the library to load: the file that the environment's variable names, else the wheel's own, else the fallback,
    which the loader looks for."""
    own = pathlib.Path(__file__).parent / "lib" / "libphloem.so"
    return os.environ.get(variable) or (str(own) if own.exists() else fallback)


@functools.cache
def library():
    loaded = ctypes.CDLL(path_of("PHLOEM_LIBRARY", LIBRARY))
    for name, result in _RESULTS.items():
        getattr(loaded, name).restype = result
    if loaded.ph_api_version() != API_VERSION:
        raise ImportError(f"{loaded._name} has version {loaded.ph_api_version()} of the API; this package needs {API_VERSION}")
    return loaded


def error(status):
    """Returns the exception for a status, with the text that this thread's last failure recorded."""
    return _ERRORS.get(status, Error)(library().ph_error_text().decode(errors="replace"))


def call(name, *arguments):
    """Calls a function that returns a status; raises what it says."""
    status = getattr(library(), name)(*arguments)
    if status != OK:
        raise error(status)


def fail(status, text):
    """Records an error for this thread, as a callback of the library does."""
    return library().ph_fail(status, b"%s", text.encode())


def take_text(address):
    """Returns a text that the library gave, and frees it."""
    text = ctypes.string_at(address).decode()
    library().ph_text_free(address)
    return text


def text_of(name, *arguments):
    """Calls a function whose last parameter gives a text."""
    address = ctypes.c_void_p()
    call(name, *arguments, ctypes.byref(address))
    return take_text(address)


class Handle(ctypes.c_void_p):
    """Object of the library, destroyed when nothing refers to it."""

    destroy = None

    def __del__(self):
        if self.value and self.destroy:
            getattr(library(), self.destroy)(self)
            self.value = None


class Config(Handle):
    destroy = "ph_config_destroy"


class Dataset(Handle):
    destroy = "ph_dataset_destroy"


class Session(Handle):
    destroy = "ph_session_close"
