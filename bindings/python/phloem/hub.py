"""Phloem's parameter hub for Python: include/phloem/hub.h and hub_server.h by ctypes, with NumPy arrays over the memory that
gradients and parameters live in. What the calls do, and who may call them when, is written there and in docs/HUB.md.

    sgd = Optimizer(kind=OptimizerKind.SGD, learning_rate=0.1)
    create_service(address, "job", nonce, num_workers=2, optimizers=[sgd])
    with Client(address, "job", nonce, rank) as client:
        client.init([Key.of(weights), Key((10,))])
        client.gradient(0)[:] = ...
        client.pushpull_start(0)
        client.wait(0)
        ... = client.parameters(0)

Arrays of gradients and parameters are the client's memory: they must not be touched after close(). A client belongs to
one thread at a time; every call lets other Python threads run, and a wait is not interrupted by Ctrl-C before it ends.
The library is the file that $PHLOEM_HUB_LIBRARY names, else the wheel's, else libphloem_hub as the loader finds it.
"""
import ctypes
import dataclasses
import enum
import functools
import math
import os
import threading
import weakref

import numpy

from phloem._library import path_of

API_VERSION = 2  # PH_HUB_API_VERSION
LIBRARY = "libphloem_hub.so.0"

# ---- the header's words ----------------------------------------------------------------------------------------------


class Status(enum.IntEnum):
    OK, ERROR_BUG, ERROR_USAGE, ERROR_CONFIG, ERROR_DATA, ERROR_CHECKPOINT = 0, -1, -2, -3, -4, -5
    ERROR_MEMORY, ERROR_DISK, ERROR_PEER, ERROR_INTERRUPTED, ERROR_TERMINATED, ERROR_DIVERGED = -6, -7, -8, -9, -10, -11


Mode = enum.IntEnum("Mode", "SYNCHRONOUS ASYNCHRONOUS BOUNDED", start=0)
Order = enum.IntEnum("Order", "WORKER_ORDER ARRIVAL_ORDER", start=0)
OnDeath = enum.IntEnum("OnDeath", "ABORT SHRINK", start=0)
WaitPolicy = enum.IntEnum("WaitPolicy", "AUTO SPIN SPIN_THEN_SLEEP SLEEP", start=0)
Transport = enum.IntEnum("Transport", "AUTO SHARED_MEMORY TCP", start=0)
Aggregation = enum.IntEnum("Aggregation", "TALL WIDE", start=0)
Log = enum.IntEnum("Log", "TEXT JSON NONE", start=0)
Results = enum.IntEnum("Results", "AUTO CACHED NON_TEMPORAL", start=0)
OptimizerKind = enum.IntEnum("OptimizerKind", "SGD MOMENTUM ADAGRAD ROWWISE_ADAGRAD ADAM ADAMW", start=0)
DType = enum.IntEnum("DType", "F32 F64 I32 I64 U32 U8 F16 BF16", start=0)


class Structure(ctypes.Structure):
    """C structure, zero except its size and the members given; takes text and paths as Python has them."""

    def __init__(self, **members):
        known = {name for name, _ in self._fields_}
        for inner in getattr(self, "_anonymous_", ()):
            known |= {name for name, _ in dict(self._fields_)[inner]._fields_}
        for name, value in members.items():
            if name not in known:
                raise TypeError(f"{type(self).__name__} has no member '{name}'")
            members[name] = os.fsencode(value) if isinstance(value, (str, os.PathLike)) else value
        if "size" in known:
            members["size"] = ctypes.sizeof(self)
        super().__init__(**members)


class UpdateRule(Structure):
    """struct ph_update_rule."""

    _fields_ = [("kind", ctypes.c_int), ("is_nesterov", ctypes.c_bool)]
    _fields_ += [(name, ctypes.c_double) for name in ("momentum", "beta1", "beta2", "epsilon", "weight_decay")]


