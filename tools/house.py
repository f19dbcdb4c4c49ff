#!/usr/bin/env python3
"""What each room of src/ is made of: files, lines, and how finely it is cut.

usage: house.py [REVISION]

Prints a table of the checkout that it stands in; with REVISION, that revision's table before it.

  files     .c, .h and .inc files
  lines     all of them
  code      lines that are not blank, comment or #include
  comment   share of lines that are comment alone
  median    lines of the median file
  longest   lines of the longest file
  folder    files of the fullest folder
  short     files under 30 lines
  exported  functions that a .c file defines for others, public ones apart
  for one   those of them that exactly one other file names
  circles   groups of modules (a header and its source) that include each other
"""
import collections
import pathlib
import re
import statistics
import subprocess
import sys
import tarfile
import tempfile

from rooms import circles, modules

SHORT = 30
COMMENT = re.compile(r"/\*.*?\*/|//[^\n]*", re.S)
STRING = re.compile(r'"(?:\\.|[^"\\\n])*"|\'(?:\\.|[^\'\\\n])*\'')
# A definition begins at the line's head, and its body at the end of the line that its parameters end on.
DEFINITION = re.compile(r"^(?!static\b|PH_INLINE\b|typedef\b|return\b)[A-Za-z_][\w \*]*?\b(\w+)\([^;{}]*?\)\s*\{", re.M)
WORD = re.compile(r"\b[A-Za-z_]\w*\b")
COLUMNS = ("files", "lines", "code", "comment", "median", "longest", "folder", "short", "exported", "for one", "circles")


def without_strings(text):
    return STRING.sub('""', text)


def kinds_of_lines(text):
    """Lines of code and lines of comment alone. A string is code, also where it looks like a comment."""
    bare = COMMENT.sub(lambda match: "\n" * match[0].count("\n"), without_strings(text)).splitlines()
    whole = text.splitlines()
    code = sum(1 for line in bare if line.strip() and not line.lstrip().startswith("#include"))
    blank = sum(1 for line in whole if not line.strip())
    include = sum(1 for line in bare if line.lstrip().startswith("#include"))
    return code, len(whole) - code - blank - include


def exported(sources, public):
    """Functions by name: the file that defines it, and the number of other files that name it."""
    home, users = {}, collections.defaultdict(set)
    for path, text in sources.items():
        bare = COMMENT.sub("", without_strings(text))
        if path.suffix == ".c":
            for match in DEFINITION.finditer(bare):
                if match[1] not in public:
                    home.setdefault(match[1], path)
            for word in set(WORD.findall(bare)):
                users[word].add(path)
    return {name: (path, len(users[name] - {path})) for name, path in home.items()}


def measure(root):
    """Rows by room, in the columns' order; the last one is of all rooms."""
    paths = sorted(path for path in (root / "src").rglob("*") if path.suffix in {".c", ".h", ".inc"})
    sources = {path: path.read_text(encoding="utf-8") for path in paths}
    public = set()
    for header in (root / "include" / "phloem").glob("*.h"):
        public |= set(WORD.findall(header.read_text(encoding="utf-8")))
    functions = exported(sources, public)
    rings = circles(modules(root))
    rooms = sorted({path.relative_to(root).parts[1] for path in sources})
    rows = {}
    for room in rooms + ["all"]:
        mine = [path for path in sources if room in ("all", path.relative_to(root).parts[1])]
        lengths = [len(sources[path].splitlines()) for path in mine]
        kinds = [kinds_of_lines(sources[path]) for path in mine]
        folders = collections.Counter(path.parent for path in mine)
        own = [uses for path, uses in functions.values() if path in mine]
        rows[room] = (len(mine), sum(lengths), sum(code for code, _ in kinds),
                      f"{100 * sum(comment for _, comment in kinds) / max(1, sum(lengths)):.1f}%",
                      int(statistics.median(lengths)), max(lengths), max(folders.values()),
                      sum(length < SHORT for length in lengths), len(own), own.count(1),
                      sum(1 for ring in rings if room in ("all", ring[0].split("/")[0])))
    return rows


def print_table(title, rows):
    print(f"{title}\n{'room':8}" + "".join(f"{column:>9}" for column in COLUMNS))
    for room, row in rows.items():
        print(f"{room:8}" + "".join(f"{value:>9}" for value in row))


def measure_revision(revision):
    with tempfile.TemporaryDirectory() as folder:
        archive = subprocess.Popen(["git", "archive", revision, "src", "include"], stdout=subprocess.PIPE)
        with tarfile.open(fileobj=archive.stdout, mode="r|") as tar:
            tar.extractall(folder)
        if archive.wait():
            sys.exit(f"house: git knows no revision '{revision}'")
        return measure(pathlib.Path(folder))


def main():
    if len(sys.argv) > 2 or sys.argv[1:] and sys.argv[1].startswith("-"):
        sys.exit("usage: house.py [REVISION]")
    if sys.argv[1:]:
        print_table(f"at {sys.argv[1]}", measure_revision(sys.argv[1]))
        print()
    print_table("here", measure(pathlib.Path(__file__).parents[1]))


if __name__ == "__main__":
    main()
