#!/usr/bin/env python3
"""Shows how far the tests that learn stay from their bars: runs each with many seeds under each instruction set of this machine.

    tools/learning_margins.py [--build FOLDER] [--seeds N] [--isa ref,avx2,avx512] [--jobs N] [--keep FILE] [TEST...]

A test that learns calls `learned` (tests/support/learned.sh) or test_learned_at_least or _at_most (tests/support/test_support.h), takes
its seed from PH_TEST_SEED and so prints lines of the form

    learned NAME VALUE >= BAR

The tool finds such tests by their sources, takes their commands from CTest and sets PH_TEST_SEED to 1 to N, PHLOEM_ISA and TMPDIR. TEST
is a part of a CTest name, such as system.zoo; all tests are run where none is given. --keep adds every run to a file, a line of
JSON each, and repeats none that is there: raise --seeds to go on. Prints a table; the exit code is 1 where a test has failed.
"""
import argparse
import concurrent.futures
import json
import os
import pathlib
import re
import signal
import statistics
import subprocess
import sys
import tempfile

ROOT = pathlib.Path(__file__).resolve().parent.parent
ISAS = ("ref", "avx2", "avx512")
CALL = re.compile(r"^\s*(learned\s|test_learned_at_(least|most)\()", re.MULTILINE)
LINE = re.compile(r"^learned (\S+) (\S+) (>=|<=) (\S+)$", re.MULTILINE)
SKIPPED = 77


def fail(code, text):
    print(f"learning_margins: {text}", file=sys.stderr)
    sys.exit(code)


# ---- tests ----


def learning_sources():
    """Sources of tests that learn."""
    sources = [*ROOT.glob("tests/**/*.sh"), *ROOT.glob("tests/**/test_*.c")]
    return sorted(path for path in sources if path.parent.name != "support" and CALL.search(path.read_text()))


def ctest_tests(build):
    """CTest's tests: {name: (command, environment)}; those that set PHLOEM_ISA themselves are left out."""
    cache = (build / "CMakeCache.txt").read_text()
    ctest = re.search(r"^CMAKE_CTEST_COMMAND:INTERNAL=(.*)$", cache, re.MULTILINE).group(1)
    shown = subprocess.run([ctest, "--show-only=json-v1"], cwd=build, check=True, capture_output=True, text=True).stdout
    tests = {}
    for test in json.loads(shown)["tests"]:
        properties = {each["name"]: each["value"] for each in test.get("properties", [])}
        environment = dict(pair.split("=", 1) for pair in properties.get("ENVIRONMENT", []))
        if "PHLOEM_ISA" not in environment:
            tests[test["name"]] = (test.get("command", []), environment)
    return tests


def tests_of(source, tests):
    """Names of the tests that run this source: scripts by their path, programs as <room>.<file>."""
    if source.suffix == ".sh":
        return [name for name, (command, _) in tests.items() if str(source) in command]
    name = f"{source.parent.name}.{source.stem.removeprefix('test_')}"
    return [name] if name in tests else []


def find_tests(build, parts):
    tests, found = ctest_tests(build), {}
    for source in learning_sources():
        names = tests_of(source, tests)
        if not names:
            fail(2, f"CTest runs no test of {source.relative_to(ROOT)} in {build}: configure it")
        found.update((name, tests[name]) for name in names if not parts or any(part in name for part in parts))
    if not found:
        fail(2, f"no test that learns is called {' or '.join(parts)}")
    return found


# ---- runs ----


def run(command, environment, isa, folder, timeout=None):
    """Runs a command with a temporary folder of its own; returns both streams in one text, and the status."""
    settings = {**os.environ, **environment, "PHLOEM_ISA": isa, "TMPDIR": folder}
    with subprocess.Popen(command, cwd=folder, env=settings, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE,
                          stderr=subprocess.STDOUT, text=True, errors="replace", start_new_session=True) as process:
        try:
            return process.communicate(timeout=timeout)[0], process.wait()
        except subprocess.TimeoutExpired:
            os.killpg(process.pid, signal.SIGKILL)
            return f"timed out after {timeout} seconds", 124


def why_isa_is_absent(isa, build):
    """The program's own words where it cannot run under this instruction set, else None."""
    with tempfile.TemporaryDirectory() as folder:
        (pathlib.Path(folder) / "rows.csv").write_text("label,user\n0,a\n1,b\n")
        (pathlib.Path(folder) / "job.yaml").write_text(
            "data: {train: rows.csv, fields: [{name: label, kind: label}, {name: user, kind: id}]}\nmodel: {kind: lr}\n")
        output, status = run([build / "phloem", "train", "job.yaml", "--out", "run", "--quiet"], {}, isa, folder)
    return None if status == 0 else output.strip().replace("phloem: error: ", "")


def run_test(name, command, environment, isa, seed, timeout):
    with tempfile.TemporaryDirectory(prefix="phloem-margin-") as folder:
        output, status = run(command, {**environment, "PH_TEST_SEED": str(seed)}, isa, folder, timeout)
    learned = [(what, float(value), relation, float(bar)) for what, value, relation, bar in LINE.findall(output)]
    return {"test": name, "isa": isa, "seed": seed, "status": status, "learned": learned,
            "output": output[-2000:] if status not in (0, SKIPPED) else ""}


