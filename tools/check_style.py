#!/usr/bin/env python3
"""The house style, as far as a script can see it.

usage: check_style.py [ROOT]

Prints one line a violation, "file:line: what is wrong", and ends with 1 when there is any.
"""
import os
import pathlib
import re
import sys

MAX_LINES = 600
CODE = {".c", ".h", ".py", ".sh", ".cmake"}
TEXT = CODE | {".md", ".yaml", ".json", ".txt", ".in", ".def"}
LEFT_OUT = {".git", "build", "runs", "__pycache__"}
SAME_NAME_IS_FINE = {"main.c", "CMakeLists.txt", "README.md"}  # one in each example or folder
UNFINISHED = re.compile(r"\b(TO" + r"DO|FIX" + r"ME|XX" + r"X)\b")
MACHINE_PATH = re.compile(r"(?<![\w.$}])/(home|root|work|Users|mnt)/\w")
OPERATOR = re.compile(r"const struct ph__op ph__op_\w+ =")
CONFLICT = re.compile(r"(<{7}|>{7}) ")
KERNELS = {  # folder of src/kernel: what the names of its files end with, the usual first
    "ref": ("ref",),
    "simd": ("simd", "avx2", "avx512"),  # for every ISA that has vectors, or for one
    "cuda": ("cuda",),
}


def files(root):
    for folder, folders, names in os.walk(root):
        relative = pathlib.Path(folder).relative_to(root)
        folders[:] = sorted(f for f in folders if f not in LEFT_OUT and relative / f != pathlib.Path("tests/fixtures"))
        for name in sorted(names):
            if pathlib.Path(name).suffix in TEXT or name == "run":
                yield relative / name


def text_problems(path, lines):
    if (path.suffix in CODE or path.name == "run") and len(lines) > MAX_LINES:
        yield MAX_LINES + 1, f"longer than {MAX_LINES} lines: one idea a file"
    for number, line in enumerate(lines, 1):
        match = UNFINISHED.search(line)
        if match:
            yield number, f"{match[1]}: finish it, or write an issue"
        if CONFLICT.match(line):
            yield number, "a conflict that was not resolved"
        match = MACHINE_PATH.search(line)
        if match:
            yield number, f"a path of one machine: {match[0]}..."


def name_problem(path, is_operator):
    """What is wrong with a file's name for the folder that it is in, or None."""
    parts = path.parts
    if parts[:2] == ("src", "kernel") and path.suffix == ".c":
        folder, ending = parts[2], path.stem.rsplit("_", 1)[-1]
        if folder in KERNELS and ending not in KERNELS[folder]:
            return f"a kernel file carries its ISA: {path.stem}_{KERNELS[folder][0]}.c"
        home = next((name for name, endings in KERNELS.items() if ending in endings), None)
        if len(parts) == 3 and home:
            return f"belongs in src/kernel/{home}/"
    if parts[:2] == ("src", "op") and is_operator and not path.stem.startswith("op_"):
        return f"a file of an operator starts with op_: op_{path.name}"
    if parts[:2] == ("tests", "unit") and path.suffix == ".c" and not path.stem.startswith("test_"):
        return f"a test mirrors its source: test_{path.name}"
    return None


def main():
    root = pathlib.Path(sys.argv[1] if len(sys.argv) > 1 else ".")
    problems = []
    first = {}  # file name: the first path that has it
    for path in files(root):
        lines = (root / path).read_text(encoding="utf-8").splitlines()
        problems += [f"{path}:{number}: {what}" for number, what in text_problems(path, lines)]
        wrong_name = name_problem(path, any(map(OPERATOR.match, lines)))
        if wrong_name:
            problems.append(f"{path}:1: {wrong_name}")
        is_public = path.parts[0] == "include"  # a room's inner header may be named as its public one
        if path.suffix in CODE and path.name not in SAME_NAME_IS_FINE and not is_public:
            if first.setdefault(path.name, path) != path:
                problems.append(f"{path}:1: {first[path.name]} has the same name")
    print("\n".join(problems) if problems else "style: fine")
    return 1 if problems else 0


if __name__ == "__main__":
    sys.exit(main())
