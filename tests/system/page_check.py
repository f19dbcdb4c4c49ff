#!/usr/bin/env python3
"""Looks at pages that phloem has made, or that a browser has made of them.

usage: page_check.py sound PAGE...           tags nest, ids are unique, nothing is fetched from anywhere
       page_check.py series PAGE ID MINIMUM  the document in a page has a series of that id, of at least so many points
       page_check.py curve PAGE ID MINIMUM   what a browser has drawn has a line of at least so many points in the element of that id
       page_check.py asked LOG ORIGIN MINIMUM  in Chromium's log of the network, the page of that origin (http://HOST:PORT) has
                                             asked its own server at least so many times, and no other
       page_check.py corner IMAGE MAXIMUM    the first pixel of a PNG is no brighter than that, 0 .. 255
       page_check.py corner IMAGE MINIMUM -  it is at least as bright

Prints what is wrong; ends with 1 when anything is.
"""
import html.parser
import json
import pathlib
import re
import struct
import sys
import zlib

VOID = {"meta", "link", "br", "hr", "img", "input"}
FETCHING = {"src", "srcset", "data", "action", "poster"}


class Page(html.parser.HTMLParser):
    """Gathers problems, and the path of each element with an id."""

    def __init__(self, text):
        super().__init__(convert_charrefs=True)
        self.open, self.ids, self.problems = [], [], []
        self.paths = {}  # id: data of the paths below
        self.feed(text)
        self.close()
        self.problems += [f"<{tag}> is not closed" for tag, _ in self.open]

    def look_at(self, tag, attributes):
        attributes = dict(attributes)
        if "id" in attributes:
            if attributes["id"] in self.ids:
                self.problems.append(f"the id {attributes['id']} is there twice")
            self.ids.append(attributes["id"])
        for name, value in attributes.items():
            is_elsewhere = name in FETCHING or (name in ("href", "xlink:href") and not value.startswith(("data:", "#")))
            if is_elsewhere:
                self.problems.append(f"<{tag}> fetches {value}")
        if tag == "path":
            for _, identity in self.open:
                if identity:
                    self.paths.setdefault(identity, []).append(attributes.get("d", ""))
        return attributes.get("id")

    def handle_starttag(self, tag, attrs):
        identity = self.look_at(tag, attrs)
        if tag not in VOID:
            self.open.append((tag, identity))

    def handle_startendtag(self, tag, attrs):
        self.look_at(tag, attrs)

    def handle_endtag(self, tag):
        if self.open and self.open[-1][0] == tag:
            self.open.pop()
        else:
            self.problems.append(f"</{tag}> closes {self.open[-1][0] if self.open else 'nothing'}")

    def handle_data(self, data):
        if self.open and self.open[-1][0] == "style" and re.search(r"url\(|@import", data):
            self.problems.append("the style fetches something")


def check_sound(path):
    text = path.read_text(encoding="utf-8")
    problems = Page(text).problems
    if not text.startswith("<!DOCTYPE html>"):
        problems.append("is no page")
    if re.search(r"\b(nan|inf)\b", re.sub(r">[^<]*<", "><", text)):
        problems.append("an attribute is no number")
    return [f"{path}: {problem}" for problem in problems]


def check_curve(path, identity, minimum):
    paths = Page(path.read_text(encoding="utf-8")).paths.get(identity, [])
    count = max((len(re.findall(r"[ML]", data)) for data in paths), default=0)
    return [] if count >= minimum else [f"{path}: {identity} has {count} points; wanted {minimum}"]


def series_of(node, identity):
    """All series of that id, however deep."""
    if isinstance(node, dict) and node.get("id") == identity and "x" in node:
        yield node
    for child in node.values() if isinstance(node, dict) else node if isinstance(node, list) else []:
        yield from series_of(child, identity)


def check_series(path, identity, minimum):
    text = path.read_text(encoding="utf-8")
    document = json.loads(re.search(r'id="document">(.*?)</script>', text, re.DOTALL)[1])
    count = max((len(series["x"]) for series in series_of(document, identity)), default=0)
    return [] if count >= minimum else [f"{path}: {identity} has {count} points; wanted {minimum}"]


def check_asked(path, origin, minimum):
    """Chromium asks hosts for its own purposes, too: those requests have another initiator."""
    log = json.loads(path.read_text(encoding="utf-8"))
    events = [event.get("params", {}) for event in log["events"]]
    asked = [params["url"] for params in events if params.get("initiator") == origin and "url" in params]
    problems = [f"{path}: the page asks for {url}" for url in asked if not url.startswith(origin + "/")]
    if len(asked) < minimum:
        problems.append(f"{path}: the page asks {len(asked)} times; wanted {minimum}")
    return problems


def first_pixel(path):
    """Of an image of 8 bits a channel: behind the filter's byte, whichever filter it is."""
    data = path.read_bytes()
    at, packed = 8, b""
    while at < len(data):
        size, kind = struct.unpack(">I4s", data[at : at + 8])
        if kind == b"IDAT":
            packed += data[at + 8 : at + 8 + size]
        at += size + 12
    return max(zlib.decompress(packed)[1:4])


def check_corner(path, bound, is_minimum):
    bright = first_pixel(path)
    is_fine = bright >= bound if is_minimum else bright <= bound
    return [] if is_fine else [f"{path}: the corner is {bright} bright, not {'from' if is_minimum else 'up to'} {bound}"]


def main():
    what, path = sys.argv[1], pathlib.Path(sys.argv[2])
    if what == "sound":
        problems = [problem for name in sys.argv[2:] for problem in check_sound(pathlib.Path(name))]
    elif what in ("curve", "series", "asked"):
        check = {"curve": check_curve, "series": check_series, "asked": check_asked}[what]
        problems = check(path, sys.argv[3], int(sys.argv[4]))
    else:
        problems = check_corner(path, int(sys.argv[3]), len(sys.argv) > 4)
    print("\n".join(problems) if problems else "page: fine")
    return 1 if problems else 0


if __name__ == "__main__":
    sys.exit(main())
