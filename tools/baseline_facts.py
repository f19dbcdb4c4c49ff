#!/usr/bin/env python3
"""Gathers facts of two built revisions, for tools/baseline.sh: what they train, accept, print, write, export and test.

usage: baseline_facts.py OLD NEW --parts PART,... [--jobs N] [--keep]

OLD and NEW are folders that baseline.sh has made: source/ of a revision, and in source/build/ its builds release, tests.release and
tests.asan, which are configured only, and coverage. Each part becomes <folder>/facts/PART.json, which baseline_compare.py reads.
A file that this program has made of the same data on the same processor is kept.
"""
import argparse
import concurrent.futures
import hashlib
import json
import os
import pathlib
import platform
import re
import shutil
import signal
import subprocess
import sys
import tempfile
import time

TOOLS = pathlib.Path(__file__).resolve().parent
DATA = pathlib.Path(os.environ.get("PHLOEM_DATA", TOOLS.parent.parent / "shared" / "data"))
LIMIT_SECONDS = 1800  # of one process
QUICK_BENCHES = ("bench_wire", "bench_batches", "bench_order", "bench_prepare", "bench_frame_key", "bench_partition",
                 "bench_aggregate", "bench_fm_products", "bench_gemm", "bench_kernels", "bench_session", "bench_reader")
INSTRUCTION_SETS = {"ref": (), "avx2": ("avx2", "fma", "f16c"), "avx512": ("avx512f", "avx512bw", "avx512dq", "avx512vl")}

# Carries everything that there is to carry from step to step: dropout, batch norm, two optimizers, a schedule that cuts,
# evaluations within epochs, lists of ids.
JOB = """
seed: 5
model: {kind: dlrm, embedding_dim: 16, bottom_units: [32], top_units: [32], dropout: 0.2, batch_norm: true}
optimizer: {kind: adam, learning_rate: 0.02, embedding_kind: rowwise_adagrad}
train: {epochs: 10, batch_size: 200, report_seconds: 0, evaluate_steps: 7, patience: 0, schedule: plateau, schedule_factor: 0.5}
tune: {ranges: [{key: optimizer.learning_rate, values: [0.01, 0.02]}]}
synth: {train_rows: 4000, valid_rows: 1000, test_rows: 1000, dense: 3, sparse: 7, planted_dense: 2, planted: 3,
  table_rows: [90, 40, 7, 300, 1, 25, 60], bag_sizes: [1, 2, 1, 4, 1, 1, 2]}
"""


class Skipped(Exception):
    """A part that this machine cannot give, and why."""


class Failed(Exception):
    """A command that a revision must be able to run."""


class Build:
    """A revision's folder, and how to start its program in a folder of work."""

    def __init__(self, folder, jobs, work):
        self.folder, self.jobs, self.work = pathlib.Path(folder).resolve(), jobs, work
        self.source = self.folder / "source"
        self.programs = self.source / "build/release"
        self.notes = []
        self.environment = dict(os.environ, OMP_WAIT_POLICY="passive", PHLOEM_PLUGINS=str(self.programs), PHLOEM_DATA=str(DATA),
                                PATH=f"{self.programs}:{os.environ['PATH']}")
        self.environment.pop("PHLOEM_ISA", None)

    def run(self, *command, folder=None, **environment):
        words = [str(word) for word in command]
        with subprocess.Popen(words, cwd=folder or self.work, env=self.environment | environment, stdin=subprocess.DEVNULL,
                              stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, errors="replace",
                              start_new_session=True) as process:
            try:
                out, err = process.communicate(timeout=LIMIT_SECONDS)
            except subprocess.TimeoutExpired:
                os.killpg(process.pid, signal.SIGKILL)
                raise Failed(f"{' '.join(words)} has not ended within {LIMIT_SECONDS} seconds") from None
        return subprocess.CompletedProcess(words, process.returncode, out, err)

    def output(self, *command, **options):
        done = self.run(*command, **options)
        if done.returncode != 0:
            raise Failed(f"{' '.join(map(str, command))} ended with {done.returncode}: {last_line(done)}")
        return done.stdout

    def train(self, config, out, *arguments, launcher=(), **environment):
        """Trains, and returns the model's SHA-256, or how the training failed."""
        done = self.run(*launcher, "phloem", "train", config, "--out", out, "--quiet", *arguments, **environment)
        return sha256_of_run(self.work / out) if done.returncode == 0 else f"exit {done.returncode}: {last_line(done)}"

    def make_job(self):
        """Leaves data/ and job.yaml, which trains on them."""
        (self.work / "synth.yaml").write_text(JOB)
        self.output("phloem", "synth", "synth.yaml", "--out", "data")
        data = (self.work / "data/synth.yaml").read_text()
        own = "\n".join(line for line in JOB.splitlines() if not line.startswith("synth") and "table_rows" not in line)
        (self.work / "job.yaml").write_text(data + own)


