#!/usr/bin/env python3
"""Links between the tree's pages lead somewhere: the file is there, and the heading that an #anchor names.

    check_links.py ROOT

Of Markdown files in ROOT and ROOT/docs; links with a scheme are not followed. Prints file, line and link; ends with 1 when
there is any. An anchor is made of a heading as GitHub does: lower case, blanks become dashes, other signs than letters,
digits, dashes and underscores go, and a heading that was there already gets -1, -2 ...
"""
import pathlib
import re
import sys

LINK = re.compile(r"\]\(([^()\s]+)\)")
HEADING = re.compile(r"#{1,6}\s+(.*?)\s*#*$")


def lines_outside_code(path):
    """(number, line) of all lines that are no code: neither fenced nor indented."""
    is_fenced = False
    for number, line in enumerate(path.read_text(encoding="utf-8").splitlines(), 1):
        if line.lstrip().startswith("```"):
            is_fenced = not is_fenced
        elif not is_fenced and not line.startswith("    "):
            yield number, line


def anchors(path):
    found = {}
    for _, line in lines_outside_code(path):
        match = HEADING.match(line)
        if match:
            text = re.sub(r"\[([^\]]*)\]\([^)]*\)", r"\1", match[1])
            name = re.sub(r"[^\w\- ]", "", text.lower()).replace(" ", "-")
            found[name] = found.get(name, -1) + 1
    return {f"{name}-{i}" if i else name for name, count in found.items() for i in range(count + 1)}


def what_is_wrong(page, link):
    """None: nothing."""
    path, _, anchor = link.partition("#")
    target = page if path == "" else (page.parent / path)
    if not target.exists():
        return "there is no such file"
    if anchor and target.suffix == ".md" and anchor not in anchors(target):
        return "there is no such heading"
    return None


def main():
    root = pathlib.Path(sys.argv[1])
    complaints = 0
    for page in sorted([*root.glob("*.md"), *root.glob("docs/*.md")]):
        for number, line in lines_outside_code(page):
            for link in LINK.findall(re.sub(r"`[^`]*`", "", line)):
                wrong = None if re.match(r"[a-z]+:", link) else what_is_wrong(page, link)
                if wrong:
                    print(f"{page.relative_to(root)}:{number}: {link}: {wrong}")
                    complaints += 1
    if complaints:
        return 1
    print("links: fine")
    return 0


sys.exit(main())
