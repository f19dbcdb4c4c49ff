# Made by tools/python_stubs.py; do not edit.
import ctypes
import enum
import os
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any, Literal

import numpy
from numpy.typing import NDArray

_Text = str | bytes | os.PathLike[str]
_DType = Literal["float32", "float16", "bfloat16"]
API_VERSION: int
LIBRARY: str

class Status(enum.IntEnum):
    OK = 0
    ERROR_BUG = -1
    ERROR_USAGE = -2
    ERROR_CONFIG = -3
    ERROR_DATA = -4
    ERROR_CHECKPOINT = -5
    ERROR_MEMORY = -6
    ERROR_DISK = -7
    ERROR_PEER = -8
    ERROR_INTERRUPTED = -9
    ERROR_TERMINATED = -10
    ERROR_DIVERGED = -11

class Mode(enum.IntEnum):
    SYNCHRONOUS = 0
    ASYNCHRONOUS = 1
    BOUNDED = 2

class Order(enum.IntEnum):
    WORKER_ORDER = 0
    ARRIVAL_ORDER = 1

class OnDeath(enum.IntEnum):
    ABORT = 0
    SHRINK = 1

class WaitPolicy(enum.IntEnum):
    AUTO = 0
    SPIN = 1
    SPIN_THEN_SLEEP = 2
    SLEEP = 3

class Transport(enum.IntEnum):
    AUTO = 0
    SHARED_MEMORY = 1
    TCP = 2

class Aggregation(enum.IntEnum):
    TALL = 0
    WIDE = 1

class Log(enum.IntEnum):
    TEXT = 0
    JSON = 1
    NONE = 2

class Results(enum.IntEnum):
    AUTO = 0
    CACHED = 1
    NON_TEMPORAL = 2

class OptimizerKind(enum.IntEnum):
    SGD = 0
    MOMENTUM = 1
    ADAGRAD = 2
    ROWWISE_ADAGRAD = 3
    ADAM = 4
    ADAMW = 5

class DType(enum.IntEnum):
    F32 = 0
    F64 = 1
    I32 = 2
    I64 = 3
    U32 = 4
    U8 = 5
    F16 = 6
    BF16 = 7

class Structure(ctypes.Structure):
    """C structure, zero except its size and the members given; takes text and paths as Python has them."""
    def __init__(self, **members: Any) -> None: ...

class UpdateRule(Structure):
    """struct ph_update_rule."""
    kind: Any
    is_nesterov: Any
    momentum: Any
    beta1: Any
    beta2: Any
    epsilon: Any
    weight_decay: Any

class Optimizer(Structure):
    """struct ph_hub_optimizer; the rule's members are its own, too."""
    is_none: Any
    rule: Any
    learning_rate: Any
    l2: Any
    kind: Any
    is_nesterov: Any
    momentum: Any
    beta1: Any
    beta2: Any
    epsilon: Any
    weight_decay: Any

class Service(Structure):
    """struct ph_hub_service."""
    size: Any
    name: Any
    nonce: Any
    num_workers: Any
    mode: Any
    staleness: Any
    order: Any
    on_death: Any
    is_mean: Any
    clip_norm: Any
    chunk_bytes: Any
    depth: Any
    checkpoint_every: Any
    optimizers: Any
    num_optimizers: Any

class Options(Structure):
    """struct ph_hub_options."""
    size: Any
    address: Any
    secret_file: Any
    transport: Any
    wait: Any
    timeout_ms: Any
    connect_timeout_ms: Any
    has_no_thread: Any
    has_own_parameters: Any
    stop_signal: Any

class KeyOfC(Structure):
    """struct ph_hub_key."""
    num_elements: Any
    dtype: Any
    optimizer: Any
    initial: Any

class ClientInfo(Structure):
    """struct ph_hub_client_info."""
    transport: Any
    why: Any
    chunk_bytes: Any
    num_chunks: Any
    num_cores: Any
    num_workers: Any
    num_contributors: Any

