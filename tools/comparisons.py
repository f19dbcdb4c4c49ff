"""What tools/dhen_pairs.py and tools/scaling.py share: many configs made of few, trained by phloem compare, told in a page.

The program does the work: phloem config writes the configs into RUNS/configs, phloem compare trains them over the seeds,
pairs their differences seed by seed and does not repeat a run that is finished. A row is what compare.json says of a config.
"""
import argparse
import json
import os
import pathlib
import subprocess
import sys

ROOT = pathlib.Path(__file__).resolve().parent.parent
PROGRAM = ROOT / "build" / "release" / "phloem"
TOOL = pathlib.Path(sys.argv[0]).stem


class Parser(argparse.ArgumentParser):
    """Of the options that the tools share; says in one line what is wrong with them, as the program does."""

    def __init__(self, description):
        super().__init__(description=description, formatter_class=argparse.RawDescriptionHelpFormatter)
        self.add_argument("--seeds", default="3", help="as of phloem compare")
        self.add_argument("--threads", default="0")
        self.add_argument("--set", dest="settings", action="append", default=[], metavar="KEY=VALUE")
        self.add_argument("--runs", type=pathlib.Path, default=ROOT / "runs" / TOOL)

    def error(self, message):
        self.exit(2, f"{TOOL}: {message}\n")


def require_program():
    if not PROGRAM.exists():
        sys.exit(f"{TOOL}: build/release/phloem is missing; ./run build makes it")


def phloem(*words, **options):
    """Runs the program in the root; what fails has said why."""
    environment = {"PHLOEM_DATA": "../shared/data", **os.environ}
    result = subprocess.run([PROGRAM, *words], cwd=ROOT, env=environment, text=True, check=False, **options)
    if result.returncode != 0:
        sys.exit(f"{TOOL}: phloem {words[0]} ended with {result.returncode}")
    return result.stdout


def flags(settings):
    return [word for setting in settings for word in ("--set", setting)]


def write_configs(runs, wanted):
    """wanted: {key: (name, config to begin with, texts KEY=VALUE)}, of which the last one of a key holds. {key: path}"""
    folder = (runs / "configs").resolve()
    folder.mkdir(parents=True, exist_ok=True)
    paths = {}
    for key, (name, config, settings) in wanted.items():
        paths[key] = folder / f"{name}.yaml"
        paths[key].write_text(phloem("config", config.resolve(), *flags(settings), stdout=subprocess.PIPE))
    return paths


def compare(paths, base, out, seeds, threads, **how):
    """{key: row} of {key: path}; differences are taken from `base`, which is one of the keys."""
    words = ["--out", out.resolve(), "--seeds", seeds, "--threads", threads, "--base", paths[base]]
    phloem("compare", *paths.values(), *words, **how)
    rows = json.loads((out / "compare.json").read_text())["configs"]
    return dict(zip(paths, rows))


# ---- cells of a table -----------------------------------------------------------------------------------------------


def with_spread(row, key, digits=4):
    deviation = row[f"{key}_deviation"]
    return f"{row[key]:.{digits}f}" + (f" ± {deviation:.{digits}f}" if deviation is not None else "")


def signed(mean, half_width):
    return f"{mean:+.4f}" + (f" ± {half_width:.4f}" if half_width is not None else "")


def costs(row):
    return f"{row['parameters']:,.0f}", f"{row['flops_per_sample']:,.0f}"


def seeds_text(rows):
    """Of any row: all have the same."""
    return ", ".join(str(run["seed"]) for run in next(iter(rows.values()))["runs"])


def table(columns, lines):
    told = ["| " + " | ".join(map(str, cells)) + " |" for cells in (columns, *lines)]
    return "\n".join([told[0], "|" + "---|" * len(columns), *told[1:]]) + "\n\n"