def key_of(each):
    return each["test"], each["isa"], each["seed"]


def run_all(tests, isas, options):
    """One record a run. Seeds go round slowest, so that what is stopped has whole rounds."""
    kept = options.keep.read_text().splitlines() if options.keep and options.keep.exists() else []
    done = {key_of(each): each for each in map(json.loads, kept)}
    wanted = [(name, isa, seed) for seed in range(1, options.seeds + 1) for isa in isas for name in tests]
    with concurrent.futures.ThreadPoolExecutor(options.jobs) as pool:
        runs = [pool.submit(run_test, name, *tests[name], isa, seed, options.timeout)
                for name, isa, seed in wanted if (name, isa, seed) not in done]
        for finished in concurrent.futures.as_completed(runs):
            each = finished.result()
            done[key_of(each)] = each
            print(f"{each['test']}  {each['isa']}  seed {each['seed']}  status {each['status']}", file=sys.stderr, flush=True)
            if options.keep:
                with open(options.keep, "a", encoding="utf-8") as file:
                    file.write(json.dumps(each) + "\n")
    return [done[key] for key in wanted]


# ---- the table ----


def margin(value, relation, bar):
    """Distance to the bar, negative beyond it; a value that is no number lies infinitely far beyond."""
    distance = value - bar if relation == ">=" else bar - value
    return distance if distance == distance else float("-inf")


def worst_of(runs):
    """(worst value, its seed, its margin, standard deviations from the mean to the bar)"""
    distances = [(margin(value, relation, bar), seed, value) for seed, value, relation, bar in runs]
    least, seed, value = min(distances)
    spread = statistics.stdev(each[0] for each in distances) if len(distances) > 1 and least > float("-inf") else 0
    return value, seed, least, statistics.mean(each[0] for each in distances) / spread if spread > 0 else float("inf")


def print_table(records, isas):
    measured = {}
    for each in records:
        for what, value, relation, bar in each["learned"]:
            row = measured.setdefault((each["test"], what, relation), {})
            row.setdefault(each["isa"], []).append((each["seed"], value, relation, bar))
    heads = ["test", "learnt", "bar"]
    for isa in isas:
        heads += [f"{isa}: runs", "worst", "seed", "margin", "deviations"]
    print("| " + " | ".join(heads) + " |\n|" + "---|" * len(heads))
    for (test, what, relation), row in sorted(measured.items()):
        cells = [test, what, f"{relation} {next(iter(row.values()))[0][3]:.4g}"]
        for isa in isas:
            if isa in row:
                value, seed, least, deviations = worst_of(row[isa])
                cells += [str(len(row[isa])), f"{value:.4g}", str(seed), f"{least:.3g}", f"{deviations:.1f}"]
            else:
                cells += ["0", "", "", "", ""]
        print("| " + " | ".join(cells) + " |")


def tell_ends(records):
    """Says what failed and what was skipped; gives the number of failures."""
    skipped = sorted({each["test"] for each in records if each["status"] == SKIPPED})
    silent = [each for each in records if each["status"] == 0 and not each["learned"]]
    failed = [each for each in records if each["status"] not in (0, SKIPPED)]
    for name in skipped:
        print(f"skipped: {name}")
    for each in failed:
        print(f"FAILED: {each['test']} under {each['isa']} with seed {each['seed']} (status {each['status']}):")
        print("\n".join("    " + line for line in each["output"].splitlines()[-8:]))
    for each in silent:
        print(f"FAILED: {each['test']} under {each['isa']} with seed {each['seed']} printed no `learned` line")
    return len(failed) + len(silent)


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("tests", nargs="*", metavar="TEST")
    parser.add_argument("--build", type=pathlib.Path, default=ROOT / "build/release")
    parser.add_argument("--seeds", type=int, default=20)
    parser.add_argument("--isa", default=",".join(ISAS))
    parser.add_argument("--jobs", type=int, default=1)
    parser.add_argument("--keep", type=pathlib.Path)
    parser.add_argument("--timeout", type=float, default=3600, help="seconds a run")
    options = parser.parse_args()
    build = options.build.resolve()
    if options.seeds < 1 or not set(options.isa.split(",")) <= set(ISAS):
        fail(2, f"--seeds wants at least 1, --isa some of {','.join(ISAS)}")
    if not (build / "CMakeCache.txt").exists():
        fail(2, f"{build} is no build: ./run test makes one")
    tests = find_tests(build, options.tests)
    absent = {isa: why_isa_is_absent(isa, build) for isa in ISAS if isa in options.isa.split(",")}
    isas = [isa for isa, why in absent.items() if why is None]
    if not isas:
        fail(2, "; ".join(absent.values()))
    records = run_all(tests, isas, options)
    print_table(records, isas)
    for isa in ISAS:
        if isa not in isas:
            print(f"not run: {isa}: {absent.get(isa, 'left out by --isa')}")
    num_failed = tell_ends(records)
    print(f"{len(records)} runs: {num_failed} failed, {sum(each['status'] == SKIPPED for each in records)} skipped")
    return 1 if num_failed > 0 else 0


if __name__ == "__main__":
    sys.exit(main())
