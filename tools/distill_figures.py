#!/usr/bin/env python3
"""Prints what a student gains from a teacher over a stream, with bounds and controls (ExFM, arXiv 2502.17494).

    tools/distill_figures.py [--part gap|search|students|leak|age|bias|cost|all] [--seeds 6 7 8 9 10] [--rows 2000000]
                             [--build build/release] [--out build/bench/distill] [--threads 1] [--untold] [--keep]

The stream is configs/foundation/stream.yaml, cut into 20 windows. A teacher learns it in order and in one pass; its
snapshots, which have learnt from the first 3, 7, 11 and 15 windows, score windows 4 to 7, 8 to 11, ... of all domains
(phloem teach), one window after the last row that they have learnt. Students learn domain 2 in one pass; each row is
scored before it is learnt from (train.progressive). Normalised entropy (NE) is taken of the second half, by window.
Intervals are of 95 %, by a bootstrap of paired windows: of seeds, then of each seed's windows. Small and synthetic:
directions and shares, no production figures. Settings were chosen on seeds 0, 100 and 101; former settings of stream and
teacher have been seen on seeds 0 to 4.

With --untold teachers are not told the domain of a row, and so not its base rate: the bias that a head of its own
keeps out of what is served. docs/FOUNDATION.md has the figures.

gap        NE of the truth, of teachers, and of a student without one: the gap must be 1 % or more
search     weights, gradient scales and label scales on seeds that no other part reports
students   none, single, head, adapter; the truth as a teacher (the ceiling); the teacher shuffled within windows.
           Bars: head below single below none, intervals clear of 0; head's gain at least half of what the truth gives;
           shuffled within .1 % of none
leak       teachers that have learnt the student's rows, once and three times, and two that have learnt all rows of the
           stream but those that they score: what a later teacher knows, apart from what it remembers of the row
age        adapter and head whose teacher of windows 16 to 19 has stopped learning 0, 1, 4 and 14 windows sooner
bias       a teacher whose odds are doubled: the sum of predictions over that of labels
cost       bytes and bits of the saved and the exported model, p50 of a served row, time of a training step, beside a
           training without a teacher

What teachers say is kept in --out; the rows of all domains and the teachers, 6 GB a seed, go when a seed has been
scored, unless --keep is given. Ends with 1 where a bar is missed. Build first: cmake --preset release && cmake --build
build/release --target phloem libphloem.so
"""
import argparse
import concurrent.futures
import ctypes
import json
import math
import pathlib
import random
import shutil
import statistics
import subprocess
import sys
import time

from distill_stream import AGED, AGES, CURRENT, PASSES, ROOT, SCORED, WINDOWS, Stream

SEARCHED = (0, 100, 101)  # seeds of the search
FROZEN = {"single": {"weight": 3},  # the best of the search, by the second half; a label scale of 2 clips 4 to 5 %
          "head": {"weight": 1, "gradient_scale": 3, "label_scale": 1},
          "adapter": {"weight": 3, "gradient_scale": 1, "label_scale": 1}}
MOST_SHUFFLED, LEAST_OF_CEILING, LEAST_GAP, MOST_STEP, MOST_P50 = 0.001, 0.5, 0.01, 1.15, 1.02


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


def interval(seeds, rounds=2000):
    """Returns the mean and its interval of 95 %: values[seed][window], of which seeds and then windows are drawn."""
    draw = random.Random(1)

    def resampled():
        drawn = draw.choices(seeds, k=len(seeds))
        return statistics.mean(statistics.mean(draw.choices(windows, k=len(windows))) for windows in drawn)

    means = sorted(resampled() for _ in range(rounds))
    mean = statistics.mean(map(statistics.mean, seeds))
    return mean, means[int(0.025 * rounds)], means[int(0.975 * rounds) - 1]


def percent(seeds):
    mean, low, high = interval(seeds)
    return f"{100 * mean:+.3f} % [{100 * low:+.3f}, {100 * high:+.3f}]"


def entropy(rate):
    return -rate * math.log(rate) - (1 - rate) * math.log(1 - rate)


def recipe(kind, **more):
    settings = {**FROZEN.get(kind, {}), **more}
    return {"train.distill": kind, **{f"train.distill_{key}": value for key, value in settings.items()}}


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


