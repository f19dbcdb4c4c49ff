# Made by tools/python_stubs.py; do not edit.
import os
import pathlib
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any, Literal, Protocol, TextIO

import numpy
from numpy.typing import NDArray
from sklearn.base import BaseEstimator, ClassifierMixin

from phloem import hub as hub

class _Frame(Protocol):
    def __arrow_c_stream__(self, requested_schema: object | None = None) -> object: ...

class _Sparse(Protocol):
    def tocsr(self) -> Any: ...

_Path = str | os.PathLike[str]
_Rows = _Path | _Frame | _Sparse | Mapping[Any, Any] | Callable[[], Any]
_Config = _Path | Mapping[str, Any] | None
_Callback = Callable[[dict[str, Any]], object]
_Set = Mapping[str, Any] | None
__version__: str

def train(
    config: _Config = None,
    train: _Rows | None = None,
    valid: _Rows | None = None,
    test: _Rows | None = None,
    *,
    out: _Path | None = None,
    set: _Set = None,
    callbacks: Iterable[_Callback] | _Callback = (),
    resume: bool = False,
    label: str | Sequence[str] = 'label',
    fields: str | Sequence[Mapping[str, Any]] | None = None,
    progress: bool | None = None,
) -> Run:
    """Trains a model and returns its Run.

    config      a path, a text of YAML, or a dict: the keys of docs/CONFIG.md; None: the defaults
    train, valid, test
                rows in the place of data.train, data.valid and data.test: a path; a frame (pandas, Polars, pyarrow, DuckDB:
                anything with __arrow_c_stream__); a dict of arrays and SciPy CSR matrices; a Parquet file or folder, which
                is streamed; or a function that returns one of them, called for each pass
    out         the run's folder; None: a temporary one, which goes with the Run
    set         settings over the config, by their whole names: {"train.epochs": 3}; phloem.schema() lists them
    callbacks   functions called with a dict for each report ("event": "train"), evaluation ("valid") and note ("note");
                what one raises ends the training, after saving, and arrives here
    resume      True: goes on with the training in `out`, to the same bits as if it had not been stopped
    label       the name of the label's column, or a list of them, for fields by default where the config has none
    fields      data.fields in the place of the config's, as default_fields gives them, or a list of dicts
    progress    True: a live line of progress on stderr; None: on a terminal or in a notebook

    Ctrl-C saves and raises KeyboardInterrupt. Raises a phloem.Error, with the program's own text."""

class Run:
    """A training that has ended, and its folder. Without `out` the folder is a temporary one, which goes with the run: a
    pickled run takes the model and the reports along."""
    folder: pathlib.Path
    def __init__(self, folder: _Path, temporary: Any = None) -> None: ...
    @property
    def summary(self) -> dict[str, Any]:
        """summary.json as a dict: steps, samples_per_s, parameters, checkpoint_sha256, ..."""
    @property
    def metrics(self) -> dict[str, Any]:
        """The best model's metrics: {"valid": {"auc": ...}, "test": {...}}, for the splits that there are."""
    @property
    def history(self) -> list[dict[str, Any]]:
        """Reports and evaluations in their order, as the dicts of metrics.jsonl."""
    @property
    def report(self) -> pathlib.Path:
        """The path of report.html."""
    @property
    def model(self) -> Model:
        """The best model (phloem.load(folder)), opened once."""
    def predict(self, rows: _Rows) -> NDArray[numpy.float32]: ...
    def evaluate(self, rows: _Rows) -> Any: ...

class ProgressLine:
    """Callback that keeps a line of progress up to date, on a terminal or in a notebook."""
    stream: TextIO
    def __init__(self, stream: TextIO | None = None) -> None: ...
    @staticmethod
    def is_wanted() -> bool: ...
    def __call__(self, event: dict[str, Any]) -> None: ...

def default_fields(rows: _Rows, label: str | Sequence[str] = 'label') -> str:
    """Returns the fields that phloem.train gives the columns of a frame by their types, as YAML to print, edit and put into
    a config: text, integers, booleans and categories become ids, floats dense features, lists several ids.
    label: the name of the label's column, or a list of names."""

