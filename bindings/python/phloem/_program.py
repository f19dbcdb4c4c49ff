"""What the program phloem does for Python: verbs that print tables or take a whole folder."""
import json
import os
import pathlib
import shutil
import subprocess
import sysconfig
import tempfile

import numpy

from phloem import _library, _settings

_STATUS = {2: _library.UsageError, 3: _library.DataError, 4: _library.CheckpointError, 5: _library.ResourceError,
           6: _library.PeerError, 130: KeyboardInterrupt, 143: _library.Terminated}


def path():
    """Returns the program: $PHLOEM_PROGRAM, else that of this environment, else the one in PATH."""
    own = pathlib.Path(sysconfig.get_path("scripts")) / "phloem"
    found = os.environ.get("PHLOEM_PROGRAM") or (str(own) if own.exists() else shutil.which("phloem"))
    if not found:
        raise _library.UsageError("the program phloem is not in PATH: install the wheel, or set PHLOEM_PROGRAM to its path")
    return found


def run(*arguments):
    """Runs the program and returns what it printed; raises what it says."""
    ended = subprocess.run([path(), *map(str, arguments)], capture_output=True, text=True, stdin=subprocess.DEVNULL)
    if ended.returncode != 0:
        text = ended.stderr.strip().splitlines()[-1:] or [f"phloem ended with {ended.returncode}"]
        raise _STATUS.get(ended.returncode, _library.Error)(text[0].removeprefix("phloem: error: "))
    return ended.stdout


def predict(folder, rows, num_labels):
    """Returns the predictions of a file that the library reads by its path."""
    with tempfile.TemporaryDirectory(prefix="phloem-") as work:
        out = pathlib.Path(work) / "scores.csv"
        run("predict", folder, rows, "--out", out)
        scores = numpy.loadtxt(out, numpy.float32, delimiter=",", skiprows=1, ndmin=2)
    return scores[:, 0] if num_labels == 1 else scores


def _config_file(config, work, number):
    text, name = _settings.text_of(config)
    if text is None:
        return name
    file = pathlib.Path(work) / f"config{number}.yaml"
    file.write_text(text)
    return file


def _sets(settings):
    return [word for text in _settings.sets_of(settings) for word in ("--set", text)]


def compare(configs, out, *, seeds=3, set=None):
    """Trains each config (a path, a text or a dict) with several seeds; returns compare.json as a dict. Tables and a page stay
    in `out`. seeds: their number, or a list of them."""
    words = seeds if isinstance(seeds, int) else ",".join(map(str, seeds))
    with tempfile.TemporaryDirectory(prefix="phloem-") as work:
        files = [_config_file(config, work, i) for i, config in enumerate(configs)]
        run("compare", *files, "--out", out, "--seeds", words, "--quiet", *_sets(set))
    return json.loads((pathlib.Path(out) / "compare.json").read_text())


def tune(config, out, *, set=None):
    """Searches the ranges under "tune" of a config; returns tune.json as a dict. The folder `out` keeps each trial."""
    with tempfile.TemporaryDirectory(prefix="phloem-") as work:
        run("tune", _config_file(config, work, 0), "--out", out, "--quiet", *_sets(set))
    return json.loads((pathlib.Path(out) / "tune.json").read_text())


def plan(config, world, *, set=None):
    """Places the tables of a config on `world` ranks; returns the plan as YAML, for parallel.plan."""
    with tempfile.TemporaryDirectory(prefix="phloem-") as work:
        return run("plan", _config_file(config, work, 0), "--world", world, "--out", "-", *_sets(set))


def inspect(what):
    """Returns what phloem inspect prints of a file or folder: data, a checkpoint, a config."""
    return run("inspect", what)
