"""Training: phloem.train, and the run that it returns."""
import atexit
import collections.abc
import contextlib
import ctypes
import html
import json
import os
import pathlib
import queue
import re
import shutil
import signal
import sys
import tempfile
import threading
import warnings
import weakref

from phloem import _data, _library, _settings
from phloem._library import UsageError
from phloem._model import Model

# ---- the trainings of this process ---------------------------------------------------------------------------------------

_running = {}  # thread: its stop signal


def _end_all():
    """Stops trainings whose caller is gone, before the interpreter takes itself apart."""
    for thread, stop in list(_running.items()):
        stop.value = signal.SIGTERM
        thread.join()


atexit.register(_end_all)
os.register_at_fork(after_in_child=_running.clear)  # they go on in the parent alone


class _Training:
    """A training in a thread of its own, so that its caller gets signals; callbacks run in the caller's thread."""

    def __init__(self, config, options, callbacks):
        self.config, self.options, self.callbacks = config, options, callbacks
        self.stop, self.events, self.answers = ctypes.c_int(0), queue.SimpleQueue(), queue.SimpleQueue()
        self.problem = self.failure = None
        self.observer = _library.Observer(on_progress=_library.OnProgress(self._on_progress),
                                          on_note=_library.OnNote(self._on_note))
        options.observer = ctypes.pointer(self.observer)
        options.stop_signal = ctypes.pointer(self.stop)

    def _on_progress(self, _context, progress):
        with contextlib.suppress(Exception):  # memory that is out ends the training elsewhere
            self.events.put(("progress", json.loads(_library.text_of("ph_train_progress_json", ctypes.c_void_p(progress)))))
            return self.answers.get()
        return _library.OK

    def _on_note(self, _context, text):
        self.events.put(("note", text.decode(errors="replace")))

    def _work(self):
        try:
            _library.call("ph_train_config", self.config, ctypes.byref(self.options), None)
        except BaseException as problem:  # raised in the caller's thread
            self.problem = problem
        self.events.put(("end", None))

    def _tell(self, event):
        for callback in self.callbacks:
            callback(event)

    def _answer(self, kind, value):
        """Handles an event in the caller's thread; an exception of a callback ends the training."""
        try:
            if self.failure is None:
                self._tell({"event": "note", "text": value} if kind == "note" else
                           {"event": "train" if value["valid"] is None else "valid", **value})
        except BaseException as problem:
            self.failure = problem
            self.stop.value = signal.SIGINT
        if kind == "progress":
            self.answers.put(_library.OK)

    def run(self):
        thread = threading.Thread(target=self._work, name="phloem.train", daemon=True)
        _running[thread] = self.stop
        thread.start()
        while True:
            try:
                kind, value = self.events.get()
                if kind == "end":
                    break
                self._answer(kind, value)
            except KeyboardInterrupt:
                self.stop.value = signal.SIGINT
        thread.join()
        _running.pop(thread, None)
        # The callbacks of C hold this object, and it them, which Python's collector does not see.
        problem, self.options, self.observer, self.failure, self.problem = self.failure or self.problem, None, None, None, None
        try:
            if problem is not None:
                raise problem
        finally:
            del problem


# ---- progress ------------------------------------------------------------------------------------------------------------


class ProgressLine:
    """Callback that keeps a line of progress up to date, on a terminal or in a notebook."""

    def __init__(self, stream=None):
        self.stream = stream or sys.stderr

    @staticmethod
    def is_wanted():
        return sys.stderr.isatty() or "ipykernel" in sys.modules

    def __call__(self, event):
        if event["event"] == "note":
            self.stream.write(f"\rphloem: note: {event['text']}\n")
        elif event["event"] == "valid":
            valid = event["valid"]
            self.stream.write(f"\repoch {event['epoch']}/{event['epochs']}  step {event['step']}  "
                              f"valid auc {_figure(valid['auc'])}  logloss {_figure(valid['logloss'])}"
                              f"{'  (best so far)' if event['is_best'] else ''}      \n")
        else:
            total = f"/{event['total_steps']}" if event["total_steps"] else ""
            self.stream.write(f"\repoch {event['epoch']}/{event['epochs']}  step {event['step']}{total}  "
                              f"{event['samples_per_s'] or 0:.0f} samples/s  loss {_figure(event['loss'])}  "
                              f"auc {_figure(event['auc'])}      ")
        self.stream.flush()


def _figure(value):
    return "-" if value is None else f"{value:.4f}"


# ---- runs ----------------------------------------------------------------------------------------------------------------


class _TemporaryFolder:
    """A folder that is removed when nothing refers to this object: without the warning of tempfile.TemporaryDirectory, since
    that is how it is meant here."""

    def __init__(self):
        self.path = pathlib.Path(tempfile.mkdtemp(prefix="phloem-"))
        weakref.finalize(self, shutil.rmtree, self.path, ignore_errors=True)