class Optimizer(Structure):
    """struct ph_hub_optimizer; the rule's members are its own, too."""

    _anonymous_ = ("rule",)
    _fields_ = [("is_none", ctypes.c_bool), ("rule", UpdateRule), ("learning_rate", ctypes.c_float),
                ("l2", ctypes.c_float)]


class Service(Structure):
    """struct ph_hub_service."""

    _fields_ = [("size", ctypes.c_size_t), ("name", ctypes.c_char_p), ("nonce", ctypes.c_uint64),
                ("num_workers", ctypes.c_uint32), ("mode", ctypes.c_int), ("staleness", ctypes.c_uint32),
                ("order", ctypes.c_int), ("on_death", ctypes.c_int), ("is_mean", ctypes.c_bool),
                ("clip_norm", ctypes.c_float), ("chunk_bytes", ctypes.c_uint32), ("depth", ctypes.c_uint32),
                ("checkpoint_every", ctypes.c_uint64), ("optimizers", ctypes.POINTER(Optimizer)),
                ("num_optimizers", ctypes.c_size_t)]


class Options(Structure):
    """struct ph_hub_options."""

    _fields_ = [("size", ctypes.c_size_t), ("address", ctypes.c_char_p), ("secret_file", ctypes.c_char_p),
                ("transport", ctypes.c_int), ("wait", ctypes.c_int), ("timeout_ms", ctypes.c_uint32),
                ("connect_timeout_ms", ctypes.c_uint32), ("has_no_thread", ctypes.c_bool),
                ("has_own_parameters", ctypes.c_bool), ("stop_signal", ctypes.POINTER(ctypes.c_int))]


class KeyOfC(Structure):
    """struct ph_hub_key."""

    _fields_ = [("num_elements", ctypes.c_size_t), ("dtype", ctypes.c_int), ("optimizer", ctypes.c_uint32),
                ("initial", ctypes.c_void_p)]


class ClientInfo(Structure):
    """struct ph_hub_client_info."""

    _fields_ = [("transport", ctypes.c_char_p), ("why", ctypes.c_char_p)]
    _fields_ += [(name, ctypes.c_uint32) for name in ("chunk_bytes", "num_chunks", "num_cores", "num_workers",
                                                      "num_contributors")]


class ServerOptions(Structure):
    """struct ph_hub_server_options."""

    _fields_ = [("size", ctypes.c_size_t), ("address", ctypes.c_char_p), ("secret_file", ctypes.c_char_p),
                ("num_threads", ctypes.c_uint64), ("wait", ctypes.c_int), ("aggregation", ctypes.c_int),
                ("results", ctypes.c_int), ("max_bytes", ctypes.c_uint64), ("max_job_bytes", ctypes.c_uint64),
                ("max_jobs", ctypes.c_uint64), ("chunk_bytes", ctypes.c_uint64), ("checkpoint_folder", ctypes.c_char_p),
                ("metrics_address", ctypes.c_char_p), ("trace_path", ctypes.c_char_p), ("log", ctypes.c_int),
                ("log_descriptor", ctypes.c_int)]


# ---- the library -----------------------------------------------------------------------------------------------------

