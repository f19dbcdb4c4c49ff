"""The page that tools/hub_figures.py writes: tables and plots of what the programs of ./run bench hub have measured.

A figure is looked for by its name (bench/figures.h, CONTRIBUTING.md); a row whose figure is not there, as a peer's may not be,
is left out, and so is a section without rows.
"""
import re

import bench_plots
from comparisons import table

WIDE = {"wide": "spinning", "wide_asleep": "asleep"}  # how wide's threads wait for each other
TWICE = 2  # times as fast as wide: what is aimed at
ENOUGH_ROUNDS = 10  # in which processors stood alike (bench/turns.c)
MODELS = {
    "alexnet": "AlexNet",
    "vgg19": "VGG-19",
    "resnet50": "ResNet-50",
    "dlrm_mlperf": "DLRM (MLPerf), dense",
    "dlrm_kaggle": "DLRM (Criteo Kaggle)",
}
TRANSPORTS = {"shm": "shared memory", "tcp": "TCP"}
WORKERS = (1, 2, 4, 8)
TRIP_THREADS = 3  # of a round trip: two workers and a core thread

BY_BYTES = (
    "*By bytes alone*: what wide moves between threads and memory over what tall does ([as it is"
    " counted](HUB_INTERNALS.md#bytes-of-large-keys)), if no cache keeps anything between two passes. The machine's largest"
    " cache, named above, may keep a sum, a part of the gradients or all of it, so what is measured need not follow."
)

HEADER = """# The parameter hub in figures

Written by `tools/hub_figures.py` from what `./run bench hub` has measured;
[HUB_INTERNALS.md](HUB_INTERNALS.md#performance) says what was measured how, and what explains it. Contestants of a table
have taken turns, round by round. Times are medians over the rounds, a ratio is the median of the rounds' ratios, and one
above 1 means that the hub, or what stands first, is the faster.

"""


def digits(value, places=2):
    """Small numbers with so many places, others with three digits."""
    return f"{value:.{places}f}" if abs(value) < 100 else f"{value:,.0f}"


def times(ratio):
    if ratio is None:
        return ""
    return f"{ratio:.2f} ×" if ratio >= 0.1 else f"{ratio:.1g} ×"


def spaced(size):
    """"64 MiB" of the "64MiB" in a figure's name."""
    return re.sub(r"(?<=\d)(?=[KM])", " ", size)


def keys_in_words(name):
    """"ResNet-50's" of "resnet50", "1024 of 4 KiB" of "1024x4KiB"."""
    count, _, size = name.rpartition("x")
    if count.isdigit():
        return f"{'one' if count == '1' else count} of {spaced(size)}"
    return MODELS[name] + "'s" if name in MODELS else name


def counted(chosen):
    """"one of 64 MiB, spinning (1, 2 workers); ..." of rows (words, workers, ...)."""
    groups = {}
    for words, workers, *_ in chosen:
        groups.setdefault(words, []).append(str(workers))
    told = (f"{words} ({', '.join(of)} worker{'s' if of != ['1'] else ''})" for words, of in groups.items())
    return "; ".join(told)


def twice(rows):
    """In which rows (words, workers, ratio, what bytes alone give or None) tall is twice as fast, and what bytes say to it."""
    holds = [row for row in rows if row[2] >= TWICE]
    others = [row for row in rows if row[2] < TWICE]
    told = [f"{TWICE} × holds for {counted(holds)}." if holds else f"{TWICE} × holds nowhere."]
    for text, chosen in (
        (", and would not by bytes alone either ({})", [row for row in others if row[3] is not None and row[3] < TWICE]),
        (", but would by bytes alone ({})", [row for row in others if row[3] is not None and row[3] >= TWICE]),
        ("", [row for row in others if row[3] is None]),
    ):
        if chosen:
            by_bytes = span([row[3] for row in chosen], times) if text else ""
            told.append(f"It does not hold for {counted(chosen)}{text.format(by_bytes)}.")
    return " ".join(told) + "\n\n"


def span(values, write=times):
    """Of the least and the greatest; one alone where they read alike."""
    ends = [write(min(values)), write(max(values))]
    return ends[0] if ends[0] == ends[1] else " to ".join(ends)


def image(name, title):
    return f"![{title}](plots/{name}.svg)\n\n"


