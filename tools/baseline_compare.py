#!/usr/bin/env python3
"""Compares the facts of two revisions that baseline_facts.py has gathered, and prints a line for each difference.

usage: baseline_compare.py OLD NEW [--expect FILE] [--parts PART,...]

OLD and NEW are folders of PART.json: {"facts": {name: value}, "notes": [text]} or {"skipped": why}. A number may rise; it differs
where it fell by more than TOLERANCE. FILE lists the differences that are meant, one a line: PART SIGN NAME, where SIGN is + (new),
- (gone) or ~ (changed) and * in NAME stands for any text; lines that begin with # and empty lines are comments.

Ends with 1 where something differs that FILE does not list. An entry that matches no difference is reported, no more: the
difference may belong to another processor, or to a later revision.
"""
import argparse
import json
import pathlib
import re
import sys

TOLERANCE = 0.5  # of numbers, which are percentages of covered lines


class Entry:
    """A line of the file of expected differences."""

    def __init__(self, number, line):
        words = line.split(None, 2)
        if len(words) < 3 or words[1] not in ("+", "-", "~"):
            sys.exit(f"baseline: line {number} of the expected differences must be PART SIGN NAME, not '{line}'")
        self.number, self.line, self.is_used = number, line, False
        self.part, self.sign = words[0], words[1]
        self.name = re.compile(".*".join(map(re.escape, words[2].split("*"))))

    def matches(self, part, sign, name):
        is_match = (self.part, self.sign) == (part, sign) and self.name.fullmatch(name) is not None
        self.is_used |= is_match
        return is_match


def read_entries(path):
    if path is None:
        return []
    lines = enumerate(pathlib.Path(path).read_text(encoding="utf-8").splitlines(), 1)
    return [Entry(number, line.strip()) for number, line in lines if line.strip() and not line.startswith("#")]


def is_worse(old, new):
    if isinstance(old, float) and isinstance(new, float):
        return new < old - TOLERANCE
    return old != new


def shortened(value):
    text = str(value)
    return text[:12] + "…" if re.fullmatch("[0-9a-f]{40,}", text) else text


def differences(old, new):
    """Yields (sign, name, what it says)."""
    for name in sorted(old.keys() | new.keys()):
        if name not in new:
            yield "-", name, shortened(old[name])
        elif name not in old:
            yield "+", name, shortened(new[name])
        elif is_worse(old[name], new[name]):
            yield "~", name, f"{shortened(old[name])} -> {shortened(new[name])}"


def compare_part(part, old, new, entries):
    """Prints the part's differences. Returns how many of them are expected, and how many are not."""
    counts = {True: 0, False: 0}
    for sign, name, text in differences(old, new):
        is_expected = any([entry.matches(part, sign, name) for entry in entries])
        counts[is_expected] += 1
        print(f"{'expected' if is_expected else 'differs'}: {part} {sign} {name}{': ' if text else ''}{text}")
    return counts[True], counts[False]


def read_part(folder, part):
    path = pathlib.Path(folder) / f"{part}.json"
    return json.loads(path.read_text(encoding="utf-8")) if path.exists() else {"skipped": f"{path} does not exist"}


def main():
    parser = argparse.ArgumentParser(usage="baseline_compare.py OLD NEW [--expect FILE] [--parts PART,...]")
    parser.add_argument("old")
    parser.add_argument("new")
    parser.add_argument("--expect")
    parser.add_argument("--parts")
    arguments = parser.parse_args()
    entries = read_entries(arguments.expect)
    files = [*pathlib.Path(arguments.old).glob("*.json"), *pathlib.Path(arguments.new).glob("*.json")]
    parts = arguments.parts.split(",") if arguments.parts else sorted({file.stem for file in files})
    num_facts = num_expected = num_unexpected = 0
    compared, notes = [], []
    for part in parts:
        old, new = read_part(arguments.old, part), read_part(arguments.new, part)
        skipped = [side["skipped"] for side in (old, new) if "skipped" in side]
        notes += [f"{part}: skipped: {skipped[0]}"] if skipped else [f"{part}: {note}" for note in new["notes"]]
        if skipped:
            continue
        compared.append(part)
        num_facts += len(old["facts"].keys() | new["facts"].keys())
        expected, unexpected = compare_part(part, old["facts"], new["facts"], entries)
        num_expected += expected
        num_unexpected += unexpected
    for entry in entries:
        if entry.part in compared and not entry.is_used:
            print(f"unused: line {entry.number} of the expected differences: {entry.line}")
    print("".join(f"note: {note}\n" for note in notes), end="")
    print(f"baseline: {num_facts} facts of {len(compared)} parts ({' '.join(compared)}): "
          f"{num_unexpected} differ, {num_expected} more as expected")
    return 1 if num_unexpected else 0


if __name__ == "__main__":
    sys.exit(main())