class Run:
    """A training that has ended, and its folder. Without `out` the folder is a temporary one, which goes with the run: a
    pickled run takes the model and the reports along."""

    def __init__(self, folder, temporary=None):
        self.folder, self._temporary, self._model = pathlib.Path(folder), temporary, None

    @property
    def summary(self):
        """summary.json as a dict: steps, samples_per_s, parameters, checkpoint_sha256, ..."""
        return json.loads((self.folder / "summary.json").read_text())

    @property
    def metrics(self):
        """The best model's metrics: {"valid": {"auc": ...}, "test": {...}}, for the splits that there are."""
        summary = self.summary
        return {split: summary[split] for split in ("valid", "test", "progressive") if summary.get(split)}

    @property
    def history(self):
        """Reports and evaluations in their order, as the dicts of metrics.jsonl."""
        return [json.loads(line) for line in (self.folder / "metrics.jsonl").read_text().splitlines()]

    @property
    def report(self):
        """The path of report.html."""
        return self.folder / "report.html"

    @property
    def model(self):
        """The best model (phloem.load(folder)), opened once."""
        if self._model is None:
            self._model = Model(self.folder)
        return self._model

    def predict(self, rows):
        return self.model.predict(rows)

    def evaluate(self, rows):
        return self.model.evaluate(rows)

    def __getstate__(self):
        """Packs the files of a temporary folder except its checkpoints; another folder is kept by its path."""
        files = [file for file in self.folder.iterdir() if file.is_file()] if self._temporary else []
        return self.folder, {file.name: file.read_bytes() for file in files}

    def __setstate__(self, state):
        folder, files = state
        temporary = _TemporaryFolder() if files else None
        self.__init__(temporary.path if files else folder, temporary)
        for name, content in files.items():
            (self.folder / name).write_bytes(content)

    def _repr_html_(self):
        page = html.escape(self.report.read_text()) if self.report.exists() else ""
        return f'<iframe style="width: 100%; height: 700px; border: 0" srcdoc="{page}"></iframe>'

    def __repr__(self):
        figures = "  ".join(f"{split} auc {_figure(metrics['auc'])}" for split, metrics in self.metrics.items())
        return f"<phloem.Run {self.folder}  {figures}>"


def _as_rows(rows, name):
    """Returns (path, None) or (None, Rows)."""
    if rows is None:
        return None, None
    return (os.fspath(rows), None) if _data.is_path(rows) else (None, _data.Rows(rows, name))


def _names(label):
    """Returns the columns of labels as a list of texts."""
    return [str(name) for name in (label if isinstance(label, (list, tuple)) else [label])]


def _has_fields(config):
    """Tells whether a config that was read says what the columns mean."""
    with tempfile.TemporaryDirectory(prefix="phloem-") as work:
        effective = pathlib.Path(work) / "config.yaml"
        _library.call("ph_config_write", config, os.fsencode(effective))
        return "\n  fields: []\n" not in effective.read_text()


def default_fields(rows, label="label"):
    """Returns the fields that phloem.train gives the columns of a frame by their types, as YAML to print, edit and put into
    a config: text, integers, booleans and categories become ids, floats dense features, lists several ids.
    label: the name of the label's column, or a list of names."""
    return _data.Rows(rows, "data").default_fields(_names(label))


def _check_arguments(out, set, callbacks, resume):
    """Returns the callbacks as a list."""
    if not isinstance(set, (collections.abc.Mapping, type(None))):
        raise UsageError(f'set must be a dict such as {{"train.epochs": 3}}, not {type(set).__name__}')
    if resume and out is None:
        raise UsageError("resume=True requires out, the folder of the training that goes on")
    callbacks = [callbacks] if callable(callbacks) else list(callbacks)
    if not all(map(callable, callbacks)):
        raise UsageError("callbacks must be functions that take a dict")
    return callbacks


def _read_config(config, sets, rows, fields, label):
    """Reads the config of a training on rows (None: on paths), with fields by default where it has none."""
    made = _settings.read(config, sets)  # its errors come before those of the rows
    if fields is None and rows is not None and not _has_fields(made):
        fields = rows.default_fields(_names(label))
        for name, kind in re.findall(r'^  \{name: (".*"), kind: ignore\}, # (.*)', fields, re.M):
            warnings.warn(f"column {name} is left out, since its type is not supported: {kind}", stacklevel=3)
    if fields is not None:
        sets = [f"data.fields={fields if isinstance(fields, str) else json.dumps(fields)}", *sets]
    if rows is not None:
        sets = ["data.format=arrow", *sets]
    return _settings.read(config, sets)


def train(config=None, train=None, valid=None, test=None, *, out=None, set=None, callbacks=(), resume=False, label="label",
          fields=None, progress=None):
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
    callbacks = _check_arguments(out, set, callbacks, resume)
    rows, settings = {}, dict(set or {})
    for split, given in (("train", train), ("valid", valid), ("test", test)):
        path, rows[split] = _as_rows(given, split)
        if path is not None:
            settings[f"data.{split}"] = path
    made = _read_config(config, _settings.sets_of(settings), rows["train"], fields, label)
    temporary = _TemporaryFolder() if out is None else None
    folder = pathlib.Path(out) if out is not None else temporary.path / "run"
    options = _library.TrainOptions(folder=os.fsencode(folder), is_resumed=bool(resume))
    for split, given in rows.items():
        setattr(options, f"{split}_dataset", given.dataset.value if given is not None else None)
    is_shown = ProgressLine.is_wanted() if progress is None else progress
    try:
        _Training(made, options, [*([ProgressLine()] if is_shown else []), *callbacks]).run()
    except _library.DataError as problem:
        raise problem from next(filter(None, (given.take_problem() for given in rows.values() if given)), None)
    return Run(folder, temporary)
