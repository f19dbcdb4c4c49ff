"""Shared by the benchmarks of the Python package: flags, peers, rounds in which sides take turns, and figures.

A benchmark is a script bench_<name>.py of this folder. It needs NumPy, pyarrow and the build in build/release (else the
library and the program that $PHLOEM_LIBRARY and $PHLOEM_PROGRAM name), and imports this first. It prints one table. With
--json FILE it writes the keys of bench/figures.h. A benchmark that cannot run says why and ends with 77.
"""
import argparse
import contextlib
import json
import os
import pathlib
import statistics
import sys

ROOT = pathlib.Path(__file__).resolve().parents[2]
BUILT = ROOT / "build" / "release"
PEERS = ROOT / "bench" / "peers"
# As bench/peer.c sets a peer's allocator.
ALLOCATOR = {
    "MALLOC_MMAP_THRESHOLD_": "1073741824",
    "MALLOC_TRIM_THRESHOLD_": "2147483648",
    "MALLOC_TOP_PAD_": "268435456",
}

sys.path.insert(0, str(PEERS))
import processes
import protocol

sys.path.pop(0)  # the folder's files are named after packages
Skipped = protocol.Skipped


def skip(why):
    print(f"skipped: {protocol.one_line(why)}")
    sys.exit(77)


os.environ.setdefault("PHLOEM_LIBRARY", str(BUILT / "libphloem.so"))
os.environ.setdefault("PHLOEM_PROGRAM", str(BUILT / "phloem"))
sys.path.insert(0, str(ROOT / "bindings" / "python"))
try:
    import numpy
    import phloem
    import pyarrow

    VERSION = phloem.__version__
except (ImportError, OSError) as error:
    skip(error)


def processor():
    with contextlib.suppress(OSError, StopIteration):
        lines = pathlib.Path("/proc/cpuinfo").read_text(encoding="ascii").splitlines()
        return next(line.split(":", 1)[1].strip() for line in lines if line.startswith("model name"))
    return "unknown processor"


def spread(values):
    """Returns the interquartile range over the median."""
    low, high = numpy.quantile(values, [0.25, 0.75])
    return float(high - low) / statistics.median(values)


class Peer:
    """A program of bench/peers, which may be missing: then asking it raises Skipped."""

    def __init__(self, script, python=None):
        self.processes, self.why, self.current = processes.Processes(), None, None
        environment = {name: value for name, value in os.environ.items() if name != "GOMP_SPINCOUNT"}
        allocator = os.environ.get("PHLOEM_BENCH_PEER_ALLOCATOR")
        environment.update({"LD_PRELOAD": allocator} if allocator else ALLOCATOR)
        command = [python or os.environ.get("PHLOEM_BENCH_PYTHON") or sys.executable, str(PEERS / f"{script}.py")]
        try:
            self.process = self.processes.start(command, env=environment)
            self.version = self.processes.read(self.process).strip()
        except (OSError, Skipped) as error:
            self.version = f"missing {error}"
        if self.version.startswith("missing"):
            self.why = self.version.removeprefix("missing ")

    def ask(self, line):
        """Returns the answer's words."""
        if self.why is not None:
            raise Skipped(self.why)
        words = self.processes.ask([self.process], line)[0]
        if words[:1] == ["skipped"]:
            raise Skipped(" ".join(words[1:]))
        return words

    def case(self, what):
        """Begins a case, unless it is the current one."""
        if self.current != what:
            self.ask(f"case {what}")
            self.current = what

    def number(self, line):
        return float(self.ask(line)[0])

    def close(self):
        self.processes.close()


class Flags(argparse.ArgumentParser):
    def error(self, message):
        print(f"{self.prog}: {message}", file=sys.stderr)
        sys.exit(2)


class Bench:
    """One benchmark: its flags, its table and its figures. A context, which ends with the table and the file."""

    def __init__(self, what, **more_flags):
        flags = Flags(description=what)
        flags.add_argument("--json", metavar="FILE", help="file for the figures")
        flags.add_argument("--rounds", type=int, default=5, help="rounds in which all sides take turns")
        flags.add_argument("--quick", action="store_true", help="one round of small sizes: shows that all of it runs")
        flags.add_argument("--peers", help="accepted, since ./run bench passes it")
        for name, settings in more_flags.items():
            flags.add_argument(f"--{name}", **settings)
        self.flags = flags.parse_args()
        if self.flags.rounds < 1:
            flags.error(f"--rounds '{self.flags.rounds}': not a positive number")
        self.is_quick = self.flags.quick
        self.rounds = 1 if self.is_quick else self.flags.rounds
        self.figures, self.peers = [], []
        print(f"{what}: {processor()}, phloem {VERSION}, medians of {self.rounds} rounds in turn, "
              f"load before {os.getloadavg()[0]:.1f}\n")
        print(f"{'figure':44} {'ours':>12} {'unit':10} {'peer':34} {'peer':>12} {'ratio':>6}  bar", flush=True)

    def __enter__(self):
        return self

    def __exit__(self, problem, *_):
        for peer in self.peers:
            peer.close()
        if self.flags.json and problem is None:
            pathlib.Path(self.flags.json).write_text(json.dumps(self.figures, indent=1) + "\n", encoding="ascii")

    def peer(self, script, **settings):
        self.peers.append(Peer(script, **settings))
        return self.peers[-1]

    def turns(self, sides):
        """Calls each side once a round and returns {its name: the list of what it returned}. Sides: {name: function}. One
        that raises Skipped is left out, and the table says why."""
        values, sides = {name: [] for name in sides}, dict(sides)
        for _ in range(self.rounds):
            for name, measure in list(sides.items()):
                try:
                    values[name].append(measure())
                except Skipped as why:
                    print(f"peer {name}: skipped: {why}", flush=True)
                    del sides[name], values[name]
        return values

    def record(self, name, unit, ours, peer=None, peers=(), bar=None, within=None):
        """Adds a row: values that are better the greater they are, and a peer's of the same rounds. The ratio is the median
        of the rounds' ratios, and `bar` what it should reach; `within` is how far the medians may be apart."""
        figure = {"name": f"python.{name}", "unit": unit, "value": statistics.median(ours), "label": "measured"}
        figure.update({"peer": None, "peer_value": None, "ratio": None, "limit": None, "of_limit": None})
        row = f"{figure['name']:44} {number(figure['value']):>12} {unit:10} "
        if len(ours) > 1:
            figure["spread"] = spread(ours)
        if peer is not None:
            ratio = statistics.median(mine / other for mine, other in zip(ours, peers))
            figure.update({"peer": peer, "peer_value": statistics.median(peers), "ratio": ratio})
            row += f"{peer:34} {number(figure['peer_value']):>12} {ratio:6.3f}"
            apart = figure["value"] - figure["peer_value"]
            if bar is not None:
                row += f"  >= {bar} {'reached' if ratio >= bar else 'missed'}"
            if within is not None:
                row += f"  +- {within} {'reached' if abs(apart) <= within else 'missed'} ({apart:+.4f})"
        self.figures.append(figure)
        print(row, flush=True)


def number(value):
    return f"{value:,.0f}" if value >= 1000 else f"{value:.4f}"
