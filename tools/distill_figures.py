#!/usr/bin/env python3
"""Prints what a student gains from a teacher over a stream, with bounds and controls (ExFM, arXiv 2502.17494).

    tools/distill_figures.py [--part gap|search|students|age|bias|cost|all] [--seeds 1 2 3 4 5] [--rows 2000000]
                             [--build build/release] [--out build/bench/distill]

The stream is configs/foundation/stream.yaml, cut into 20 windows. Teachers are snapshots: one that has learnt from the
first 3, 7, 11 and 15 windows scores windows 4 to 7, 8 to 11, ... of all domains (phloem teach), one window after it has
learnt its last row. Students learn domain 2 in one pass; each row is scored before it is learnt from (train.progressive).
Normalised entropy (NE) is taken of the second half, by window. Intervals are of 95 %, by a block bootstrap of windows
that are paired, over all seeds. Small and synthetic: directions and shares, no production figures.

gap        NE of the truth, of teachers, and of a student without one: the gap must be 1 % or more
search     weights, gradient scales and label scales on the first third of seed 0, which no other part uses
students   none, single, head, adapter; the truth as a teacher (the ceiling); the teacher shuffled within windows; a
           teacher that has learnt the rows. Bars: head below single below none, intervals clear of 0; head's gain at least
           half of what the truth gives; shuffled within .1 % of none
age        adapter and head by teachers that stopped learning 0, 1, 4 and 14 windows ago
bias       a teacher whose odds are doubled: the sum of predictions over that of labels
cost       bytes and bits of the saved model, time of a step, beside a training without a teacher

Ends with 1 where a bar is missed. Build first: cmake --preset release && cmake --build build/release --target phloem
"""
import argparse
import concurrent.futures
import json
import math
import pathlib
import random
import shutil
import statistics
import subprocess
import sys
import time

ROOT = pathlib.Path(__file__).resolve().parent.parent
CONFIGS = ROOT / "configs" / "foundation"
DOMAIN = "2"  # the student's: a tenth of the rows
WINDOWS, SNAPSHOTS = 20, (3, 7, 11, 15)  # windows that a teacher has learnt from; it scores from one window later on
FROZEN = {"train.distill_weight": 1, "train.distill_gradient_scale": 3, "train.distill_label_scale": 1}
MOST_SHUFFLED, LEAST_OF_CEILING, LEAST_GAP = 0.001, 0.5, 0.01


class Figures:
    def __init__(self, options):
        self.options, self.status = options, 0
        self.phloem = pathlib.Path(options.build).resolve() / "phloem"
        self.out = pathlib.Path(options.out).resolve()
        if not self.phloem.exists():
            sys.exit(f"no {self.phloem}: build it first")

    def run(self, *words, check=True):
        done = subprocess.run([str(self.phloem), *map(str, words)], capture_output=True, text=True, check=False)
        if check and done.returncode != 0:
            sys.exit(f"{' '.join(map(str, words))}\n{done.stdout}{done.stderr}")
        return done

    def require(self, is_met, what):
        print(f"{'PASS' if is_met else 'short of the bar'}: {what}")
        if not is_met:
            self.status = 1


# ---- statistics -------------------------------------------------------------------------------------------------------


def interval(values, rounds=2000):
    """Returns the mean and its interval of 95 % by resampling the windows."""
    draw = random.Random(1)
    means = sorted(statistics.mean(draw.choices(values, k=len(values))) for _ in range(rounds))
    return statistics.mean(values), means[int(0.025 * rounds)], means[int(0.975 * rounds) - 1]


def percent(values):
    mean, low, high = interval(values)
    return f"{100 * mean:+.3f} % [{100 * low:+.3f}, {100 * high:+.3f}]"


def entropy(rate):
    return -rate * math.log(rate) - (1 - rate) * math.log(1 - rate)


# ---- a seed's stream --------------------------------------------------------------------------------------------------