def load(folder: _Path, threads: int = 0) -> Model:
    """Opens the model of a run's folder. threads: calls that are served at once; 0: as many as there are processors."""

class Model:
    """The model of a run's folder, ready to score. Any number of threads may use it."""
    folder: pathlib.Path
    num_labels: int
    def __init__(self, folder: _Path, threads: int = 0) -> None: ...
    @property
    def columns(self) -> list[str]:
        """The names of the columns that the model needs, in the order of the training data."""
    def predict(self, rows: _Rows) -> NDArray[numpy.float32]:
        """Returns the probabilities of rows (anything that phloem.train takes), float32: (n,), or (n, labels) for a model
        of several labels. Columns are found by name; others are ignored."""
    def evaluate(self, rows: _Rows) -> Any:
        """Returns the metrics over rows with their labels, as a dict (of several labels: a list of dicts); None where the
        rows do not define one, as an AUC of one class."""
    def state_dict(self) -> dict[str, NDArray[Any]]:
        """Returns the weights by their names, as NumPy arrays over the mapped file, without a copy: writing to one changes
        this process's view alone. bfloat16 comes as ml_dtypes.bfloat16 where that is installed, else as its bits."""
    def embedding(self, feature: str, ids: Iterable[Any]) -> NDArray[numpy.float32]:
        """Returns the embeddings (n, dimension) of ids of a feature, encoded as in training: an unknown id, None and NaN give
        the row of what is unknown."""

def compare(configs: Iterable[_Config], out: _Path, *, seeds: int | Sequence[int] = 3, set: _Set = None) -> dict[str, Any]:
    """Trains each config (a path, a text or a dict) with several seeds; returns compare.json as a dict. Tables and a page stay
    in `out`. seeds: their number, or a list of them."""

def tune(config: _Config, out: _Path, *, set: _Set = None) -> dict[str, Any]:
    """Searches the ranges under "tune" of a config; returns tune.json as a dict. The folder `out` keeps each trial."""

def plan(config: _Config, world: int, *, set: _Set = None) -> str:
    """Places the tables of a config on `world` ranks; returns the plan as YAML, for parallel.plan."""

def inspect(what: _Path) -> str:
    """Returns what phloem inspect prints of a file or folder: data, a checkpoint, a config."""

def schema() -> list[dict[str, Any]]:
    """Returns the schema of settings: a list of sections {section, help, keys}; keys are dicts {key, type, default, range,
    help, may_change_on_resume}."""