_HANDLE, _KEY, _MADE = ctypes.c_void_p, ctypes.c_size_t, ctypes.POINTER(ctypes.c_void_p)
_STATUS = "status"  # an int that is checked
FUNCTIONS = {  # name without ph_hub_: what it returns, and its parameters
    "api_version": (ctypes.c_int, []),
    "create_service": (_STATUS, [ctypes.POINTER(Options), ctypes.POINTER(Service)]),
    "destroy_service": (_STATUS, [ctypes.POINTER(Options), ctypes.c_char_p, ctypes.c_uint64]),
    "connect": (_STATUS, [ctypes.POINTER(Options), ctypes.c_char_p, ctypes.c_uint64, ctypes.c_uint32, _MADE]),
    "init": (_STATUS, [_HANDLE, ctypes.POINTER(KeyOfC), ctypes.c_size_t, ctypes.POINTER(ctypes.c_uint64)]),
    "gradient": (ctypes.c_void_p, [_HANDLE, _KEY]),
    "parameters": (ctypes.c_void_p, [_HANDLE, _KEY]),
    "push_start": (_STATUS, [_HANDLE, _KEY]),
    "pull_start": (_STATUS, [_HANDLE, _KEY]),
    "pushpull_start": (_STATUS, [_HANDLE, _KEY]),
    "wait": (_STATUS, [_HANDLE, _KEY]),
    "wait_all": (_STATUS, [_HANDLE]),
    "test": (_STATUS, [_HANDLE, _KEY, ctypes.POINTER(ctypes.c_bool)]),
    "set_learning_rate": (_STATUS, [_HANDLE, ctypes.c_uint32, ctypes.c_float]),
    "checkpoint": (_STATUS, [_HANDLE]),
    "client_describe": (None, [_HANDLE, ctypes.POINTER(ClientInfo)]),
    "leave": (_STATUS, [_HANDLE]),
    "client_destroy": (None, [_HANDLE]),
    "server_create": (_STATUS, [ctypes.POINTER(ServerOptions), _MADE]),
    "server_address": (ctypes.c_char_p, [_HANDLE]),
    "server_metrics_address": (ctypes.c_char_p, [_HANDLE]),
    "server_run": (_STATUS, [_HANDLE, ctypes.c_void_p]),
    "server_stop": (None, [_HANDLE]),
    "server_destroy": (None, [_HANDLE]),
}


class HubError(RuntimeError):
    """Error of a call: its status, and a line that says what failed, where and why."""

    def __init__(self, status, text):
        super().__init__(text)
        self.status = status


@functools.cache
def _library():
    library = ctypes.CDLL(path_of("PHLOEM_HUB_LIBRARY", LIBRARY))
    library.ph_error_text.restype = ctypes.c_char_p
    if library.ph_hub_api_version() != API_VERSION:
        raise ImportError(f"{library._name} has version {library.ph_hub_api_version()} of the hub's interface; "
                          f"this module needs version {API_VERSION}")
    return library


def _error_text():
    return _library().ph_error_text().decode(errors="replace")


def _check(status, _function, _arguments):
    if status != Status.OK:
        raise HubError(Status(status), _error_text())


def _check_memory(address, _function, _arguments):
    if address is None:
        raise HubError(Status.ERROR_USAGE, _error_text())
    return address


_CHECKED = {_STATUS: (ctypes.c_int, _check), ctypes.c_void_p: (ctypes.c_void_p, _check_memory)}


@functools.cache
def _function(name):
    function = getattr(_library(), f"ph_hub_{name}")
    result, function.argtypes = FUNCTIONS[name]
    if result in _CHECKED:
        result, function.errcheck = _CHECKED[result]
    function.restype = result
    return function


def _call(name, *arguments):
    return _function(name)(*arguments)


def _end_of(owner, name, made, *kept):
    """Returns a finalizer that calls the function once: when called itself, or when its owner is no longer used."""
    finalizer = weakref.finalize(owner, lambda _: _call(name, made), kept)
    finalizer.atexit = False  # the end of the process ends all
    return finalizer


# ---- services --------------------------------------------------------------------------------------------------------


def create_service(address, name, nonce, num_workers, optimizers=None, options=None, **settings):
    """Creates the service, unless it exists already with the same settings. Without optimizers, workers pull the sum of
    the gradients, or with is_mean=True their mean. `settings` are members of Service, `options` is a dict of those of
    Options."""
    optimizers = optimizers or [Optimizer(is_none=True)]
    service = Service(name=name, nonce=nonce, num_workers=num_workers, num_optimizers=len(optimizers),
                      optimizers=(Optimizer * len(optimizers))(*optimizers), **settings)
    _call("create_service", Options(address=address, **options or {}), service)


def destroy_service(address, name, nonce, **options):
    _call("destroy_service", Options(address=address, **options), name.encode(), nonce)


