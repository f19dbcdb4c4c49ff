"""The plots of tools/bench_report.py and tools/scaling.py as SVG text, without a plotting library: they need Python alone.

One hue is ours, one the peer's; text and grid are of a grey that is legible on white and on black, and the ground stays
transparent. What does not fit as a label is a tooltip.
"""
import html
import math

OURS, PEER, TEXT, LIMIT = "#2f81f7", "#d9822b", "#768390", "#768390"
WIDTH, HEIGHT = 720, 420
LEFT, RIGHT, TOP, BOTTOM = 70, 20, 40, 52
LETTER = 7.0  # width of a letter of the labels, about
MARKS = ("circle", "square", "triangle", "diamond")
DASHES = ("", "7 4", "2 4", "9 3 2 3")
MAX_LABELS = 16
HUES = (OURS, PEER, "#2da44e", "#a371f7")


def number(value):
    """Three digits, and thousands as k, M, G; a small whole number has all of its digits."""
    if value == int(value) and abs(value) < 10000:
        return f"{value:.0f}"
    for scale, letter in ((1e9, "G"), (1e6, "M"), (1e3, "k")):
        if abs(value) >= scale:
            return f"{value / scale:.3g}{letter}"
    return f"{value:.3g}"


def text(x, y, words, anchor="start", size=12, color=TEXT, turn=None):
    turned = f' transform="rotate({turn} {x:.1f} {y:.1f})"' if turn else ""
    return (
        f'<text x="{x:.1f}" y="{y:.1f}" text-anchor="{anchor}" font-size="{size}" fill="{color}"{turned}>'
        f"{html.escape(words)}</text>"
    )


def line(x1, y1, x2, y2, color, width=1.0, dash="", opacity=1.0):
    dashed = f' stroke-dasharray="{dash}"' if dash else ""
    return (
        f'<line x1="{x1:.1f}" y1="{y1:.1f}" x2="{x2:.1f}" y2="{y2:.1f}" stroke="{color}" stroke-width="{width}" '
        f'stroke-opacity="{opacity}"{dashed}/>'
    )


def circle(x, y, radius, color, tooltip):
    return (
        f'<circle cx="{x:.1f}" cy="{y:.1f}" r="{radius:.1f}" fill="{color}" fill-opacity="0.8">'
        f"<title>{html.escape(tooltip)}</title></circle>"
    )


def mark(x, y, shape, color, tooltip):
    if shape == "circle":
        return circle(x, y, 4.5, color, tooltip)
    corners = {
        "square": ((-4, -4), (4, -4), (4, 4), (-4, 4)),
        "triangle": ((0, -5), (5, 4), (-5, 4)),
        "diamond": ((0, -6), (6, 0), (0, 6), (-6, 0)),
    }[shape]
    points = " ".join(f"{x + dx:.1f},{y + dy:.1f}" for dx, dy in corners)
    return f'<polygon points="{points}" fill="{color}"><title>{html.escape(tooltip)}</title></polygon>'


def picture(title, height, parts):
    return "\n".join(
        [
            f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {WIDTH} {height:.0f}" width="{WIDTH}" '
            f'height="{height:.0f}" role="img" font-family="system-ui, DejaVu Sans, sans-serif">',
            f"<title>{html.escape(title)}</title>",
            text(LEFT, 20, title, size=14),
            *parts,
            "</svg>\n",
        ]
    )


class Axis:
    """A logarithmic axis from one end of the values to the other, laid on the pixels `start` to `end`."""

    def __init__(self, values, start, end, margin=1.3):
        self.low, self.high = min(values) / margin, max(values) * margin
        self.start, self.end = start, end

    def place(self, value):
        share = math.log(value / self.low) / math.log(self.high / self.low)
        return self.start + share * (self.end - self.start)

    def ticks(self, wanted=()):
        """Powers of ten, with 2 and 5 between them where there are few; or of the wanted values those with room."""
        decades = range(math.floor(math.log10(self.low)), math.ceil(math.log10(self.high)) + 1)
        factors = (1, 2, 5) if math.log10(self.high / self.low) < 2.5 else (1,)
        candidates = sorted(wanted) or [factor * 10.0**decade for decade in decades for factor in factors]
        told = []
        for value in candidates:
            has_room = not told or abs(self.place(value) - self.place(told[-1])) >= 30
            if self.low <= value <= self.high and has_room:
                told.append(value)
        return told