def differences(stream, one, other, part=None):
    """Returns NE of one student less that of another, relative to the other's, by window of the second half."""
    part = part or stream.part(WINDOWS // 2)
    return [ours["ne"] / theirs["ne"] - 1 for ours, theirs in zip(one[part], other[part], strict=True)]


def second_half(stream, events):
    return events[stream.part(WINDOWS // 2)]


def students_of(stream, kinds):
    """Trains students by name -> (data, settings), as many at a time as there are threads."""
    with concurrent.futures.ThreadPoolExecutor(stream.figures.options.threads) as pool:
        events = pool.map(lambda name: stream.student(name, *kinds[name]), kinds)
        return dict(zip(kinds, events, strict=True))


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
    return statistics.mean(event["ne"] for event in second_half(stream, events))


def gap(figures):
    print("| seed | NE of the truth | teacher | student without one | gap |\n|---|---|---|---|---|")
    gaps = []
    for seed in figures.options.seeds:
        stream = Stream(figures, seed)
        log = stream.log(CURRENT)
        none = mean_ne(stream, stream.student("none", stream.taught(log), recipe("none")))
        others = teacher_ne(stream, log)
        gaps.append(none / others["teacher"] - 1)
        print(f"| {seed} | {others['truth']:.4f} | {others['teacher']:.4f} | {none:.4f} | {gaps[-1]:.2%} |", flush=True)
    figures.require(min(gaps) >= LEAST_GAP, f"a teacher's NE is at least {min(gaps):.2%} lower; the bar is {LEAST_GAP:.0%}")


def search(figures):
    grid = [("single", {"weight": w}) for w in (0.1, 0.3, 1, 3)]
    grid += [("head", {"weight": w, "gradient_scale": b}) for w in (0.1, 0.3, 1, 3) for b in (1, 3, 10, 30)]
    grid += [("head", {"label_scale": a}) for a in (2, 5, 10)]
    grid += [("adapter", {"weight": w, "gradient_scale": b}) for w in (0.1, 0.3, 1, 3) for b in (1, 3)]
    first, later = {}, {}
    for seed in SEARCHED:
        stream = Stream(figures, seed)
        data = stream.taught(stream.log(CURRENT, is_alone=True))
        jobs = {f"search {kind} {more}": (data, recipe(kind, **more)) for kind, more in grid}
        events = students_of(stream, {"none": (data, recipe("none")), **jobs})
        for name in jobs:
            third = stream.part(SCORED, WINDOWS // 2)
            first.setdefault(name, []).append(differences(stream, events[name], events["none"], third))
            later.setdefault(name, []).append(differences(stream, events[name], events["none"]))
        for scale in (2, 5, 10):
            print(f"(seed {seed}: label scale {scale} clips {clipped(data, scale):.2%} of the teacher's probabilities)")
    print(f"\nNE beside a student without a teacher, windows {SCORED} to {WINDOWS // 2 - 1}, then the second half:\n")
    print("| student | first | second half |\n|---|---|---|")
    for name in first:
        print(f"| {name.removeprefix('search ')} | {percent(first[name])} | {percent(later[name])} |")


def clipped(data, scale):
    with open(data, encoding="utf-8") as lines:
        next(lines)
        known = [float(cell) for cell in (line.rstrip("\n").rsplit("\t", 1)[1] for line in lines) if cell]
    return sum(scale * p > 1 for p in known) / len(known)


def students(figures):
    results, aucs = {}, {}
    shares, ratios = [], []
    for seed in figures.options.seeds:
        stream = Stream(figures, seed)
        current = stream.taught(stream.log(CURRENT))
        noise = stream.changed("shuffled", shuffled(stream.size // 10))
        by_truth = stream.changed("truth", truth)
        kinds = {"none": (current, recipe("none")), "single": (current, recipe("single")),
                 "head": (current, recipe("head")), "adapter": (current, recipe("adapter")),
                 "single by the truth": (by_truth, recipe("single")), "head by the truth": (by_truth, recipe("head")),
                 "single, shuffled": (noise, recipe("single")), "head, shuffled": (noise, recipe("head"))}
        kinds |= {f"single, weight {weight}": (current, recipe("single", weight=weight)) for weight in (0.1, 0.3, 1)}
        events = students_of(stream, kinds)
        for name in kinds:
            results.setdefault(name, []).append(differences(stream, events[name], events["none"]))
            pairs = zip(second_half(stream, events[name]), second_half(stream, events["none"]), strict=True)
            aucs.setdefault(name, []).append([ours["auc"] / theirs["auc"] - 1 for ours, theirs in pairs])
        results.setdefault("head beside single", []).append(differences(stream, events["head"], events["single"]))
        results.setdefault("head beside single, weight 1", []).append(
            differences(stream, events["head"], events["single, weight 1"]))
        others = teacher_ne(stream, stream.log(CURRENT))
        none, head = mean_ne(stream, events["none"]), mean_ne(stream, events["head"])
        shares.append((none - head) / (none - mean_ne(stream, events["head by the truth"])))
        ratios.append((none - head) / (none - others["teacher"]))
        print(f"(seed {seed}: none {none:.4f}, head {head:.4f}, teacher {others['teacher']:.4f})", flush=True)
    print(f"\nBeside a student without a teacher, {len(figures.options.seeds)} seeds:\n\n| student | NE | AUC |\n|---|---|---|")
    for name, values in results.items():
        if name != "none":
            print(f"| {name} | {percent(values)} | {percent(aucs[name]) if name in aucs else ''} |")
    print()
    below = {name: interval(values)[2] < 0 for name, values in results.items() if name != "none"}
    figures.require(below["single"], "single below none, interval clear of 0")
    figures.require(below["head"], "head below none, interval clear of 0")
    figures.require(below["head beside single"], "head below single, interval clear of 0")
    share = statistics.mean(shares)
    figures.require(share >= LEAST_OF_CEILING, f"head gains {share:.2f} of what it gains by the truth ({min(shares):.2f} to "
                    f"{max(shares):.2f}); the bar is {LEAST_OF_CEILING}")
    print(f"transfer ratio (NE_none - NE_head) / (NE_none - NE_teacher): {statistics.mean(ratios):.1%}, "
          f"{min(ratios):.1%} to {max(ratios):.1%}; 20 to 25 % is named for production (published)")
    off, worse = (abs(interval(results[f"{kind}, shuffled"])[0]) for kind in ("head", "single"))
    figures.require(off <= MOST_SHUFFLED, f"head by shuffled teachers is {off:.3%} from none; the bar is {MOST_SHUFFLED:.1%}")
    figures.require(worse > 5 * off, f"single by shuffled teachers is far worse, {worse:.3%} from none")


def leak(figures):
    names = {CURRENT: "windows before, the last of them one window ago", "held": "all rows but these", "once": "all rows, these once",
             "often": f"all rows, these {PASSES} times"}
    results, nes = {}, {}
    for seed in figures.options.seeds:
        stream = Stream(figures, seed)
        data = {name: stream.taught(stream.log(name)) for name in names}
        kinds = {"none": (data[CURRENT], recipe("none"))}
        kinds |= {f"{kind} by {name}": (data[name], recipe(kind)) for name in names for kind in ("single", "head")}
        events = students_of(stream, kinds)
        for name in kinds:
            results.setdefault(name, []).append(differences(stream, events[name], events["none"]))
        for name in names:
            nes.setdefault(name, []).append(teacher_ne(stream, stream.log(name)))
    print("| the teacher has learnt | its NE | of the truth | single | head |\n|---|---|---|---|---|")
    for name, what in names.items():
        ne, true = (statistics.mean(values[kind] for values in nes[name]) for kind in ("teacher", "truth"))
        single, head = (percent(results[f"{kind} by {name}"]) for kind in ("single", "head"))
        print(f"| {what} | {ne:.4f} | {true:.4f} | {single} | {head} |")
    print()
    ne = {name: statistics.mean(values["teacher"] for values in nes[name]) for name in names}
    gain = {name: -interval(results[f"head by {name}"])[0] for name in names}
    figures.require(ne["often"] < ne["once"] < ne["held"], "a teacher that has learnt the rows has too good an NE")
    figures.require(gain["often"] < gain["held"], f"after {PASSES} passes it teaches less than one that knows the rest alone")
    figures.require(gain["often"] < gain[CURRENT], f"after {PASSES} passes it teaches less than one that stopped before")


def age(figures):
    results = {}
    for seed in figures.options.seeds:
        stream = Stream(figures, seed)
        kinds = {}
        for old in AGES:
            data = stream.taught(stream.log(f"age{old}"))
            kinds |= {f"{kind} {old}": (data, recipe(kind)) for kind in ("head", "adapter")}
        events = students_of(stream, kinds)
        for old in AGES:
            one, other = events[f"adapter {old}"], events[f"head {old}"]
            slope = adapter_slope(stream.path(f"students/adapter {old}"))
            values, slopes, nes = results.setdefault(old, ([], [], []))
            values.append(differences(stream, one, other, stream.part(AGED)))
            slopes.append(slope)
            nes.append(teacher_ne(stream, stream.log(f"age{old}"))["teacher"])
    print("| windows since the teacher learnt | its NE | slope of the adapter | adapter beside head |\n|---|---|---|---|")
    for old, (values, slopes, nes) in results.items():
        spread = f"{statistics.mean(slopes):.3f} ({min(slopes):.3f} to {max(slopes):.3f})"
        print(f"| {old} | {statistics.mean(nes):.4f} | {spread} | {percent(values)} |")
    print()
    slopes = [statistics.mean(slopes) for _, slopes, _ in results.values()]
    figures.require(abs(slopes[0] - 1) <= 0.1, f"the slope at age 0 is {slopes[0]:.3f}; the bar is 1 ± .1")
    figures.require(slopes[-1] < slopes[0], "the slope falls with age")
    worst = max(interval(values)[0] for values, _, _ in results.values())
    figures.require(worst <= 0.0002, f"adapter is at worst {worst:+.4%} beside head; the bar is +.02 %")
    figures.require(interval(results[AGES[-1]][0])[2] < 0, "adapter below head at the greatest age, interval clear of 0")


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
        return x + sum(h * w for h, w in zip(hidden, tensors["output.weight"])) + tensors["output.bias"][0]

    return (log_odds(1) - log_odds(-3)) / 4


def bias(figures):
    seen = {"single": [], "head": []}
    expected = []
    for seed in figures.options.seeds:
        stream = Stream(figures, seed)
        data = stream.changed("doubled", doubled)
        settings = {kind: (data, recipe(kind, weight=1)) for kind in seen}
        events = students_of(stream, {f"{kind} doubled": job for kind, job in settings.items()})
        for kind, values in seen.items():
            half = second_half(stream, events[f"{kind} doubled"])
            values.append(statistics.mean(event["calibration"] for event in half))
        expected.append(expected_bias(stream, data))
    print("| student | sum of predictions / sum of labels | expected |\n|---|---|---|")
    single, head, exact = (statistics.mean(values) for values in (*seen.values(), expected))
    for kind, should_be in (("single", exact), ("head", 1)):
        print(f"| {kind} | {statistics.mean(seen[kind]):.3f} "
              f"({min(seen[kind]):.3f} to {max(seen[kind]):.3f}) | {should_be:.3f} |")
    print()
    figures.require(abs(single - exact) <= 0.02, f"single: {single:.3f} for {exact:.3f} ± .02")
    figures.require(abs(head - 1) <= 0.01, f"head: {head:.3f} for 1 ± .01")


def expected_bias(stream, data):
    labels = teachers = 0
    with open(data, encoding="utf-8") as lines:
        columns = next(lines).rstrip("\n").split("\t")
        for line in lines:
            row = line.rstrip("\n").split("\t")
            if int(row[columns.index("row")]) >= stream.rows // 2:
                labels += row[0] == "1"
                teachers += float(row[-1])
    return (labels + teachers) / (2 * labels)


def cost(figures):
    stream = Stream(figures, figures.options.seeds[0])
    data = stream.taught(stream.log(CURRENT))
    jobs = {kind: (data, recipe(kind)) for kind in ("none", "head", "adapter")}
    jobs["weight 0"] = (data, recipe("head", weight=0))
    names = {name: f"cost {name}" for name in jobs}
    students_of(stream, {names[name]: job for name, job in jobs.items()})
    folders = {name: stream.path(f"students/{names[name]}") for name in jobs}
    sizes = {name: (folder / "model.safetensors").stat().st_size for name, folder in folders.items()}
    figures.require(len(set(sizes.values())) == 1, f"saved models have {sorted(set(sizes.values()))} bytes")
    sums = {name: json.loads((folder / "summary.json").read_text())["checkpoint_sha256"] for name, folder in folders.items()}
    figures.require(sums["weight 0"] == sums["none"], "a weight of 0 gives the bits of the training without a teacher")
    exports = {name: exported(figures, folder) for name, folder in folders.items()}
    figures.require(exports["weight 0"] == exports["none"], "with a weight of 0 the exported program is the same, bit by bit")
    figures.require(len(set(map(len, exports.values()))) == 1, f"exported programs have {len(exports['head'])} bytes each")
    ratio = latency_ratio(figures, folders["head"], folders["none"], data)
    figures.require(ratio <= MOST_P50, f"p50 of a row: {ratio:.3f} times that of the student without; the bar is {MOST_P50}")
    seconds = {name: [] for name in ("none", "head", "adapter")}
    for round_number in range(figures.options.rounds):
        for name in seconds:
            path = stream.path(f"students/time {name} {round_number}")
            shutil.rmtree(path, ignore_errors=True)
            stream.student(path.name, *jobs[name])
            seconds[name].append(json.loads((path / "summary.json").read_text())["train_seconds"])
            shutil.rmtree(path)
    for name in ("head", "adapter"):
        ratios = sorted(a / b for a, b in zip(seconds[name], seconds["none"], strict=True))
        ratio = statistics.median(ratios)
        figures.require(ratio <= MOST_STEP, f"{name}: a training step takes {ratio:.3f} times "
                        f"({ratios[0]:.3f} to {ratios[-1]:.3f}, {len(ratios)} rounds) that without a teacher; the bar is {MOST_STEP}")


def exported(figures, folder):
    path = folder.with_suffix(".onnx")
    figures.run("export", folder, "--onnx", path)
    program = path.read_bytes()
    path.unlink()
    return program


def latency_ratio(figures, one, other, data, num_rows=2000, rounds=21):
    """Returns the median over rounds of p50 of one model over that of another; calls of a row each, by turns."""
    library = ctypes.CDLL(str(figures.phloem.parent / "libphloem.so"))
    with open(data, "rb") as lines:
        next(lines)
        rows = [next(lines) for _ in range(num_rows)]
    sessions = []
    for folder in (one, other):
        session = ctypes.c_void_p()
        assert library.ph_session_open(str(folder).encode(), None, ctypes.byref(session)) == 0
        sessions.append(session)
    probability, count = ctypes.c_float(), ctypes.c_size_t()

    def p50(session):
        seconds = []
        for row in rows:
            start = time.perf_counter()
            status = library.ph_session_score_text(session, row, ctypes.c_size_t(len(row)), ctypes.byref(probability),
                                                   ctypes.c_size_t(1), ctypes.byref(count))
            seconds.append(time.perf_counter() - start)
            assert status == 0 and count.value == 1
        return statistics.median(seconds)

    ratios = [p50(sessions[0]) / p50(sessions[1]) for _ in range(rounds)]
    for session in sessions:
        library.ph_session_close(session)
    return statistics.median(ratios)


PARTS = {"gap": gap, "search": search, "students": students, "leak": leak, "age": age, "bias": bias, "cost": cost}


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--part", choices=[*PARTS, "all"], default="all")
    parser.add_argument("--seeds", type=int, nargs="+", default=[6, 7, 8, 9, 10])
    parser.add_argument("--rows", type=int, default=2000000)
    parser.add_argument("--rounds", type=int, default=11)
    parser.add_argument("--threads", type=int, default=1, help="of teachers, and students at a time")
    parser.add_argument("--untold", action="store_true", help="teachers are not told the domain of a row")
    parser.add_argument("--keep", action="store_true", help="keep the rows of all domains and the teachers")
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