class Page:
    def __init__(self, figures, about):
        """figures: {name: figure}."""
        self.figures, self.about, self.plots = figures, about, {}
        sizes = [size for (size,), _ in self.find(r"hub\.aggregate\.(\d+MiB)\..*")]
        self.large_key = sizes[0] if sizes else "64MiB"
        size = spaced(self.large_key)
        self.keys = {self.large_key: f"one of {size}", "resnet50": "ResNet-50's", "chunks32KiB": f"{size} in keys of 32 KiB"}

    # ---- looking figures up -----------------------------------------------------------------------------------------

    def find(self, pattern):
        """(groups of the match, figure) of every name that matches whole, in the order of measuring."""
        found = ((re.fullmatch(pattern, name), figure) for name, figure in self.figures.items())
        return [(match.groups(), figure) for match, figure in found if match]

    def get(self, name, key="value"):
        """None where it was not measured."""
        return self.figures.get(name, {}).get(key)

    def ratios(self, pattern):
        return [figure["ratio"] for _, figure in self.find(pattern) if figure["ratio"] is not None]

    def placement(self, pattern):
        """Where the processors stood to each other while these were measured, in how many rounds, and what stands on few."""
        found = [figure for _, figure in self.find(pattern) if figure.get("placement")]
        if not found:
            return ""
        told = f"Processors: {', '.join(sorted({figure['placement'] for figure in found}))}."
        counts = [figure["rounds"] for figure in found if "rounds" in figure]
        if counts:
            told += f" Rounds in which they stood alike: {span(counts, str)}."
        return told + self.few_rounds(found) + "\n\n"

    def congestion(self, pattern):
        """A sentence on TCP; "" where there was none."""
        found = sorted({figure["congestion"] for _, figure in self.find(pattern) if figure.get("congestion")})
        return f"TCP's congestion control: {'; '.join(found)}.\n\n" if found else ""

    @staticmethod
    def few_rounds(figures):
        """Those that stand on too few, by how many these are."""
        groups = {}
        for figure in figures:
            rounds, taken = figure.get("rounds", ENOUGH_ROUNDS), figure.get("of_rounds", 0)
            if rounds < min(ENOUGH_ROUNDS, taken):
                groups.setdefault((rounds, taken), []).append(f"`{figure['name']}`")
        return "".join(
            f" {rounds} of {taken} rounds{'' if rounds else ', so that ratios mix placements'}: {', '.join(names)}."
            for (rounds, taken), names in sorted(groups.items())
        )

    def aggregate(self, keys, workers, way, key="value"):
        return self.get(f"hub.aggregate.{keys}.workers{workers}.{way}", key)

    # ---- the beginning ----------------------------------------------------------------------------------------------

    def machine(self):
        about = self.about
        if not about:
            return "Nothing is known of the machine and the day: about.json was missing.\n\n"
        told = (
            "*Measured* on {date}, revision {revision}, {rounds} rounds: {processors} processors of {processor} ({caches}),"
            " {memory_gib} GiB, {system}, Linux {kernel}. Others kept {others:.2f} processors busy before"
            " it began, and {others_meanwhile:.2f} while it ran; the figures of a machine that has other work are worth little.\n\n"
        ).format(**about)
        if about["is_quick"]:
            told = "**This page was tried with small sizes and one round: it measures nothing.**\n\n" + told
        peers = {figure["peer"].split(",")[0] for _, figure in self.find(r"hub\.(pushpull|roundtrip)\..*") if figure["peer"]}
        return told + (f"Peers: {', '.join(sorted(peers))}.\n\n" if peers else "No peer was there.\n\n")

    def glance(self):
        """What was aimed at, and what came."""
        size, trip = r"\d+[KM]iB", r"hub\.roundtrip\.shm\..*\.workers"
        has_few = self.about.get("processors", TRIP_THREADS) < TRIP_THREADS
        crowded = ", more threads than processors" if has_few else ""
        rows = [
            ("ps-lite over the hub, shared memory", "≥ 4 ×", rf"hub\.pushpull\.shm\.{size}\.beside_pslite.*"),
            ("Open MPI and momentum over the hub, shared memory", "≥ 1 ×", rf"hub\.pushpull\.shm\.{size}\.beside_openmpi.*"),
            ("ps-lite over the hub, TCP", "≥ 2 ×", rf"hub\.pushpull\.tcp\.{size}\.beside_pslite_tcp"),
            ("ps-lite as the machine sets TCP up over the hub, TCP", "", rf"hub\.pushpull\.tcp\.{size}\.beside_pslite_tcp_of_machine"),
            ("ps-lite over Unix sockets over the hub, TCP", "", rf"hub\.pushpull\.tcp\.{size}\.beside_pslite_ipc"),
            ("Open MPI over the hub, 4 KiB, one worker, spinning", "≥ 0.5 ×", rf"{trip}1\.spinning\.p50"),
            (f"Open MPI over the hub, 4 KiB, two workers, spinning{crowded}", "≥ 0.5 ×", rf"{trip}2\.spinning\.p50"),
            ("Open MPI over the hub, 4 KiB, two workers, by default", "", rf"{trip}2\.default\.p50"),
            ("separate over fused", "≥ 1.2 ×", r"hub\.aggregate\..*\.fused"),
        ]
        for (keys,), _ in self.find(r"hub\.aggregation\.shm\.(\w+)\.tall"):
            name = rf"hub\.aggregation\.shm\.{keys}\.tall"
            rows.append((f"the hub's wide over its tall: {keys_in_words(keys)}", "≥ 2 ×", name))
        for keys, words in self.keys.items():
            for way, name in (("spinning", "tall"), ("asleep", "tall_beside_asleep")):
                rows.append((f"wide, {way}, over tall: {words}", "≥ 2 ×", rf"hub\.aggregate\.{keys}\..*\.{name}"))
        lines = [(what, wanted, span(self.ratios(name))) for what, wanted, name in rows if self.ratios(name)]
        shares = [figure["of_limit"] for _, figure in self.find(f"hub.pushpull.shm.{size}")]
        loads = [figure["value"] for _, figure in self.find(r"hub\.partition\..*")]
        seals = [figure["of_limit"] for _, figure in self.find(r"hub\.frame_key\..*")]
        halves = [figure["value"] for _, figure in self.find(r"hub\.tenants\..*\.share")]
        for what, wanted, values, write in (
            ("share of copying's bandwidth, shared memory", "≥ 70%", shares, "{:.0%}".format),
            ("largest load over the mean, cores of 50 chunks or more and servers", "≤ 1.02", loads, "{:.3f}".format),
            ("a secret's tags, share of memcpy's bandwidth", "", seals, "{:.0%}".format),
            ("larger share of two tenants over the mean", "≤ 1.1", halves, "{:.3f}".format),
        ):
            if values:
                lines.append((what, wanted, span(values, write)))
        return "## At a glance\n\n" + table(("times, one over the other", "aimed at", "measured: all rows below"), lines)

    # ---- from end to end --------------------------------------------------------------------------------------------

    def large(self):
        text = ""
        for transport, words in TRANSPORTS.items():
            for (size,), figure in self.find(rf"hub\.pushpull\.{transport}\.(\d+[KM]iB)"):
                text += f"### {spaced(size)} over {words}\n\n" + self.large_rows(transport, size, figure, words)
        if text:
            told = "Two workers and a hub with momentum. Open MPI: AllReduce of two ranks, then a momentum pass.\n\n"
            text = "## Large keys: pushpull from end to end\n\n" + told + text
        return text

    def large_rows(self, transport, size, ours, words):
        name = f"hub.pushpull.{transport}.{size}"
        bars, lines = [("this hub", ours["value"], f"{digits(ours['value'])} ms")], []
        sent = self.get(f"{name}.bytes_sent")
        columns = ("who", "ms", "over the hub's time") + (("MB over the loopback interface",) if sent else ())
        lines.append(("this hub", digits(ours["value"]), "", f"{sent:,.0f}" if sent else "")[: len(columns)])
        for (peer,), figure in self.find(re.escape(name) + r"\.beside_(.*)"):
            sent = self.get(f"{name}.bytes_sent.beside_{peer}", "peer_value")
            told = spaced(figure["peer"].partition(", ")[2]).replace("openmpi", "Open MPI").replace("pslite", "ps-lite")
            line = (told, digits(figure["peer_value"]), times(figure["ratio"]), f"{sent:,.0f}" if sent else "")
            lines.append(line[: len(columns)])
            bars.append((told, figure["peer_value"], f"{digits(figure['peer_value'])} ms, {times(figure['ratio'])} the hub's"))
        title = f"{spaced(size)} of gradients from two workers over {words}"
        self.plots[f"hub-pushpull-{transport}"] = bench_plots.bars(title, bars, "ms; less is better")
        text = image(f"hub-pushpull-{transport}", title)
        text += table(columns, lines)
        text += self.congestion(re.escape(name) + r"\.beside_(?!.*_of_machine$).*")
        what = "copying as many bytes" if transport == "shm" else "sending as many bytes over plain TCP"
        text += f"The rate is {ours['of_limit']:.0%} of that of {what}: {ours['limit']}.\n\n"
        return text + self.placement(re.escape(name) + ".*")

    def small(self):
        lines = []
        pattern = r"hub\.roundtrip\.(\w+)\.(\w+)\.workers(\d)\.(\w+)\.p50"
        for (transport, size, workers, way), p50 in self.find(pattern):
            p99 = self.figures[p50["name"].replace(".p50", ".p99")]
            peers = [digits(figure["peer_value"]) if figure["peer"] else "" for figure in (p50, p99)]
            mine = [digits(figure["value"]) for figure in (p50, p99)]
            lines.append((TRANSPORTS[transport], spaced(size), workers, way, *mine, *peers, times(p50["ratio"])))
        if not lines:
            return ""
        columns = ("transport", "key", "workers", "waits", "p50, µs", "p99, µs", "Open MPI p50", "p99", "ratio of p50")
        told = (
            "One core thread. Of one worker: its key to the hub and back, beside a message of Open MPI's to and fro; of two:"
            " summed, beside an AllReduce of two ranks. Of what is sent a number of each cache line is written before, and of what"
            " has come one is read; Open MPI has the better of its own path and UCX's. `default` has the client's thread over TCP,"
            " the others have none. Where more threads spin than there are processors, they wait for the scheduler.\n\n"
        )
        text = "## Small keys: round trips\n\n" + told + table(columns, lines)
        return text + self.congestion(r"hub\.roundtrip\..*") + self.placement(r"hub\.roundtrip\..*")

    def sweep(self, pattern, name, title, labels):
        """A plot of the lines of a sweep."""
        lines = {}
        for _, figure in self.find(pattern):
            lines.setdefault(figure["series"], []).append((figure["at"], figure["value"]))
        if not lines:
            return ""
        self.plots[name] = bench_plots.scaling(title, *labels, lines, {})
        return image(name, title) + self.placement(pattern)

    def rate(self):
        title = "Keys of 4 KiB that a hub of one core thread takes and gives back"
        labels = "keys under way at a time", "thousands a second, of all workers"
        plot = self.sweep(r"hub\.rate\..*", "hub-rate", title, labels)
        return "## Small keys: how many a second\n\n" + plot if plot else ""

    def chunks(self):
        text = self.sweep(
            r"hub\.pushpull\.\w+\.chunk.*",
            "hub-chunks",
            "Pushpull of two workers by the size of chunks, from end to end",
            ("chunk, KiB", "ms"),
        )
        text += self.sweep(
            r"hub\.aggregate\.chunk\d+KiB\..*",
            "hub-chunks-kernel",
            "Sums of four workers and their step, by the size of chunks: arithmetic alone",
            ("chunk, KiB", "ms"),
        )
        return "## The size of chunks\n\n" + text if text else ""

    def variants(self):
        lines = []
        for (transport, size, variant), figure in self.find(r"hub\.variant\.(\w+)\.(\w+)\.(\w+)"):
            cells = digits(figure["value"]), figure["unit"].replace("us", "µs"), times(figure["ratio"])
            lines.append((TRANSPORTS[transport], spaced(size), variant.replace("_", " "), *cells))
        if not lines:
            return ""
        told = (
            "Two workers and a core thread a processor, so that threads outnumber the processors. A ratio is the default's"
            " time over this one's.\n\n"
        )
        columns = ("transport", "key", "variant", "time", "unit", "ratio")
        text = "## Ways to wait, and results past the caches\n\n" + told + table(columns, lines)
        return text + self.placement(r"hub\.variant\..*")

    def wide_hub(self):
        lines, rows = [], []
        for (transport, keys), tall in self.find(r"hub\.aggregation\.(\w+)\.(\w+)\.tall"):
            wide = self.figures[tall["name"].replace(".tall", ".wide")]
            words, by_bytes = keys_in_words(keys), wide["bytes"] / tall["bytes"] if transport == "shm" else None
            cells = digits(tall["value"]), digits(tall["peer_value"]), times(tall["ratio"]), times(by_bytes)
            lines.append((TRANSPORTS[transport], words, *cells))
            rows.append((f"{words} over {TRANSPORTS[transport]}", 2, tall["ratio"], by_bytes))
        if not lines:
            return ""
        told = (
            "Pushpull of two workers from end to end, a hub of two core threads, chunks of 32 KiB: `hub.aggregation: wide` beside"
            " the default. " + BY_BYTES + " Over TCP they are not told: there the network's part is the larger one.\n\n"
        )
        columns = ("transport", "keys", "tall, ms", "wide, ms", "wide over tall", "by bytes alone")
        text = "## Tall and wide, the hub's own\n\n" + told + table(columns, lines) + twice(rows)
        return text + self.placement(r"hub\.aggregation\..*")

    # ---- arithmetic alone -------------------------------------------------------------------------------------------

    def curves(self, name, title, label, lines):
        self.plots[name] = bench_plots.curves(title, ("workers", label), lines, [], False)
        return image(name, title)

    def over_workers(self, keys, way, key="value"):
        points = ((workers, self.aggregate(keys, workers, way, key)) for workers in WORKERS)
        return [point for point in points if point[1] is not None]

    def tall_wide(self):
        lines, ratios, rows = [], {}, []
        for keys, words in self.keys.items():
            for workers, tall in self.over_workers(keys, "tall"):
                row = [words, workers, digits(tall)]
                bytes_ratio = self.aggregate(keys, workers, "wide", "bytes") / self.aggregate(keys, workers, "tall", "bytes")
                for way, beside in (("wide", "tall"), ("wide_asleep", "tall_beside_asleep")):
                    ratio = self.aggregate(keys, workers, beside, "ratio")
                    row += [digits(self.aggregate(keys, workers, way)), times(ratio)]
                    ratios.setdefault(f"{words}, {WIDE[way]}", []).append((workers, ratio))
                    rows.append((f"{words}, {WIDE[way]}", workers, ratio, bytes_ratio))
                lines.append((*row, times(bytes_ratio)))
        if not lines:
            return ""
        columns = ("keys", "workers", "tall, ms", "wide, spinning", "over tall", "wide, asleep", "over tall", "by bytes alone")
        names = {"tall": "tall", "wide": "wide, its threads spinning", "wide_asleep": "wide, its threads asleep"}
        plotted = {name: self.over_workers(self.large_key, way) for way, name in names.items()}
        text = "## Tall and wide, arithmetic alone\n\n"
        text += f"Sums of all workers' copies and a step of momentum, two threads: no transport. {BY_BYTES}\n\n"
        text += self.curves("hub-tall-wide", f"One key of {spaced(self.large_key)}: tall and wide", "ms", plotted)
        asleep = {name: points for name, points in ratios.items() if name.endswith(WIDE["wide_asleep"])}
        spinning = {name: points for name, points in ratios.items() if name.endswith(WIDE["wide"])}
        text += self.curves("hub-wide-spinning", "Wide's time over tall's, its threads spinning", "×", spinning)
        text += self.curves("hub-wide-asleep", "Wide's time over tall's, its threads asleep", "×", asleep)
        text += table(columns, lines) + twice(rows)
        return text + self.placement(rf"hub\.aggregate\.({'|'.join(self.keys)})\..*(tall|wide).*")

    def two_ways(self, heading, told, name, title, ways):
        """ways: {way: (what it is called, the figure with the first way's ratio to it)}, the first one's ratio None."""
        lines = []
        key = self.large_key
        for workers, first in self.over_workers(key, next(iter(ways))):
            row = [workers, digits(first)]
            for way, (_, beside) in list(ways.items())[1:]:
                row += [digits(self.aggregate(key, workers, way)), times(self.aggregate(key, workers, beside, "ratio"))]
            lines.append(row)
        if not lines:
            return ""
        first, *others = (words for words, _ in ways.values())
        columns = ["workers", f"{first}, ms", *(column for words in others for column in (f"{words}, ms", f"over {first}"))]
        plotted = {words: self.over_workers(key, way) for way, (words, _) in ways.items()}
        told = f"One key of {spaced(key)}, two threads, tall. {told}"
        title = f"One key of {spaced(key)}: {title}"
        text = f"## {heading}\n\n{told}\n\n" + self.curves(name, title, "ms", plotted) + table(columns, lines)
        of_ways = {way for way, (_, beside) in ways.items()} | {beside for _, beside in ways.values() if beside is not None}
        return text + self.placement(rf"hub\.aggregate\.{key}\.workers\d+\.({'|'.join(sorted(of_ways))})")

    def fused(self):
        ways = {"fused": ("fused", None), "separate": ("separate", "fused"), "chunkwise": ("chunk by chunk", "fused_in_cache")}
        told = (
            "*separate*: sums of everything, then a step over everything; *chunk by"
            " chunk*: the step of a chunk while its sum is in the cache."
        )
        title = "sums and steps in one pass, and in two"
        return self.two_ways("Fused and separate", told, "hub-fused", title, ways)

    def cached(self):
        ways = {"replies": ("cached", None), "replies_non_temporal": ("non-temporal", "replies")}
        told = (
            "The new weights are written once for each worker besides, as in jobs over TCP, through the caches or past them."
        )
        title = "results through the caches, and past them"
        return self.two_ways("Cached and non-temporal", told, "hub-non-temporal", title, ways)

    # ---- counts and shares ------------------------------------------------------------------------------------------

    def partition(self):
        found = self.find(r"hub\.partition\.(\w+)\.servers(\d+)")
        servers = sorted({int(count) for (_, count), _ in found})
        rows = {}
        for (model, count), figure in found:
            rows.setdefault(model, {})[int(count)] = f"{figure['value']:.3f} ({figure['peer_value']:.3f})"
        if not rows:
            return ""
        lines = [(MODELS.get(model, model), *(row.get(count, "") for count in servers)) for model, row in rows.items()]
        told = (
            "Chunks of 32 KiB, spread over servers and their core threads: the largest load over the mean, of the worst of 1"
            " to 32 core threads that have 50 chunks each or more. In brackets, of as many core threads: the greedy that sorts"
            " sizes but adds up unsorted ones. These are counts, the same on any machine.\n\n"
        )
        columns = ("model", *(f"{count} server{'s' if count > 1 else ''}" for count in servers))
        below = (
            "Where nearly all chunks are of one size, as VGG-19's in 32 KiB, the other greedy's fault hardly shows; larger chunks"
            " show it: `bench_partition --chunk-kib 1024`.\n\n"
        )
        return "## Partition\n\n" + told + table(columns, lines) + below

    def secret(self):
        lines = []
        for (kib,), seal in self.find(r"hub\.frame_key\.seal\.(\d+)KiB"):
            check = self.figures[f"hub.frame_key.check.{kib}KiB"]
            rates = [cell for figure in (seal, check) for cell in (digits(figure["value"]), f"{figure['of_limit']:.0%}")]
            lines.append((f"{kib} KiB", *rates))
        if not lines:
            return ""
        told = (
            "Over TCP each side passes once more over every frame: the sender to seal it, the receiver to check it. One thread;"
            " the limit is memcpy of as much, payload and copy lying in the least cache that holds both.\n\n"
        )
        columns = ("payload", "sealing, GB/s", "of memcpy", "checking, GB/s", "of memcpy")
        return "## What a secret costs\n\n" + told + table(columns, lines) + self.placement(r"hub\.frame_key\..*")

    def tenants(self):
        lines = []
        for (transport, pair), share in self.find(r"hub\.tenants\.(\w+)\.(\w+)\.share"):
            name = f"hub.tenants.{transport}.{pair}.rate_beside_"
            alone = [self.get(f"{name}{which}_alone", "peer_value") for which in ("first", "second")]
            rates = [digits(rate) for rate in (self.get(f"{name}first_alone"), *alone)]
            words = {"alike": "one key each", "unlike": "one key, and keys of 16 KiB"}.get(pair, pair)
            lines.append((TRANSPORTS[transport], words, f"{share['value']:.3f}", *rates))
        if not lines:
            return ""
        told = (
            "Two jobs of two workers with as many bytes each, always busy. Both end with the bits that they end with alone;"
            " the benchmark fails otherwise. Bytes of gradients a second, of all workers.\n\n"
        )
        columns = ("transport", "jobs", "larger share over the mean", "both, GB/s", "first alone", "second alone")
        return "## Two tenants\n\n" + told + table(columns, lines) + self.placement(r"hub\.tenants\..*")

    def text(self):
        sections = (self.machine, self.glance, self.large, self.small, self.rate, self.wide_hub, self.tall_wide)
        sections += (self.fused, self.cached, self.chunks, self.variants, self.partition, self.tenants, self.secret)
        return (HEADER + "".join(section() for section in sections)).rstrip("\n") + "\n"