class Classifier(ClassifierMixin, BaseEstimator):
    """Binary classifier over frames, dicts, CSR matrices and arrays. After fit: classes_, n_features_in_, feature_names_in_ (of
    frames), run_ (the phloem.Run).

    config
        More settings, as phloem.train takes them: {"data": {"fields": [...]}}
    early_stopping
        True: a validation_fraction of the rows decides when training stops. None: only where eval_set is given.
    seed
        Seed of initial weights, shuffling and dropout.
    threads
        Number of threads that compute. 0: as many as this process may run on. The result does not depend on it.
    team
        Kind of the threads that compute. pthread: threads of Phloem, which sleep when idle; fewer of them compute while
        other processes keep a core busy. openmp: threads of libgomp. The result does not depend on it.
    model
        Model; `phloem models` lists them. A model with keys of its own takes them under model.<kind>; `phloem models
        KIND` explains these.
    embedding_dim
        Length of the embedding vector of an id.
    embedding_init_std
        Standard deviation of the normal distribution that initial embeddings are drawn from. Other weights start by
        Xavier's rule, biases at 0.
    hidden_units
        Widths of the hidden layers of the perceptron, in models that have one.
    bottom_units
        Widths of the hidden layers of the bottom perceptron, which turns the dense features into one vector of
        embedding_dim, in models that have one.
    top_units
        dlrm: widths of the hidden layers over the interaction. Empty: hidden_units.
    batch_norm
        true: batch norm in each hidden layer: linear, batch norm, activation, dropout.
    block_norm
        true: block norm in its place: x / sqrt(mean square + 1e-6) over blocks of 256 features, without parameters.
        Beside batch_norm it is an error.
    bias
        Linear layers that have a bias. all: each. last: that of the logits alone.
    dropout
        Share of the outputs of each hidden layer that training drops. 0: no dropout.
    activation
        Activation of hidden layers. identity: x. relu: max(x, 0). sigmoid: 1 / (1 + exp(-x)). hard_swish: x clamp(x +
        3, 0, 6) / 6.
    pooling
        Pooling of the vectors of several ids of a field. sum: their sum. mean: their mean.
    interaction
        dlrm: interaction of the vectors. dot: all pairwise dot products. cat: the vectors side by side.
    towers
        Towers of features, as in "user: C1, C2 | item: C3, C4", for dnn, dlrm, dcn, dcn_v2 and wukong: layers of its
        own (tower_module) turn the embeddings of each tower into fewer vectors. auto: the towers of tower_file. Empty:
        none.
    tower_file
        File of the towers for towers: auto. Empty: towers.yaml beside the config.
    tower_module
        Layers of a tower of F features. linear: tower_outputs F vectors that are linear in all of its embeddings,
        beside tower_feature_outputs vectors for each feature, linear in its embedding. cross: a cross layer before
        these. identity: the embeddings as they are.
    tower_dim
        Length of a tower's vectors. 0: embedding_dim.
    tower_outputs
        Number of a tower's vectors of all its features, for each feature; c in the literature.
    tower_feature_outputs
        Number of a tower's vectors of one feature, for each feature; p in the literature.
    epochs
        Maximum number of passes over data.train.
    batch_size
        Samples of a step, all ranks together.
    accumulation_steps
        Number of micro-batches that a step's batch is cut into, at most batch_size. They run one after another, their
        gradients are added up, and the weights are updated once: less memory and, but for rounding, the same result.
        Only batch norm differs: its statistics are of a micro-batch.
    max_steps
        Maximum number of steps. 0: no limit. A resumed training must keep it where schedule cosine ends with it
        (schedule_steps: 0).
    precision
        Arithmetic of linear layers. fp32: 32 bits. bf16: multiplies numbers of 16 bits and sums in fp32, forward and
        backward; weights, their gradients and optimizers stay fp32.
    recipes
        File that names products that are computed in fewer bits, forward and for the input's gradient apart, as phloem
        precision writes it. Gradients of weights stay fp32. Empty: no product is.
    probe_steps
        Steps between two looks at the rows that enter products and at weights, from whose distributions phloem
        precision predicts what fewer bits lose; the last one is in probe.safetensors. A look each hundred steps costs
        less than 1 % of the training. 0: none.
    row_format
        Number format of the rows of embedding tables; arithmetic and optimizer slots stay fp32. fp32: 32 bits. fp16,
        bf16: half the memory; updates are rounded at random, without bias; values beyond 65504 become infinite in fp16.
        bf16_split: lookups read bf16; the other 16 bits are kept apart, so that updates are those of fp32.
    deterministic
        true: the same bits for any number of threads. false: the matrix library threads its products itself, which
        requires team: openmp.
    evaluate_steps
        Steps between evaluations on data.valid, besides the one after each epoch. 0: only after epochs.
    selection
        Metric on data.valid that selects the best model, which is kept. auc: the highest. logloss: the lowest.
    patience
        Evaluations in a row without improvement after which training stops. 0: never. An evaluation whose metric is
        undefined, such as AUC with labels of one class, does not count; where all are, the last model is kept. A
        resumed training may only raise it, or set it to 0.
    schedule
        Learning rate over time, after warm-up. constant: stays. step: multiplied by schedule_factor every
        schedule_steps steps. cosine: falls along a half cosine to schedule_factor times itself. plateau: multiplied by
        schedule_factor after each evaluation without improvement.
    warmup_steps
        Steps over which the learning rate rises linearly from 0. 0: no warm-up.
    schedule_steps
        schedule step: steps between two cuts. schedule cosine: step at which it ends; 0: max_steps.
    schedule_factor
        Factor of the learning rate: at each cut of the schedules step and plateau, at the end of cosine.
    min_learning_rate
        Least learning rate that a schedule reaches after warm-up.
    max_gradient_norm
        Greatest Euclidean norm of all gradients together, tables included; greater ones are scaled down to it. 0: no
        clipping.
    non_finite
        Reaction to a loss or gradients that are not finite. stop: training ends with an error; gradients are checked
        only where max_gradient_norm is set, else the next loss shows them. skip: the step is left out and counted.
    report_seconds
        Seconds between two progress reports, each also a line of metrics.jsonl. 0: a report each step.
    checkpoint_seconds
        Seconds between two checkpoints to resume from. 0: none by time. Unless this and checkpoint_steps are 0, each
        epoch ends with one, too.
    checkpoint_steps
        Steps between two checkpoints to resume from, besides checkpoint_seconds. 0: none by steps. Where both are 0,
        only the end of the training and a signal leave one.
    checkpoints_kept
        Number of latest checkpoints to resume from that are kept; older ones are removed.
    progressive
        true: online learning. Each batch is scored before the model learns from it; metrics of these scores are
        reported for windows of rows (event progressive of metrics.jsonl) and for all rows (summary.json). Requires
        data.shuffle: false, data.negative_rate: 1 and train.epochs: 1.
    progressive_rows
        Rows of a window of train.progressive, whatever the batch size; the last window may be smaller.
    distill
        Way to learn from a teacher, whose probabilities are a column of kind teacher. none: not at all. single: the
        model's own output learns them, too. head: an auxiliary head beside the last layer learns them, so that the
        teacher's bias stays out of what is served. adapter: as head; another head learns the probabilities as a small
        adapter corrects them by the labels. The saved model has the size and the operations of one without a teacher.
    distill_weight
        Weight of the loss by the teacher's probabilities, beside that by the labels.
    distill_label_scale
        Factor of the teacher's probabilities for distill head and adapter; products above 1 become 1.
    distill_gradient_scale
        Factor of the auxiliary heads' gradients where they enter the model.
    distill_units
        Width of the hidden layer of an auxiliary head. 0: none, the head is linear.
    report
        true: writes report.html, a page about the run, when training ends or stops (docs/REPORTS.md).
    tensorboard
        true: also writes the content of metrics.jsonl as event files for TensorBoard.
    optimizer
        Update rule. sgd: gradient descent. momentum: sgd with a velocity. adagrad: steps divided by the root of the sum
        of squared gradients. rowwise_adagrad: the same with one sum for each row of a table; adagrad for other
        parameters. adam: means of gradients and of their squares. adamw: adam with decoupled weight decay.
    learning_rate
        Learning rate, before train.schedule changes it.
    beta1
        adam, adamw: decay of the mean gradient per step.
    beta2
        adam, adamw: decay of the mean squared gradient per step.
    epsilon
        adagrad, rowwise_adagrad, adam, adamw: number that is added to the root in the denominator.
    momentum
        momentum: decay of the velocity per step.
    nesterov
        momentum: Nesterov's variant, which looks ahead along the velocity.
    weight_decay
        adamw: share of each weight that a step takes away, times the learning rate.
    net_l2
        L2 coefficient of dense parameters: lambda of lambda/2 |w|^2, added to the gradient.
    embedding_kind
        Update rule of embedding tables. same: that of optimizer.kind; the others are explained there.
    embedding_learning_rate_factor
        Factor of the learning rate of embedding tables.
    embedding_l2
        L2 coefficient of embedding tables: lambda of lambda/2 |e|^2 over the rows of embedding_scope, added to the
        gradient.
    embedding_scope
        Rows of tables that a step updates and decays. touched: those of the batch's ids. whole: all rows, as dense
        gradients and the BARS protocol do."""
    seed: int | None
    threads: int | None
    team: Literal['pthread', 'openmp'] | None
    model: str | None
    embedding_dim: int | None
    embedding_init_std: float | None
    hidden_units: Sequence[int] | None
    bottom_units: Sequence[int] | None
    top_units: Sequence[int] | None
    batch_norm: bool | None
    block_norm: bool | None
    bias: Literal['all', 'last'] | None
    dropout: float | None
    activation: Literal['identity', 'relu', 'sigmoid', 'hard_swish'] | None
    pooling: Literal['sum', 'mean'] | None
    interaction: Literal['dot', 'cat'] | None
    towers: str | None
    tower_file: str | None
    tower_module: Literal['linear', 'cross', 'identity'] | None
    tower_dim: int | None
    tower_outputs: int | None
    tower_feature_outputs: int | None
    epochs: int | None
    batch_size: int | None
    accumulation_steps: int | None
    max_steps: int | None
    precision: Literal['fp32', 'bf16'] | None
    recipes: str | None
    probe_steps: int | None
    row_format: Literal['fp32', 'fp16', 'bf16', 'bf16_split'] | None
    deterministic: bool | None
    evaluate_steps: int | None
    selection: Literal['auc', 'logloss'] | None
    patience: int | None
    schedule: Literal['constant', 'step', 'cosine', 'plateau'] | None
    warmup_steps: int | None
    schedule_steps: int | None
    schedule_factor: float | None
    min_learning_rate: float | None
    max_gradient_norm: float | None
    non_finite: Literal['stop', 'skip'] | None
    report_seconds: float | None
    checkpoint_seconds: float | None
    checkpoint_steps: int | None
    checkpoints_kept: int | None
    progressive: bool | None
    progressive_rows: int | None
    distill: Literal['none', 'single', 'head', 'adapter'] | None
    distill_weight: float | None
    distill_label_scale: float | None
    distill_gradient_scale: float | None
    distill_units: int | None
    report: bool | None
    tensorboard: bool | None
    optimizer: Literal['sgd', 'momentum', 'adagrad', 'rowwise_adagrad', 'adam', 'adamw'] | None
    learning_rate: float | None
    beta1: float | None
    beta2: float | None
    epsilon: float | None
    momentum: float | None
    nesterov: bool | None
    weight_decay: float | None
    net_l2: float | None
    embedding_kind: Literal['same', 'sgd', 'momentum', 'adagrad', 'rowwise_adagrad', 'adam', 'adamw'] | None
    embedding_learning_rate_factor: float | None
    embedding_l2: float | None
    embedding_scope: Literal['touched', 'whole'] | None
    classes_: NDArray[Any]
    n_features_in_: int
    feature_names_in_: NDArray[Any]
    run_: Run
    def __init__(
        self,
        *,
        seed: int | None = 1,
        threads: int | None = 0,
        team: Literal['pthread', 'openmp'] | None = 'pthread',
        model: str | None = 'dlrm',
        embedding_dim: int | None = 16,
        embedding_init_std: float | None = 0.0001,
        hidden_units: Sequence[int] | None = (400, 400, 400),
        bottom_units: Sequence[int] | None = (),
        top_units: Sequence[int] | None = (),
        batch_norm: bool | None = False,
        block_norm: bool | None = False,
        bias: Literal['all', 'last'] | None = 'all',
        dropout: float | None = 0.0,
        activation: Literal['identity', 'relu', 'sigmoid', 'hard_swish'] | None = 'relu',
        pooling: Literal['sum', 'mean'] | None = 'sum',
        interaction: Literal['dot', 'cat'] | None = 'dot',
        towers: str | None = '',
        tower_file: str | None = None,
        tower_module: Literal['linear', 'cross', 'identity'] | None = 'linear',
        tower_dim: int | None = 0,
        tower_outputs: int | None = 1,
        tower_feature_outputs: int | None = 0,
        epochs: int | None = 1,
        batch_size: int | None = 2048,
        accumulation_steps: int | None = 1,
        max_steps: int | None = 0,
        precision: Literal['fp32', 'bf16'] | None = 'fp32',
        recipes: str | None = None,
        probe_steps: int | None = 0,
        row_format: Literal['fp32', 'fp16', 'bf16', 'bf16_split'] | None = 'fp32',
        deterministic: bool | None = True,
        evaluate_steps: int | None = 0,
        selection: Literal['auc', 'logloss'] | None = 'auc',
        patience: int | None = 2,
        schedule: Literal['constant', 'step', 'cosine', 'plateau'] | None = 'plateau',
        warmup_steps: int | None = 0,
        schedule_steps: int | None = 0,
        schedule_factor: float | None = 0.1,
        min_learning_rate: float | None = 1e-06,
        max_gradient_norm: float | None = 0.0,
        non_finite: Literal['stop', 'skip'] | None = 'stop',
        report_seconds: float | None = 1.0,
        checkpoint_seconds: float | None = 300.0,
        checkpoint_steps: int | None = 0,
        checkpoints_kept: int | None = 2,
        progressive: bool | None = False,
        progressive_rows: int | None = 10000,
        distill: Literal['none', 'single', 'head', 'adapter'] | None = 'none',
        distill_weight: float | None = 1.0,
        distill_label_scale: float | None = 1.0,
        distill_gradient_scale: float | None = 1.0,
        distill_units: int | None = 64,
        report: bool | None = True,
        tensorboard: bool | None = True,
        optimizer: Literal['sgd', 'momentum', 'adagrad', 'rowwise_adagrad', 'adam', 'adamw'] | None = 'adam',
        learning_rate: float | None = 0.001,
        beta1: float | None = 0.9,
        beta2: float | None = 0.999,
        epsilon: float | None = 1e-08,
        momentum: float | None = 0.9,
        nesterov: bool | None = False,
        weight_decay: float | None = 0.0,
        net_l2: float | None = 0.0,
        embedding_kind: Literal['same', 'sgd', 'momentum', 'adagrad', 'rowwise_adagrad', 'adam', 'adamw'] | None = 'same',
        embedding_learning_rate_factor: float | None = 1.0,
        embedding_l2: float | None = 0.0,
        embedding_scope: Literal['touched', 'whole'] | None = 'touched',
        config: _Config = None,
        early_stopping: bool | None = None,
        validation_fraction: float = 0.1,
    ) -> None: ...
    def fit(self, X: Any, y: Any, sample_weight: Any = None, eval_set: tuple[Any, Any] | None = None) -> Classifier:
        """Trains on X and y. eval_set: (X, y) that decides which model is kept and when training stops."""
    def predict_proba(self, X: Any) -> NDArray[numpy.float64]: ...
    def decision_function(self, X: Any) -> NDArray[numpy.float64]: ...
    def predict(self, X: Any) -> NDArray[Any]: ...

class Error(Exception):
    """Error of Phloem: a line that says what failed, where and why. exit_code: that of the program phloem for it."""
    exit_code: int

class UsageError(Error, ValueError):
    """Wrong arguments."""
    exit_code: int

class ConfigError(UsageError):
    """An unknown key, a value out of range, or settings that contradict one another."""

class DataError(Error, ValueError):
    """Bad data: the text names row and column."""
    exit_code: int

class DivergedError(Error, ArithmeticError):
    """A loss, weight or score is not finite."""
    exit_code: int

class CheckpointError(Error):
    """A run folder that is damaged, missing, or of another training."""
    exit_code: int

class ResourceError(Error, OSError):
    """Out of memory or disk."""
    exit_code: int

class OutOfMemoryError(ResourceError, MemoryError):
    """Out of memory: also a training that cannot fit, before its first step."""

class PeerError(Error, ConnectionError):
    """Another process of the job failed."""
    exit_code: int

class Terminated(Error):
    """Stopped, after saving, because the interpreter ends."""
    exit_code: int