class Stream:
    """A seed's rows, teachers' logs, and students."""

    def __init__(self, figures, seed):
        self.figures, self.seed = figures, seed
        self.rows = figures.options.rows
        self.folder = figures.out / f"seed{seed}"
        self.size = self.rows // WINDOWS

    def path(self, name):
        return self.folder / name

    def once(self, name, make):
        """Makes a file or folder unless it is there."""
        path = self.path(name)
        if not path.exists():
            path.parent.mkdir(parents=True, exist_ok=True)
            make(path)
        return path

    def all_rows(self):
        def make(path):
            words = ["synth", CONFIGS / "stream.yaml", "--out", path.parent, "--set", f"seed={self.seed}"]
            self.figures.run(*words, "--set", f"synth.seed={self.seed}", "--set", f"synth.train_rows={self.rows}")

        return self.once("stream/train.tsv", make)

    def lines(self, first, end):
        """Yields the header, then the lines of windows [first, end)."""
        with open(self.all_rows(), encoding="utf-8") as lines:
            yield next(lines)
            for number, line in enumerate(lines):
                if first * self.size <= number < end * self.size:
                    yield line

    def windows(self, first, end):
        def make(path):
            with open(path, "w", encoding="utf-8") as rows:
                rows.writelines(self.lines(first, end))

        return self.once(f"windows_{first}_{end}.tsv", make)

    def teacher(self, end):
        """Trains a teacher on the windows before `end`."""

        def make(path):
            words = ["train", CONFIGS / "teacher.yaml", "--out", path, "--quiet", "--set", f"seed={self.seed}"]
            self.figures.run(*words, "--set", f"data.train={self.windows(0, end)}", "--set", "threads=2")

        return self.once(f"teacher_{end}", make)

    def log(self, name, parts):
        """Scores windows (first, end) of parts by a teacher that has learnt from so many."""

        def make(path):
            draft = path.with_suffix(".draft")
            draft.unlink(missing_ok=True)
            for learnt, first, end in parts:
                words = ["teach", self.teacher(learnt), "--data", self.windows(first, end), "--key", "row"]
                checked = ["--unchecked"] if learnt > first else []
                self.figures.run(*words, "--out", draft, "--quiet", *checked)
            draft.rename(path)

        return self.once(f"{name}.log", make)

    def current_log(self):
        ends = [*(learnt + 1 for learnt in SNAPSHOTS), WINDOWS]
        return self.log("current", [(learnt, learnt + 1, end) for learnt, end in zip(SNAPSHOTS, ends[1:])])

    def taught(self, log):
        """Joins a log into the stream of domain 2."""

        def make(path):
            joined = path.with_suffix(".joined.tsv")
            self.figures.run("teach", "--join", log, "--data", self.all_rows(), "--out", joined)
            with open(joined, encoding="utf-8") as lines, open(path, "w", encoding="utf-8") as own:
                header = next(lines)
                domain = header.rstrip("\n").split("\t").index("domain")
                own.write(header)
                own.writelines(line for line in lines if line.split("\t", domain + 1)[domain] == DOMAIN)
            joined.unlink()

        return self.once(f"student_{log.stem}.tsv", make)

    def changed(self, name, change):
        """Writes the student's rows with other teachers: change(columns, rows) sets the last cell of each."""

        def make(path):
            with open(self.taught(self.current_log()), encoding="utf-8") as lines:
                columns = next(lines).rstrip("\n").split("\t")
                rows = [line.rstrip("\n").split("\t") for line in lines]
            change({name: i for i, name in enumerate(columns)}, rows)
            with open(path, "w", encoding="utf-8") as own:
                own.writelines("\t".join(row) + "\n" for row in [columns, *rows])

        return self.once(f"student_{name}.tsv", make)

    def student(self, name, data, settings):
        """Trains a student; returns its windows of the stream's second half: (NE, calibration, rows)."""

        def make(path):
            words = [f"--set={key}={value}" for key, value in settings.items()]
            more = ["--set", f"data.train={data}", "--set", f"seed={self.seed}", "--set", "threads=1"]
            self.figures.run("train", CONFIGS / "student.yaml", "--out", path, "--quiet", *more, *words)

        folder = self.once(f"students/{name}", make)
        with open(folder / "metrics.jsonl", encoding="utf-8") as lines:
            events = [event for event in map(json.loads, lines) if event["event"] == "progressive"]
        return events

    def second_half(self, events):
        return events[len(events) // 2 :]


def recipe(kind, **more):
    return {"train.distill": kind, **FROZEN, **{f"train.distill_{key}": value for key, value in more.items()}}


def truth(columns, rows):
    for row in rows:
        row[-1] = row[columns["truth"]] if row[-1] else ""


def shuffled(size):
    def change(columns, rows):
        draw = random.Random(1)
        known = [i for i, row in enumerate(rows) if row[-1]]
        for begin in range(0, len(known), size):
            places = known[begin : begin + size]
            cells = [rows[i][-1] for i in places]
            draw.shuffle(cells)
            for i, cell in zip(places, cells):
                rows[i][-1] = cell

    return change


def doubled(columns, rows):
    for row in rows:
        if row[-1]:
            odds = 2 * float(row[columns["truth"]]) / (1 - float(row[columns["truth"]]))
            row[-1] = f"{odds / (1 + odds):.9g}"


# ---- parts ------------------------------------------------------------------------------------------------------------


def differences(stream, one, other):
    """Returns NE of one student less that of another, relative to the other's, by window of the second half."""
    pairs = zip(stream.second_half(one), stream.second_half(other), strict=True)
    return [ours["ne"] / theirs["ne"] - 1 for ours, theirs in pairs]


def in_pairs(jobs):
    with concurrent.futures.ThreadPoolExecutor(2) as pool:
        return list(pool.map(lambda job: job(), jobs))


def students_of(stream, kinds):
    """Trains students by name -> (data, settings), two at a time."""
    names = list(kinds)
    events = in_pairs([lambda name=name: stream.student(name, *kinds[name]) for name in names])
    return dict(zip(names, events, strict=True))


def teacher_ne(stream, log):
    """Returns the NE of a log's teachers on domain 2 in the second half, and of the truth."""
    sums = {"teacher": 0.0, "truth": 0.0}
    positives = count = 0
    with open(stream.taught(log), encoding="utf-8") as lines:
        columns = {name: i for i, name in enumerate(next(lines).rstrip("\n").split("\t"))}
        for line in lines:
            row = line.rstrip("\n").split("\t")
            if int(row[columns["row"]]) < stream.rows // 2 or not row[-1]:
                continue
            label = row[columns["label"]] == "1"
            for name in sums:
                p = float(row[columns[name]])
                sums[name] -= math.log(p if label else 1 - p)
            positives += label
            count += 1
    return {name: total / count / entropy(positives / count) for name, total in sums.items()}


def mean_ne(stream, events):
    return statistics.mean(event["ne"] for event in stream.second_half(events))


def gap(figures):
    print("| seed | NE of the truth | teacher | student without one | gap |\n|---|---|---|---|---|")
    gaps = []
    for seed in figures.options.seeds:
        stream = Stream(figures, seed)
        log = stream.current_log()
        none = mean_ne(stream, stream.student("none", stream.taught(log), recipe("none")))
        others = teacher_ne(stream, log)
        gaps.append(none / others["teacher"] - 1)
        print(f"| {seed} | {others['truth']:.4f} | {others['teacher']:.4f} | {none:.4f} | {gaps[-1]:.2%} |", flush=True)
    figures.require(min(gaps) >= LEAST_GAP, f"a teacher's NE is at least {min(gaps):.2%} lower; the bar is {LEAST_GAP:.0%}")


def search(figures):
    stream = Stream(figures, 0)
    data = stream.taught(stream.current_log())
    base = sum(1 for line in stream.lines(0, 2) if line[0] == "1") / (2 * stream.size)
    grid = [("single", {"weight": w}) for w in (0.1, 0.3, 1, 3)]
    grid += [("head", {"weight": w, "gradient_scale": b}) for w in (0.1, 0.3, 1, 3) for b in (1, 3, 10, 30)]
    grid += [("head", {"label_scale": a}) for a in (2, 5, 1 / base)]
    events = stream.student("none", data, recipe("none"))
    third = slice(len(events) // 5, len(events) // 2)
    none = events[third]
    jobs = [lambda kind=kind, more=more: (kind, more, stream.student(f"search_{kind}_{more}", data, recipe(kind, **more))[third])
            for kind, more in grid]
    print("| kind | settings | NE beside none |\n|---|---|---|")
    for kind, more, events in in_pairs(jobs):
        values = [ours["ne"] / theirs["ne"] - 1 for ours, theirs in zip(events, none, strict=True)]
        print(f"| {kind} | {more} | {percent(values)} |")


def students(figures):
    results = {}
    shares, ratios = [], []
    for seed in figures.options.seeds:
        stream = Stream(figures, seed)
        current = stream.taught(stream.current_log())
        leak = stream.taught(stream.log("leak", [(WINDOWS, SNAPSHOTS[0] + 1, WINDOWS)]))
        noise = stream.changed("shuffled", shuffled(stream.size // 2))
        kinds = {"none": (current, recipe("none")), "single": (current, recipe("single")),
                 "head": (current, recipe("head")), "adapter": (current, recipe("adapter")),
                 "single by the truth": (stream.changed("truth", truth), recipe("single")),
                 "head by the truth": (stream.changed("truth", truth), recipe("head")),
                 "single, shuffled": (noise, recipe("single")), "head, shuffled": (noise, recipe("head")),
                 "head by a teacher of these rows": (leak, recipe("head"))}
        events = students_of(stream, kinds)
        for name in kinds:
            results.setdefault(name, []).extend(differences(stream, events[name], events["none"]))
        results.setdefault("head beside single", []).extend(differences(stream, events["head"], events["single"]))
        others = teacher_ne(stream, stream.current_log())
        none, head = mean_ne(stream, events["none"]), mean_ne(stream, events["head"])
        shares.append((none - head) / (none - mean_ne(stream, events["head by the truth"])))
        ratios.append((none - head) / (none - others["teacher"]))
        print(f"(seed {seed}: none {none:.4f}, head {head:.4f}, teacher {others['teacher']:.4f})", flush=True)
    print(f"\nNE beside a student without a teacher, {len(figures.options.seeds)} seeds:\n\n| student | NE |\n|---|---|")
    for name, values in results.items():
        if name != "none":
            print(f"| {name} | {percent(values)} |")
    print()
    below = {name: interval(values)[2] < 0 for name, values in results.items() if name != "none"}
    figures.require(below["single"], "single below none, interval clear of 0")
    figures.require(below["head beside single"], "head below single, interval clear of 0")
    share = statistics.mean(shares)
    figures.require(share >= LEAST_OF_CEILING, f"head gains {share:.2f} of what it gains by the truth; the bar is {LEAST_OF_CEILING}")
    print(f"transfer ratio (NE_none - NE_head) / (NE_none - NE_teacher): {statistics.mean(ratios):.1%}, "
          f"{min(ratios):.1%} to {max(ratios):.1%}; 20 to 25 % is named for production (published)")
    off = abs(statistics.mean(results["head, shuffled"]))
    figures.require(off <= MOST_SHUFFLED, f"head by shuffled teachers is {off:.3%} from none; the bar is {MOST_SHUFFLED:.1%}")
    worse = statistics.mean(results["single, shuffled"]) > 5 * off
    figures.require(worse, "single by shuffled teachers is far worse than head by them")
    less = statistics.mean(results["head by a teacher of these rows"]) > statistics.mean(results["head"])
    figures.require(less, "a teacher that has learnt the rows teaches less")


def age(figures):
    first = SNAPSHOTS[-1] + 1
    results = {}
    for seed in figures.options.seeds:
        stream = Stream(figures, seed)
        kinds = {}
        for old in (0, 1, 4, 14):
            data = stream.taught(stream.log(f"age{old}", [(SNAPSHOTS[-1] - old, first, WINDOWS)]))
            kinds |= {f"{kind} {old}": (data, recipe(kind)) for kind in ("head", "adapter")}
        events = students_of(stream, kinds)
        for old in (0, 1, 4, 14):
            one, other = events[f"adapter {old}"], events[f"head {old}"]
            part = slice(-len(one) * (WINDOWS - first) // WINDOWS, None)
            values = [ours["ne"] / theirs["ne"] - 1 for ours, theirs in zip(one[part], other[part], strict=True)]
            slope = adapter_slope(stream.path(f"students/adapter {old}"))
            results.setdefault(old, ([], []))[0].extend(values)
            results[old][1].append(slope)
    print("| windows since the teacher learnt | slope of the adapter | adapter beside head |\n|---|---|---|")
    for old, (values, slopes) in results.items():
        print(f"| {old} | {statistics.mean(slopes):.3f} ({min(slopes):.3f} to {max(slopes):.3f}) | {percent(values)} |")
    slopes = [statistics.mean(slopes) for _, slopes in results.values()]
    figures.require(abs(slopes[0] - 1) <= 0.1, f"the slope at age 0 is {slopes[0]:.3f}; the bar is 1 ± .1")
    figures.require(slopes[-1] < slopes[0], "the slope falls with age")
    worst = max(statistics.mean(values) for values, _ in results.values())
    figures.require(worst <= 0.0002, f"adapter is at worst {worst:+.4%} beside head; the bar is +.02 %")
    last = [values for values, _ in results.values()][-1]
    figures.require(interval(last)[2] < 0, "adapter below head at the greatest age, interval clear of 0")


def adapter_slope(folder):
    """Returns the slope of the adapter's log-odds against the teacher's, between log-odds -3 and 1."""
    newest = sorted(folder.glob("checkpoints/step-*.safetensors"))[-1]
    with open(newest, "rb") as file:
        size = int.from_bytes(file.read(8), "little")
        heads = json.loads(file.read(size))
        tensors = {}
        for name in ("deep.0.weight", "deep.0.bias", "output.weight", "output.bias"):
            begin, end = heads[f"distill.adapter.{name}"]["data_offsets"]
            file.seek(8 + size + begin)
            data = memoryview(file.read(end - begin)).cast("f")
            tensors[name] = list(data)

    def log_odds(x):
        hidden = [max(0, w * x + b) for w, b in zip(tensors["deep.0.weight"], tensors["deep.0.bias"])]
        return sum(h * w for h, w in zip(hidden, tensors["output.weight"])) + tensors["output.bias"][0]

    return (log_odds(1) - log_odds(-3)) / 4


def bias(figures):
    seen = {"single": [], "head": []}
    expected = []
    for seed in figures.options.seeds:
        stream = Stream(figures, seed)
        data = stream.changed("doubled", doubled)
        settings = {kind: (data, {**recipe(kind), "train.distill_weight": 1}) for kind in seen}
        events = students_of(stream, {f"{kind} doubled": job for kind, job in settings.items()})
        for kind, values in seen.items():
            half = stream.second_half(events[f"{kind} doubled"])
            values.append(statistics.mean(event["calibration"] for event in half))
        expected.append(expected_bias(stream, data))
    print("| student | sum of predictions / sum of labels | expected |\n|---|---|---|")
    single, head, exact = (statistics.mean(values) for values in (*seen.values(), expected))
    print(f"| single | {single:.3f} | {exact:.3f} |\n| head | {head:.3f} | 1 |\n")
    figures.require(abs(single - exact) <= 0.02, f"single: {single:.3f} for {exact:.3f} ± .02")
    figures.require(abs(head - 1) <= 0.01, f"head: {head:.3f} for 1 ± .01")


def expected_bias(stream, data):
    labels = teachers = count = 0
    with open(data, encoding="utf-8") as lines:
        next(lines)
        for line in lines:
            row = line.rstrip("\n").split("\t")
            if row[-1]:
                labels += row[0] == "1"
                teachers += float(row[-1])
                count += 1
    return (labels + teachers) / (2 * labels)


def cost(figures):
    stream = Stream(figures, figures.options.seeds[0])
    data = stream.taught(stream.current_log())
    jobs = {kind: recipe(kind) for kind in ("none", "head", "adapter")}
    jobs["weight 0"] = {**recipe("head"), "train.distill_weight": 0}
    for name, settings in jobs.items():
        stream.student(f"cost {name}", data, settings)
    folders = {name: stream.path(f"students/cost {name}") for name in jobs}
    sizes = {name: (folder / "model.safetensors").stat().st_size for name, folder in folders.items()}
    figures.require(len(set(sizes.values())) == 1, f"saved models have {sorted(set(sizes.values()))} bytes")
    sums = {name: json.loads((folder / "summary.json").read_text())["checkpoint_sha256"] for name, folder in folders.items()}
    figures.require(sums["weight 0"] == sums["none"], "a weight of 0 gives the bits of the training without a teacher")
    seconds = {name: [] for name in ("none", "head", "adapter")}
    for round_number in range(figures.options.rounds):
        for name in seconds:
            path = stream.path(f"students/time {name} {round_number}")
            shutil.rmtree(path, ignore_errors=True)
            start = time.perf_counter()
            stream.student(path.name, data, jobs[name])
            seconds[name].append(time.perf_counter() - start)
    for name in ("head", "adapter"):
        ratio = statistics.median(a / b for a, b in zip(seconds[name], seconds["none"], strict=True))
        figures.require(ratio <= 1.15, f"{name}: {ratio:.3f} times the training without a teacher; the bar is 1.15")


PARTS = {"gap": gap, "search": search, "students": students, "age": age, "bias": bias, "cost": cost}


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--part", choices=[*PARTS, "all"], default="all")
    parser.add_argument("--seeds", type=int, nargs="+", default=[1, 2, 3, 4, 5])
    parser.add_argument("--rows", type=int, default=2000000)
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--build", default=ROOT / "build" / "release")
    parser.add_argument("--out", default=ROOT / "build" / "bench" / "distill")
    figures = Figures(parser.parse_args())
    for name, part in PARTS.items():
        if parser.parse_args().part in (name, "all"):
            print(f"\n## {name}\n")
            part(figures)
    sys.exit(figures.status)


if __name__ == "__main__":
    main()
