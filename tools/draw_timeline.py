#!/usr/bin/env python3
"""Draws one step of the trace that a training on ranks has left: who computes, who waits, and what is in flight.

    mpirun -n 2 phloem train CONFIG --out DIR --trace trace.json
    tools/draw_timeline.py trace.json [--step 12] [--write docs/parallel_timeline.svg]
    tools/draw_timeline.py real.json simulated.json [--names real,simulated]      # one above the other, to one scale

Each rank has a row of its operators, on which waits for others lie in red, and what it takes to send and receive in a lighter
one; and rows of what it has in flight, from its start to when the rank found it done. Without --step, the step of median
duration. What does not fit as a label is a tooltip.
"""
import argparse
import collections
import html
import json
import pathlib
import sys

WIDTH, LEFT, RIGHT, TOP, BOTTOM = 960, 76, 16, 84, 40
ROW, GAP, BETWEEN = 20, 3, 18  # of a row, below it, and below a rank
LETTER = 6.2  # width of a letter of a bar's label, about
LEAST = 0.4  # pixels of a bar that can be seen

STYLE = """<style>
text { font: 12px system-ui, sans-serif; fill: #24292f } .title { font-size: 14px } .name { font-size: 11px }
.back { fill: #ffffff } .grid { stroke: #d0d7de } .bar text { fill: #ffffff; font-size: 10.5px }
.dense { fill: #0969da } .tables { fill: #1a7f37 } .exchange { fill: #8c959f } .wait { fill: #cf222e } .poll { fill: #ffb3ae }
.requests { fill: #8250df } .vectors { fill: #bc4c00 } .gradients { fill: #9a6700 } .other { fill: #57606a }
@media (prefers-color-scheme: dark) {
  text { fill: #c9d1d9 } .back { fill: #0d1117 } .grid { stroke: #30363d } .bar text { fill: #0d1117 }
  .dense { fill: #58a6ff } .tables { fill: #3fb950 } .exchange { fill: #6e7681 } .wait { fill: #ff7b72 } .poll { fill: #8e3b36 }
  .requests { fill: #bc8cff } .vectors { fill: #ffa657 } .gradients { fill: #d29922 } .other { fill: #8b949e }
}
</style>"""

TABLE_OPERATORS = {
    *("slots", "merge", "entries", "feature_bags", "feature_weights", "embedding_bag", "embedding_rows"),
    *("embedding_gradient", "embedding_update", "embedding_squares", "row_squares", "update_table"),
    *("keep_lookup", "group_positions", "kept_entries"),
}
EXCHANGES = {"gather_rows"}  # and whatever starts something or waits for it

LEGEND = (
    ("dense", "dense operators"),
    ("tables", "tables"),
    ("exchange", "packing and unpacking"),
    ("wait", "waiting for others"),
    ("poll", "sending and receiving"),
    ("requests", "ids in flight"),
    ("vectors", "vectors and their gradients"),
    ("gradients", "dense gradients"),
    ("other", "a few numbers"),
)


def kind_of_operator(operator):
    """The class of an operator's bar, by its name."""
    if operator in EXCHANGES or operator.endswith(("_start", "_wait")):
        return "exchange"
    return "tables" if operator in TABLE_OPERATORS else "dense"


def kind_of_flight(what):
    """The class of what is in flight, by what it is about."""
    if what in ("ids", "lengths of bags", "weights of ids"):
        return "requests"
    if what in ("gradients of dense parameters", "dense gradients at the hub"):
        return "gradients"
    if what.startswith(("vectors of", "gradients of", "sums on hosts of", "squares of")) or what == "touched rows":
        return "vectors"
    return "other"


def read_trace(path):
    """Events by rank, and the ranks' names."""
    with open(path, encoding="utf-8") as file:
        events = json.load(file)["traceEvents"]
    names = {event["pid"]: event["args"]["name"] for event in events if event["name"] == "process_name"}
    if not names:
        sys.exit(f"{path}: no trace of ranks: was it a training of one process?")
    by_rank = collections.defaultdict(list)
    for event in events:
        if event["ph"] == "X":
            by_rank[event["pid"]].append(event)
    return by_rank, names


def steps_of(by_rank):
    """(begin, end) of each step that all ranks have in the trace."""
    found = collections.defaultdict(list)
    for events in by_rank.values():
        for event in events:
            if event["cat"] == "step":
                found[event["args"]["step"]].append((event["ts"], event["ts"] + event["dur"]))
    return {
        step: (min(begin for begin, _ in spans), max(end for _, end in spans))
        for step, spans in found.items()
        if len(spans) == len(by_rank)
    }