# ---- a worker's side -------------------------------------------------------------------------------------------------

DTYPES = {  # of keys
    "float32": (DType.F32, numpy.float32),
    "float16": (DType.F16, numpy.float16),
    "bfloat16": (DType.BF16, numpy.uint16),  # which NumPy has not: the 16 bits of each number
}


def _bfloat16_bits(values):
    """Returns the bits of each number in uint16: unchanged for bfloat16 (such as that of ml_dtypes) and uint16, else those
    of the nearest bfloat16, ties to even."""
    if values.dtype == numpy.uint16 or (values.dtype.name == "bfloat16" and values.dtype.itemsize == 2):
        return values.view(numpy.uint16)
    if not numpy.issubdtype(values.dtype, numpy.floating):
        raise TypeError("initial values of a bfloat16 key must be bfloat16, its bits in uint16, or floats, "
                        f"not {values.dtype}")
    with numpy.errstate(over="ignore", invalid="ignore"):
        near = values.astype(numpy.float32)
        lost = numpy.sign(numpy.abs(values) - numpy.abs(near).astype(values.dtype))  # of what float32 cannot hold
    bits = near.view(numpy.uint32).astype(numpy.int64)
    is_half_way = numpy.isfinite(near) & (bits & 0xFFFF == 0x8000)
    bits += numpy.where(is_half_way, lost, 0).astype(numpy.int64)
    rounded = (bits + 0x7FFF + (bits >> 16 & 1)) >> 16
    return numpy.where(numpy.isnan(near), bits >> 16 | 0x40, rounded).astype(numpy.uint16)


@dataclasses.dataclass
class Key:
    """One of the arrays that a job learns or sums. Rank 0's initial values are the parameters to begin with; those of a
    bfloat16 key are rounded where they are wider, and uint16 are taken for its bits."""

    shape: tuple
    dtype: str = "float32"
    initial: numpy.ndarray = None  # zeros
    optimizer: int = 0  # index into the service's

    def __post_init__(self):
        if self.dtype not in DTYPES:
            raise TypeError(f"the dtype of a key must be one of {', '.join(DTYPES)}, not {self.dtype}")

    @classmethod
    def of(cls, array, optimizer=0):
        """Returns a key with the array's shape, type and values."""
        return cls(array.shape, array.dtype.name, array, optimizer)

    def _to_c(self):
        """Returns a struct ph_hub_key and the array that it borrows from."""
        dtype, numpy_type = DTYPES[self.dtype]
        values = None
        if self.initial is not None:
            values = numpy.ascontiguousarray(self.initial)
            values = _bfloat16_bits(values) if dtype == DType.BF16 else values.astype(numpy_type)
            values = values.reshape(self.shape)
        return KeyOfC(num_elements=math.prod(self.shape), dtype=dtype, optimizer=self.optimizer,
                      initial=None if values is None else values.ctypes.data), values