class LinearAxis:
    """The same, evenly; its ticks are round numbers."""

    def __init__(self, values, start, end, margin=0.06):
        room = margin * ((max(values) - min(values)) or 1)
        self.low, self.high = min(values) - room, max(values) + room
        self.start, self.end = start, end

    def place(self, value):
        return self.start + (value - self.low) / (self.high - self.low) * (self.end - self.start)

    def ticks(self, wanted=()):
        """About five, a step of 1, 2 or 5 times a power of ten apart; or the wanted values."""
        rough = (self.high - self.low) / 5
        decade = 10.0 ** math.floor(math.log10(rough))
        step = next(factor * decade for factor in (1, 2, 5, 10) if factor * decade >= rough)
        return sorted(wanted) or [step * i for i in range(math.ceil(self.low / step), math.floor(self.high / step) + 1)]


def axes(across, up, label_across, label_up, ticks_across=()):
    bottom, parts = HEIGHT - BOTTOM, []
    for value in across.ticks(ticks_across):
        x = across.place(value)
        parts.append(line(x, TOP, x, bottom, TEXT, opacity=0.2))
        parts.append(text(x, bottom + 18, number(value), "middle"))
    for value in up.ticks():
        y = up.place(value)
        parts.append(line(LEFT, y, WIDTH - RIGHT, y, TEXT, opacity=0.2))
        parts.append(text(LEFT - 8, y + 4, number(value), "end"))
    parts.append(text((LEFT + WIDTH - RIGHT) / 2, HEIGHT - 12, label_across, "middle"))
    parts.append(text(18, (TOP + bottom) / 2, label_up, "middle", turn=-90))
    return parts


class Labels:
    """Places words beside points where they cover no point and no other words; leaves out what finds no room."""

    def __init__(self, points):
        """points: (x, y, radius)."""
        self.boxes = [(x - r, y - r, x + r, y + r) for x, y, r in points]

    def is_free(self, box):
        is_inside = box[0] > LEFT and box[2] < WIDTH - 4 and box[1] > TOP
        return is_inside and not any(
            a[0] < box[2] and box[0] < a[2] and a[1] < box[3] and box[1] < a[3] for a in self.boxes
        )

    def place(self, x, y, radius, words):
        width = 0.9 * LETTER * len(words)
        for shift in (0, -12, 12):
            for start, left, anchor in (
                (x + radius + 3, x + radius + 3, "start"),
                (x - radius - 3, x - radius - 3 - width, "end"),
            ):
                box = (left, y + shift - 5, left + width, y + shift + 5)
                if self.is_free(box):
                    self.boxes.append(box)
                    return [text(start, y + shift + 4, words, anchor, size=11)]
        return []


def roofline(title, points, limits):
    """points: (name, FLOPs a byte, GFLOP/s, seconds), the longest first; limits: (name, peak GFLOP/s, GB/s). The area of a
    point is its time."""
    bends = [peak / bandwidth for _, peak, bandwidth in limits]
    across = Axis([point[1] for point in points] + bends, LEFT, WIDTH - RIGHT, margin=2)
    up = Axis([point[2] for point in points] + [limit[1] for limit in limits], HEIGHT - BOTTOM, TOP, margin=1.6)
    parts = axes(across, up, "arithmetic intensity, FLOP/byte; the area of a point is its time", "GFLOP/s")
    for i, (name, peak, bandwidth) in enumerate(limits):
        bend, dash = peak / bandwidth, DASHES[i % len(DASHES)]
        start = max(across.low, up.low / bandwidth)
        corner = (across.place(bend), up.place(peak))
        parts.append(line(across.place(start), up.place(start * bandwidth), *corner, LIMIT, 1.5, dash))
        parts.append(line(*corner, WIDTH - RIGHT, corner[1], LIMIT, 1.5, dash))
        y = TOP + 16 + 18 * i
        parts.append(line(LEFT + 10, y, LEFT + 44, y, LIMIT, 1.5, dash))
        parts.append(text(LEFT + 52, y + 4, f"{name}: {number(peak)} GFLOP/s, {number(bandwidth)} GB/s"))
    longest = points[0][3]
    places = [(across.place(x), up.place(y), 2 + 8 * math.sqrt(seconds / longest)) for _, x, y, seconds in points]
    labels = Labels(places)
    for i, (place, (name, x, y, seconds)) in enumerate(zip(places, points)):
        tooltip = f"{name}: {number(x)} FLOP/byte, {number(y)} GFLOP/s, {number(1e3 * seconds)} ms"
        parts.append(circle(*place, OURS, tooltip))
        if i < MAX_LABELS:
            parts += labels.place(*place, name)
    return picture(title, HEIGHT, parts)