def last_line(done):
    return (done.stderr.strip().splitlines() or ["(nothing on standard error)"])[-1]


def sha256_of_run(folder):
    return json.loads((folder / "summary.json").read_text())["checkpoint_sha256"]


def sha256_of_file(path):
    return hashlib.sha256(path.read_bytes()).hexdigest()


def setting(*pairs):
    return [word for pair in pairs for word in ("--set", pair)]


# ---- trainings -----------------------------------------------------------------------------------------------------------

def processor():
    """The model's name and its flags."""
    try:
        lines = pathlib.Path("/proc/cpuinfo").read_text().splitlines()
    except OSError:
        return platform.processor(), set()
    found = dict(re.split(r"\s*:\s*", line, maxsplit=1) for line in reversed(lines) if ":" in line)
    return found.get("model name", "?"), set(found.get("flags", "").split())


def instruction_sets(build):
    flags = processor()[1]
    for name, wanted in INSTRUCTION_SETS.items():
        if flags.issuperset(wanted):
            yield name
        else:
            build.notes.append(f"{name} was not run: this processor lacks it")


def sums(build):
    """The model after six steps of each Frappe config, with each instruction set and number of threads; ref, which takes a
    minute for a step of some models, gets small batches."""
    if not (DATA / "frappe").is_dir():
        raise Skipped(f"there is no folder {DATA}/frappe: $PHLOEM_DATA names another place")
    configs = sorted((build.source / "configs/frappe").glob("*.yaml"))
    cases = [(config, isa, threads) for isa in instruction_sets(build) for config in configs for threads in (1, 2)]

    def one(case):
        config, isa, threads = case
        out = f"{config.stem}.{isa}.{threads}"
        sets = setting("train.max_steps=6", "train.report=false", "data.valid=", "data.test=", f"threads={threads}",
                       *(["train.batch_size=128"] if isa == "ref" else []))
        return f"{config.stem} {isa} threads={threads}", build.train(config, out, *sets, PHLOEM_ISA=isa)

    with concurrent.futures.ThreadPoolExecutor(build.jobs) as pool:
        return dict(pool.map(one, cases))


KINDS = ("table_wise", "row_wise", "column_wise", "table_row_wise", "table_column_wise", "grid", "data_parallel")
PLAN_HEAD = "version: 1\nworld_size: 4\n"
MIXED_PLAN = PLAN_HEAD + """tables:
  "*.C1": {kind: row_wise}
  "*.C2": {kind: column_wise}
  "*.C3": {kind: data_parallel}
  "*.C4": {kind: grid}
  "*.C5": {kind: table_row_wise}
  "*.C6": {kind: table_column_wise}
default: {kind: table_wise}
"""
RANK_JOBS = {"mixed int8": ("parallel.forward=int8", "parallel.backward=int8", "parallel.dense=int8"),
             "mixed bf16": ("parallel.forward=bf16", "parallel.backward=bf16", "parallel.dense=bf16"),
             "mixed in micro-batches": ("train.accumulation_steps=3",), "mixed without overlap": ("parallel.overlap=false",)}