class ServerOptions(Structure):
    """struct ph_hub_server_options."""
    size: Any
    address: Any
    secret_file: Any
    num_threads: Any
    wait: Any
    aggregation: Any
    results: Any
    max_bytes: Any
    max_job_bytes: Any
    max_jobs: Any
    chunk_bytes: Any
    checkpoint_folder: Any
    metrics_address: Any
    trace_path: Any
    log: Any
    log_descriptor: Any
FUNCTIONS: dict

class HubError(RuntimeError):
    """Error of a call: its status, and a line that says what failed, where and why."""
    status: Status
    def __init__(self, status: Status, text: str) -> None: ...

def create_service(
    address: _Text,
    name: _Text,
    nonce: int,
    num_workers: int,
    optimizers: Iterable[Optimizer] | None = None,
    options: Mapping[str, Any] | None = None,
    **settings: Any,
) -> None:
    """Creates the service, unless it exists already with the same settings. Without optimizers, workers pull the sum of
    the gradients, or with is_mean=True their mean. `settings` are members of Service, `options` is a dict of those of
    Options."""

def destroy_service(address: _Text, name: str, nonce: int, **options: Any) -> None: ...
DTYPES: dict

@dataclass
class Key:
    """One of the arrays that a job learns or sums. Rank 0's initial values are the parameters to begin with; those of a
    bfloat16 key are rounded where they are wider, and uint16 are taken for its bits."""
    shape: tuple[int, ...]
    dtype: _DType = 'float32'
    initial: NDArray[Any] | None = None
    optimizer: int = 0
    def __post_init__(self) -> None: ...
    @classmethod
    def of(cls, array: NDArray[Any], optimizer: int = 0) -> Key:
        """Returns a key with the array's shape, type and values."""

class Client:
    """Worker `rank` of a service. `options` are members of Options. At the end of `with` the client leaves the job, unless
    an exception was raised, and is closed. It is also closed when neither it nor any of its arrays is used any more."""
    def __init__(self, address: _Text, service: str, nonce: int, rank: int, **options: Any) -> None: ...
    def init(self, keys: Iterable[Key]) -> int:
        """Creates the keys, the same on all workers, waits for all of them, and returns the iterations done before."""
    def gradient(self, key: int) -> NDArray[Any]:
        """Returns the array that the key's next push sends. Get it and fill it before each push."""
    def parameters(self, key: int) -> NDArray[Any]:
        """Returns what the key's last finished pull brought, valid until the key is pushed again. Read-only, unless
        has_own_parameters."""
    def push_start(self, key: int) -> None: ...
    def pull_start(self, key: int) -> None: ...
    def pushpull_start(self, key: int) -> None: ...
    def wait(self, key: int) -> None: ...
    def wait_all(self) -> None: ...
    def test(self, key: int) -> bool:
        """Returns whether wait(key) would return at once."""
    def set_learning_rate(self, optimizer: int, learning_rate: float) -> None: ...
    def checkpoint(self) -> None: ...
    def describe(self) -> dict[str, Any]:
        """Returns the members of struct ph_hub_client_info as a dict."""
    def leave(self) -> None: ...
    def close(self) -> None:
        """Closes the client. To the hub the worker has failed, unless leave() was called before."""
    def __enter__(self) -> Client: ...
    def __exit__(self, error: type[BaseException] | None, *_: object) -> None: ...

class Server:
    """A hub in a thread of this process, from `with` to its end or close(), which raises the hub's error if it has failed.
    `options` are members of ServerOptions. The hub listens at `address` and `metrics_address` (None: no metrics)."""
    address: str
    metrics_address: str | None
    def __init__(self, **options: Any) -> None: ...
    def close(self) -> None:
        """Ends the hub, entered or not."""
    def __enter__(self) -> Server: ...
    def __exit__(self, error: type[BaseException] | None, *_: object) -> None: ...