def median_step(steps):
    by_duration = sorted(steps, key=lambda step: (steps[step][1] - steps[step][0], step))
    return by_duration[len(by_duration) // 2]


class Picture:
    """Bars over the time from `begin` to `end`, in microseconds."""

    def __init__(self, begin, end):
        self.begin, self.scale = begin, (WIDTH - LEFT - RIGHT) / (end - begin)
        self.parts, self.y, self.duration = [], TOP, end - begin

    def x(self, time):
        return LEFT + (time - self.begin) * self.scale

    def bar(self, event, kind, height, has_label=True):
        left, width = self.x(event["ts"]), event["dur"] * self.scale
        if width < LEAST:
            return
        name = html.escape(event["name"])
        tooltip = f"{name}: {event['dur'] / 1000:.3f} ms"
        if "sent_bytes" in event.get("args", {}):
            tooltip += f", {event['args']['sent_bytes']:,} bytes sent"
        label = ""
        if has_label and len(event["name"]) * LETTER < width - 6:
            label = f'<text x="{left + 3:.1f}" y="{self.y + height / 2 + 4:.1f}">{name}</text>'
        self.parts.append(
            f'<g class="bar"><rect class="{kind}" x="{left:.2f}" y="{self.y:.1f}" width="{width:.2f}" '
            f'height="{height:.1f}" rx="1"/>{label}<title>{tooltip}</title></g>'
        )

    def text(self, x, y, words, anchor="start", kind="name"):
        self.parts.append(f'<text class="{kind}" x="{x:.1f}" y="{y:.1f}" text-anchor="{anchor}">{html.escape(words)}</text>')


def overlaps(event, other):
    return event["ts"] < other["ts"] + other["dur"] and other["ts"] < event["ts"] + event["dur"]


def draw_rank(picture, name, events):
    """The row of operators, with waits before them, and a row for each track of flights."""
    picture.text(LEFT - 8, picture.y + ROW / 2 + 4, name, "end", "title")
    above = [event for event in events if event["cat"] in ("wait", "poll")]
    for event in events:
        if event["tid"] == 0:
            is_free = not any(overlaps(event, other) for other in above)
            picture.bar(event, kind_of_operator(event["cat"]), ROW, is_free)
    for event in above:
        picture.bar(event, event["cat"], ROW)
    picture.y += ROW + GAP
    flights = [event for event in events if event["cat"] == "in flight"]
    for track in sorted({event["tid"] for event in flights}):
        for event in flights:
            if event["tid"] == track:
                picture.bar(event, kind_of_flight(event["name"]), ROW - 4)
        picture.y += ROW - 4 + GAP
    picture.y += BETWEEN


def draw_legend(picture, title):
    picture.text(LEFT, 22, title, kind="title")
    x, y = LEFT, 42
    for kind, words in LEGEND:
        width = 16 + LETTER * len(words) + 18
        if x + width > WIDTH:
            x, y = LEFT, y + 18
        picture.parts.append(f'<rect class="{kind}" x="{x}" y="{y - 10}" width="12" height="12" rx="2"/>')
        picture.text(x + 16, y, words)
        x += width


def draw_axis(picture):
    """Milliseconds since the first rank began the step; lines behind the bars."""
    rough = picture.duration / 1000 / 6
    decade = 10.0 ** len(str(int(rough))) / 10 if rough >= 1 else 0.1 if rough >= 0.1 else 0.01
    step = next(decade * factor for factor in (1, 2, 5, 10, 20, 50, 100) if decade * factor >= rough)
    lines, count = [], int(picture.duration / 1000 / step)
    for i in range(count + 1):
        x = picture.x(picture.begin + 1000 * step * i)
        lines.append(f'<line class="grid" x1="{x:.1f}" x2="{x:.1f}" y1="{TOP - 6}" y2="{picture.y}"/>')
        picture.text(x, picture.y + 16, f"{step * i:g}" + (" ms" if i == count else ""), "middle")
    return lines


class Step:
    """A step of all ranks, and the caption of its trace; without one, a picture has one step alone."""

    def __init__(self, path, wanted, caption):
        self.by_rank, self.names = read_trace(path)
        steps = steps_of(self.by_rank)
        if not steps or (wanted is not None and wanted not in steps):
            sys.exit(f"{path}: step {wanted or ''} is not of all ranks; there are {len(steps)} that are")
        self.number = wanted if wanted is not None else median_step(steps)
        self.begin, self.end = steps[self.number]
        self.caption = caption

    def draw(self, picture):
        picture.begin = self.begin
        if self.caption:
            words = f"{self.caption}: step {self.number}, {(self.end - self.begin) / 1000:.2f} ms"
            picture.text(LEFT, picture.y + 10, words, kind="title")
            picture.y += BETWEEN
        for rank in sorted(self.names):
            inside = [event for event in self.by_rank[rank] if self.begin <= event["ts"] < self.end]
            draw_rank(picture, f"rank {rank}", inside)


def draw(steps):
    picture = Picture(0, max(step.end - step.begin for step in steps))
    number, ranks = steps[0].number, len(steps[0].names)
    what = f"Step {number}" if len(steps) == 1 else "A step"
    draw_legend(picture, f"{what} of {ranks} ranks: what each computes, waits for and has in flight")
    for step in steps:
        step.draw(picture)
    lines = draw_axis(picture)
    height = picture.y + BOTTOM
    head = [
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {WIDTH} {height:.0f}" width="{WIDTH}" role="img">',
        f"<title>Timeline of {what.lower()} of {ranks} ranks</title>",
        STYLE,
        '<rect class="back" width="100%" height="100%" rx="8"/>',
    ]
    return "\n".join(head + lines + picture.parts + ["</svg>", ""])


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("traces", type=pathlib.Path, nargs="+")
    parser.add_argument("--names", help="captions of several traces, with commas; else their paths")
    parser.add_argument("--step", type=int)
    parser.add_argument("--write", type=pathlib.Path, help="else to standard output")
    options = parser.parse_args()
    captions = options.names.split(",") if options.names else [str(path) for path in options.traces]
    if len(captions) != len(options.traces):
        sys.exit(f"--names: {len(captions)} names for {len(options.traces)} traces")
    if len(options.traces) == 1:
        captions = [""]
    svg = draw([Step(path, options.step, caption) for path, caption in zip(options.traces, captions)])
    if options.write:
        options.write.write_text(svg, encoding="utf-8")
    else:
        sys.stdout.write(svg)


if __name__ == "__main__":
    main()