def launchers(build):
    """Yields (MPI, words that start four ranks)."""
    as_root = ["--allow-run-as-root"] if os.geteuid() == 0 else []
    for mpi, family, words in (("openmpi", "Open", ["--oversubscribe", "--bind-to", "none", *as_root]), ("mpich", "HYDRA", [])):
        found = [program for program in (f"mpirun.{mpi}", "mpirun") if shutil.which(program)
                 and family in build.run(program, "--version").stdout]
        if found and (build.programs / f"libphloem_{mpi}.so").exists():
            yield mpi, [found[0], *words, "-n", "4"]
        else:
            build.notes.append(f"{mpi} was not run: its mpirun or the plugin for it is not here")


def train_ranks(build, launcher, out, plan, *arguments):
    sets = setting(f"parallel.plan={plan}", "parallel.ranks_per_host=2", "threads=1", "parallel.timeout_seconds=60")
    return build.train("job.yaml", out, *sets, *arguments, launcher=launcher)


def ranks(build):
    """The model after six steps of four ranks: each kind of plan, formats of the wire, micro-batches."""
    build.make_job()
    for kind in KINDS:
        (build.work / f"{kind}.yaml").write_text(f"{PLAN_HEAD}default: {{kind: {kind}}}\n")
    (build.work / "mixed.yaml").write_text(MIXED_PLAN)
    jobs = {kind: () for kind in (*KINDS, "mixed", "none", "auto")} | RANK_JOBS
    facts = {"synthetic training data": sha256_of_file(build.work / "data/train.tsv")}
    for mpi, launcher in launchers(build):
        for name, sets in jobs.items():
            plan = name.split()[0]
            out = f"{mpi}.{name}".replace(" ", "_")
            facts[f"{mpi} {name}"] = train_ranks(build, launcher, out, plan if plan in ("none", "auto") else f"{plan}.yaml",
                                                 *setting("train.max_steps=6", "train.report=false", *sets))
    if len(facts) == 1:
        raise Skipped("no MPI is here")
    return facts


SECOND_EPOCH = '"event":"train","epoch":2'