class Client:
    """Worker `rank` of a service. `options` are members of Options. At the end of `with` the client leaves the job, unless
    an exception was raised, and is closed. It is also closed when neither it nor any of its arrays is used any more."""

    def __init__(self, address, service, nonce, rank, **options):
        made = ctypes.c_void_p()
        self._made, self._keys = None, []
        self._has_own_parameters = options.get("has_own_parameters", False)
        _call("connect", Options(address=address, **options), service.encode(), nonce, rank, ctypes.byref(made))
        self._made, self._end = made, _end_of(self, "client_destroy", made)

    def _handle(self, key=None):
        if self._made is None:
            raise HubError(Status.ERROR_USAGE, "the client is closed")
        if key is not None and not 0 <= key < len(self._keys):
            raise HubError(Status.ERROR_USAGE, f"key {key} does not exist: the client has {len(self._keys)} keys")
        return self._made

    def init(self, keys):
        """Creates the keys, the same on all workers, waits for all of them, and returns the iterations done before."""
        keys = list(keys)
        described = [key._to_c() for key in keys]
        iteration = ctypes.c_uint64()
        of_c = (KeyOfC * len(keys))(*(of_c for of_c, _ in described))
        _call("init", self._handle(), of_c, len(keys), ctypes.byref(iteration))
        self._keys = keys
        return iteration.value

    def _array(self, name, key, is_writeable):
        address, shape = _call(name, self._handle(key), key), self._keys[key].shape
        dtype = numpy.dtype(DTYPES[self._keys[key].dtype][1])
        memory = (ctypes.c_char * (math.prod(shape) * dtype.itemsize)).from_address(address)
        memory.client = self  # which whoever has the array keeps
        array = numpy.frombuffer(memory, dtype).reshape(shape)
        array.flags.writeable = is_writeable
        return array

    def gradient(self, key):
        """Returns the array that the key's next push sends. Get it and fill it before each push."""
        return self._array("gradient", key, True)

    def parameters(self, key):
        """Returns what the key's last finished pull brought, valid until the key is pushed again. Read-only, unless
        has_own_parameters."""
        return self._array("parameters", key, self._has_own_parameters)

    def push_start(self, key):
        _call("push_start", self._handle(key), key)

    def pull_start(self, key):
        _call("pull_start", self._handle(key), key)

    def pushpull_start(self, key):
        _call("pushpull_start", self._handle(key), key)

    def wait(self, key):
        _call("wait", self._handle(key), key)

    def wait_all(self):
        _call("wait_all", self._handle())

    def test(self, key):
        """Returns whether wait(key) would return at once."""
        is_done = ctypes.c_bool()
        _call("test", self._handle(key), key, ctypes.byref(is_done))
        return is_done.value

    def set_learning_rate(self, optimizer, learning_rate):
        _call("set_learning_rate", self._handle(), optimizer, learning_rate)

    def checkpoint(self):
        _call("checkpoint", self._handle())

    def describe(self):
        """Returns the members of struct ph_hub_client_info as a dict."""
        info = ClientInfo()
        _call("client_describe", self._handle(), ctypes.byref(info))
        values = {name: getattr(info, name) for name, _ in ClientInfo._fields_}
        return {name: value.decode() if isinstance(value, bytes) else value for name, value in values.items()}

    def leave(self):
        _call("leave", self._handle())

    def close(self):
        """Closes the client. To the hub the worker has failed, unless leave() was called before."""
        if self._made is not None:
            self._made = None
            self._end()

    def __enter__(self):
        return self

    def __exit__(self, error, *_):
        try:
            if error is None and self._made is not None:
                self.leave()
        finally:
            self.close()


# ---- the hub itself --------------------------------------------------------------------------------------------------


class Server:
    """A hub in a thread of this process, from `with` to its end or close(), which raises the hub's error if it has failed.
    `options` are members of ServerOptions. The hub listens at `address` and `metrics_address` (None: no metrics)."""

    def __init__(self, **options):
        made = ctypes.c_void_p()
        self._made = self._error = self._thread = None
        self._options = ServerOptions(**options)  # whose texts the hub borrows
        _call("server_create", self._options, ctypes.byref(made))
        self._made, self._end = made, _end_of(self, "server_destroy", made, self._options)
        self.address = _call("server_address", made).decode()
        metrics_address = _call("server_metrics_address", made)
        self.metrics_address = None if metrics_address is None else metrics_address.decode()

    def _run(self):
        try:
            _call("server_run", self._made, None)
        except HubError as error:
            self._error = error

    def close(self):
        """Ends the hub, entered or not."""
        if self._made is None:
            return
        if self._thread is not None:
            _call("server_stop", self._made)
            self._thread.join()
        self._made = None
        self._end()
        if self._error is not None:
            raise self._error

    def __enter__(self):
        if self._made is None:
            raise HubError(Status.ERROR_USAGE, "the hub is closed")
        self._thread = self._thread or threading.Thread(target=self._run, daemon=True)
        self._thread.start()
        return self

    def __exit__(self, *_):
        self.close()