def bars(title, rows, label_across):
    """rows: (name, value, words behind the bar); horizontal, in the given order, from zero."""
    step, room_for_words = 26, 205
    left = min(300, 20 + LETTER * max(len(name) for name, _, _ in rows))
    scale = (WIDTH - RIGHT - room_for_words - left) / (max(value for _, value, _ in rows) or 1)
    height, parts = TOP + step * len(rows) + 34, []
    for i, (name, value, words) in enumerate(rows):
        y = TOP + step * i
        parts.append(text(left - 8, y + 14, name, "end"))
        parts.append(
            f'<rect x="{left:.1f}" y="{y + 2}" width="{max(1, scale * value):.1f}" height="16" rx="2" fill="{OURS}"/>'
        )
        parts.append(text(left + scale * value + 6, y + 14, words))
    parts.append(text(left, height - 10, label_across))
    return picture(title, height, parts)


def scaling(title, label_across, label_up, ours, peers):
    """ours: {series: [(at, value)]}; peers: {(series, peer): the same}. A series has its mark and dashes in both."""
    style = {series: i for i, series in enumerate(ours)}
    lines = [(series, style[series], points, OURS) for series, points in ours.items()]
    lines += [(f"{series}, {peer}", style[series], points, PEER) for (series, peer), points in peers.items()]
    at = [x for _, _, points, _ in lines for x, _ in points]
    across = Axis(at, LEFT, WIDTH - RIGHT)
    up = Axis([y for _, _, points, _ in lines for _, y in points], HEIGHT - BOTTOM, TOP)
    parts = axes(across, up, label_across, label_up, set(at))
    legend = []
    for i, (words, which, points, color) in enumerate(lines):
        dash, shape = DASHES[which % len(DASHES)], MARKS[which % len(MARKS)]
        places = [(across.place(x), up.place(y), x, y) for x, y in sorted(points)]
        for former, latter in zip(places, places[1:]):
            parts.append(line(*former[:2], *latter[:2], color, 1.8, dash))
        for x, y, where, value in places:
            parts.append(mark(x, y, shape, color, f"{words}: {number(value)} {label_up} at {number(where)}"))
        y = HEIGHT + 4 + 18 * i
        legend += [line(LEFT, y, LEFT + 34, y, color, 1.8, dash), mark(LEFT + 17, y, shape, color, words)]
        legend.append(text(LEFT + 44, y + 4, words))
    return picture(title, HEIGHT + 8 + 18 * len(lines), parts + legend)


def curves(title, labels, lines, levels, is_logarithmic):
    """lines: {name: [(at, value)]}, a hue each; levels: (name, value), drawn across. labels: of the axis across, which
    is logarithmic or has a tick for each place, and of the one up, which is even."""
    at = {x for points in lines.values() for x, _ in points}
    across = Axis(at, LEFT, WIDTH - RIGHT) if is_logarithmic else LinearAxis(at, LEFT, WIDTH - RIGHT)
    values = [y for points in lines.values() for _, y in points] + [value for _, value in levels]
    up = LinearAxis(values, HEIGHT - BOTTOM, TOP)
    parts = axes(across, up, *labels, () if is_logarithmic else at)
    for name, value in levels:
        y = up.place(value)
        parts.append(line(LEFT, y, WIDTH - RIGHT, y, LIMIT, 1.2, DASHES[2]))
        parts.append(text(WIDTH - RIGHT - 4, y + 12, f"{name}: {number(value)}", "end", size=11))
    for i, (name, points) in enumerate(lines.items()):
        hue, shape = HUES[i % len(HUES)], MARKS[i % len(MARKS)]
        places = [(across.place(x), up.place(y), x, y) for x, y in sorted(points)]
        for former, latter in zip(places, places[1:]):
            parts.append(line(*former[:2], *latter[:2], hue, 1.8))
        for x, y, where, value in places:
            parts.append(mark(x, y, shape, hue, f"{name}: {value:.4f} at {number(where)}"))
        y = HEIGHT + 4 + 18 * i
        parts += [line(LEFT, y, LEFT + 34, y, hue, 1.8), mark(LEFT + 17, y, shape, hue, name)]
        parts.append(text(LEFT + 44, y + 4, name))
    return picture(title, HEIGHT + 8 + 18 * len(lines), parts)