def stop_midway(build, out):
    """Trains until some step of the second epoch, ends the training by SIGTERM, and returns its exit code."""
    process = subprocess.Popen(["phloem", "train", "job.yaml", "--out", out, "--quiet", *setting("train.checkpoint_steps=3")],
                               cwd=build.work, env=build.environment, stdin=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    metrics = build.work / out / "metrics.jsonl"
    while process.poll() is None and not (metrics.exists() and SECOND_EPOCH in metrics.read_text()):
        time.sleep(0.002)
    process.send_signal(signal.SIGTERM)
    return process.wait()


def losses(build, out):
    """Returns a digest of all steps' losses, as words to put behind the model's SHA-256."""
    lines = (build.work / out / "metrics.jsonl").read_text().splitlines()
    steps = [(line["step"], line["loss"]) for line in map(json.loads, lines) if line["event"] == "train"]
    return f", losses of {len(steps)} steps {hashlib.sha256(str(steps).encode()).hexdigest()[:12]}"


def compat(old, new):
    """Lets NEW go on from what OLD left. Returns what is wanted, and what came."""
    old.make_job()
    whole = new.train("job.yaml", "whole") + losses(new, "whole")
    wanted, got = {}, {}

    def expect(name, should_be, value):
        wanted[name], got[name] = should_be, value

    expect("a training that SIGTERM stops: exit code", 143, stop_midway(old, "stopped"))
    expect("a stopped training, resumed", whole,
           new.train("job.yaml", "stopped", "--resume") + losses(new, "stopped"))
    old.train("job.yaml", "done")
    metrics = json.loads(old.output("phloem", "eval", "done"))
    evaluated = new.run("phloem", "eval", "done")
    for name, value in metrics.items():
        expect(f"a checkpoint, evaluated: {name}", value,
               json.loads(evaluated.stdout).get(name) if evaluated.returncode == 0 else last_line(evaluated))
    for what in (("model", "done"), ("done/model.safetensors",)):
        expect(f"a checkpoint, inspect {what[0]}: exit code", 0, new.run("phloem", "inspect", *what).returncode)
    predicted = [build.run("phloem", "predict", "done", "data/test.tsv", "--out", f"{name}.csv")
                 for name, build in (("old", old), ("new", new))]
    expect("a checkpoint, its predictions", *(sha256_of_file(old.work / f"{name}.csv") if done.returncode == 0 else last_line(done)
                                             for name, done in zip(("old", "new"), predicted)))
    expect("a checkpoint, exported: exit code", 0, new.run("phloem", "export", "done", "--onnx", "done.onnx").returncode)
    for build, out in ((old, "old.prepared"), (new, "new.prepared")):
        build.output("phloem", "prepare", "job.yaml", "--out", out, "--quiet")
    expect("prepared data, trained from", *(new.train("job.yaml", f"from.{data}", *setting(f"data.prepared={data}"))
                                            for data in ("new.prepared", "old.prepared")))
    (old.work / "mixed.yaml").write_text(MIXED_PLAN)
    for mpi, launcher in launchers(new):
        should_be = train_ranks(new, launcher, f"whole.{mpi}", "mixed.yaml")
        train_ranks(old, launcher, f"cut.{mpi}", "mixed.yaml", *setting("train.max_steps=29"))
        expect(f"a checkpoint of four ranks of {mpi}, resumed", should_be,
               train_ranks(new, launcher, f"cut.{mpi}", "mixed.yaml", "--resume"))
    return wanted, got


# ---- what the program takes and prints -----------------------------------------------------------------------------------

def keys(build):
    """Type, default and range of each config key, those of a model's own included."""
    models = re.findall(r"^  (\w+) ", build.output("phloem", "models"), re.M)
    commands = [("config", "--keys"), *(("models", model) for model in models)]
    text = "".join(build.output("phloem", *command) for command in commands)
    found = re.findall(r"^  (\S+)  \((.*)\)\n((?:      .*\n)*)", text, re.M)
    return {key: kind + ("; may change on resume" if "May change on resume" in help else "") for key, kind, help in found}


def flags(build):
    """Verbs, the arguments that each takes, and its flags."""
    facts = {}
    verbs = re.findall(r"^  (\w+) ", build.output("phloem", "--help"), re.M)
    for verb in [*verbs, "hub status", "hub bench", "hub destroy"]:
        text = build.run("phloem", *verb.split(), "--help").stdout
        usage = re.sub(r"\[--.*?\]", "", "".join(re.findall(r"^usage: .*", text, re.M)))
        facts[verb] = " ".join(re.findall(r"\[?[A-Z]+\]?(?:\.\.\.)?", usage))
        facts |= {f"{verb} {flag}": value for flag, value in re.findall(r"^  (--[a-z-]+)(?: (\S+))?  ", text, re.M)}
    return facts


def exits(build):
    """The exit code of each command of baseline_exits.sh."""
    build.make_job()
    lines = build.output("sh", TOOLS / "baseline_exits.sh").splitlines()
    return {command: int(code) for code, command in (line.split("\t", 1) for line in lines)}


def member_types(value, path, facts):
    """Adds each member's path below a JSON value, with the types that were seen there."""
    if isinstance(value, dict):
        for key, member in value.items():
            member_types(member, f"{path}.{key}", facts)
    elif isinstance(value, list):
        for member in value:
            member_types(member, f"{path}[]", facts)
    else:
        kind = {str: "text", bool: "yes/no", type(None): "null"}.get(type(value), "number")
        facts[path] = " or ".join(sorted({*facts.get(path, kind).split(" or "), kind}))


def members(build):
    """Keys of the JSON files that the verbs leave, with the types of their values."""
    build.make_job()
    (build.work / "mixed.yaml").write_text(MIXED_PLAN)
    short = setting("train.epochs=1")
    build.train("job.yaml", "train", *setting("train.epochs=2"), "--profile", "--trace", "train.trace.json")
    build.train("job.yaml", "progressive", *short, *setting("train.progressive=true", "data.shuffle=false"))
    for verb, *arguments in (("prepare",), ("compare", "--seeds", "2", *short), ("tune", "--runs", "2", *short)):
        build.output("phloem", verb, "job.yaml", "--out", verb, "--quiet", *arguments)
    for _, launcher in list(launchers(build))[:1]:
        train_ranks(build, launcher, "ranks", "mixed.yaml", *short)
    facts = {}
    for verb in ("train", "progressive", "prepare", "compare", "tune", "ranks"):
        for file in sorted((build.work / verb).glob("*.json")):
            member_types(json.loads(file.read_text()), f"{verb}: {file.name} ", facts)
        for file in sorted((build.work / verb).glob("*.jsonl")):
            for line in map(json.loads, file.read_text().splitlines()):
                member_types(line, f"{verb}: {file.name} {line['event']} ", facts)
    return facts


# ---- what is built -------------------------------------------------------------------------------------------------------

def symbols(build):
    facts = {}
    for library in ("libphloem.so", "libphloem_hub.so", "libphloem_openmpi.so", "libphloem_mpich.so"):
        if (build.programs / library).exists():
            for line in build.output("nm", "-D", "--defined-only", build.programs / library).splitlines():
                facts[f"{library} {line.split()[2]}"] = line.split()[1]
    return facts


def bench(build):
    """Names and units of the rows that QUICK_BENCHES write."""
    build.notes.append(f"rows of {' '.join(QUICK_BENCHES)}; --only benches covers all programs")
    return rows(build, QUICK_BENCHES)


def benches(build):
    """Names and units of the rows that all benchmarks write."""
    return rows(build, [program.name for program in (build.programs / "bench").glob("*/bench_*") if program.is_file()])


def rows(build, names):
    def one(program):
        out = build.work / f"{program.name}.json"
        done = build.run(program, "--quick", "--rounds", "1", "--json", out)
        if done.returncode != 0:
            build.notes.append(f"{program.name} was not covered: it ended with {done.returncode}: {last_line(done)}")
            return {}
        return {row["name"]: row["unit"] for row in json.loads(out.read_text())}

    programs = sorted(program for program in (build.programs / "bench").glob("*/bench_*") if program.name in names)
    with concurrent.futures.ThreadPoolExecutor(build.jobs) as pool:  # nobody looks at the times
        return {name: unit for found in pool.map(one, programs) for name, unit in found.items()}


def tests(build):
    """Names of the CTest entries of ./run test with their labels, and of the cases in the sources of test programs."""
    facts = {}
    for preset in ("release", "asan"):
        shown = json.loads(build.output("ctest", "--test-dir", build.source / f"build/tests.{preset}", "--show-only=json-v1"))
        for test in shown["tests"]:
            labels = [p["value"] for p in test.get("properties", []) if p["name"] == "LABELS"]
            facts[f"entry {test['name']}"] = " ".join(labels[0]) if labels else ""
    case = re.compile(r"^static void (\w+)\(void \*\*", re.M)
    for file in sorted((build.source / "tests").rglob("*.c")):
        for name in case.findall(file.read_text()):
            facts[f"case {file.stem} {name}"] = ""
    return facts


def coverage(build):
    """The share of lines, in percent, that the unit tests reach in each room. Needs baseline.sh --coverage."""
    folder = build.source / "build/coverage"
    for count in folder.rglob("*.gcda"):
        count.unlink()
    tests_left_out = r"^(mpi|oracle)\.|faults|soak"
    build.run("ctest", "--test-dir", folder, "-L", "unit", "-E", tests_left_out, "-j", build.jobs)
    build.notes.append(f"tests that match {tests_left_out} were left out")
    counts = {}  # of a file's line: how often it ran
    notes = [note for note in folder.rglob("*.gcno") if re.search(r"phloem_(objects|avx2|avx512|double|verbs)\.dir", str(note))]
    for start in range(0, len(notes), 50):
        shown = build.output("gcov", "--json-format", "--stdout", *notes[start:start + 50], folder=folder)
        for line in shown.splitlines():
            for file in json.loads(line)["files"]:
                path = (folder / file["file"]).resolve()
                if path.is_relative_to(build.source / "src"):
                    for entry in file["lines"]:
                        place = path.relative_to(build.source / "src"), entry["line_number"]
                        counts[place] = counts.get(place, 0) + entry["count"]
    rooms = {}
    for (path, _), count in counts.items():
        rooms.setdefault(path.parts[0], []).append(count > 0)
    return {room: round(100 * sum(lines) / len(lines), 2) for room, lines in rooms.items()}


PARTS = {"sums": sums, "ranks": ranks, "compat": compat, "keys": keys, "flags": flags, "exits": exits, "members": members,
         "symbols": symbols, "tests": tests, "bench": bench, "benches": benches, "coverage": coverage}


# ---- gathering -----------------------------------------------------------------------------------------------------------

def stamp_of(part, folders):
    """Changes with whatever facts depend on beside the revisions' sources."""
    text = "\n".join([part, *(folder.name for folder in folders), str(DATA.resolve()), processor()[0]])
    tools = b"".join((TOOLS / name).read_bytes() for name in ("baseline_facts.py", "baseline_exits.sh"))
    return hashlib.sha256(text.encode() + tools).hexdigest()


def gather(part, folders, jobs, keep):
    """Writes the part's facts into each of the folders, unless they are there."""
    stamp = stamp_of(part, folders)
    paths = [folder / "facts" / f"{part}.json" for folder in folders]
    if all(path.exists() and json.loads(path.read_text()).get("stamp") == stamp for path in paths):
        return
    started = time.monotonic()
    work = pathlib.Path(tempfile.mkdtemp(prefix="baseline."))
    builds = [Build(folder, jobs, work) for folder in folders]
    try:
        found = PARTS[part](*builds)
        answers = [{"stamp": stamp, "facts": facts, "notes": builds[-1].notes}
                   for facts in (found if isinstance(found, tuple) else (found,))]
        if not all(answer["facts"] for answer in answers):
            raise Failed("there is nothing to compare")
    except Skipped as why:
        answers = [{"skipped": str(why)}] * len(paths)
    except Failed as why:
        sys.exit(f"baseline: {part} of {folders[-1].name}: {why}")
    finally:
        if not keep:
            shutil.rmtree(work)
    for path, answer in zip(paths, answers):
        path.parent.mkdir(exist_ok=True)
        path.write_text(json.dumps(answer, indent=1))
    names = " and ".join(folder.name for folder in folders)
    print(f"baseline: {part} of {names}: {time.monotonic() - started:.0f} s" + (f", in {work}" if keep else ""), flush=True)


def main():
    parser = argparse.ArgumentParser(usage="baseline_facts.py OLD NEW --parts PART,... [--jobs N] [--keep]")
    parser.add_argument("old", type=pathlib.Path)
    parser.add_argument("new", type=pathlib.Path)
    parser.add_argument("--parts", required=True)
    parser.add_argument("--jobs", type=int, default=os.cpu_count())
    parser.add_argument("--keep", action="store_true")
    arguments = parser.parse_args()
    folders = [arguments.old, arguments.new]
    for part in arguments.parts.split(","):
        for group in [folders] if part == "compat" else [[folder] for folder in folders]:
            gather(part, group, arguments.jobs, arguments.keep)


if __name__ == "__main__":
    sys.exit(main())
