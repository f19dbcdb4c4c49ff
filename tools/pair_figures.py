#!/usr/bin/env python3
"""Prints what a served model gains from what a foundation model said of pairs before (SOLARIS, arXiv 2604.12110).

    tools/pair_figures.py [--part forced|predictor|ladder|life|transfer|controls|all ...] [--seeds 11 12 13 14 15]
                          [--hours 144] [--build build/release] [--out build/bench/pairs] [--keep]

A stream of phloem synth --slates: 2,000 users in sessions, slates of 32, a context that
lasts 2 hours on average. The first half
of its time teaches the foundation model (FM), and the model that is served before (its scores choose pairs). The second
half is replayed (phloem replay); students learn its first half as it was served, in one pass, and are measured on its
second half. Normalised entropy (NE) is given as its change against the student that reads nothing of pairs; intervals are
of 95 % over users of all seeds. Small and synthetic: directions and shares, no production figures.

forced     0, 20 ... 100 % of rows, drawn at random, have their pair's numbers, computed on the spot. Bars: each step lower;
           all of them give 60 % of what the FM knows more, 40 % of them 20 %
predictor  coverage within a budget of 10 % of the stream's pairs, of its second half: by expected asks, at random, of the
           latest or most frequent users, and by asks that are known. Bars: 1.5 x random, 1.15 x the better of latest and
           frequent, .6 x known
ladder     as served; without similar users; pairs alone. Bars: 85 % of rows have something; each rung lowers NE
life       rows that live 1/4, 1, 4 and 24 hours. Bar: the longest life is not the best
transfer   shares of what the FM knows more: by pairs of 40 % of rows, by an auxiliary head (ExFM), by both
controls   numbers of a random other pair of the stream; a student that learnt at 100 % and is served 40 %

Ends with 1 where a bar is missed. Build first: cmake --preset release && cmake --build build/release --target phloem
"""
import argparse
import json
import math
import pathlib
import random
import re
import shutil
import subprocess
import sys

ROOT = pathlib.Path(__file__).resolve().parent.parent
CONFIGS = ROOT / "configs" / "foundation"
BUDGET, LIFE_HOURS, NUMBERS, TICK_SECONDS, BATCH = 0.1, 6, 16, 60, 256
HEAD = {"train.distill": "head", "train.distill_weight": 1, "train.distill_gradient_scale": 1}


class Figures:
    def __init__(self, options):
        self.options, self.status, self.streams = options, 0, {}
        self.phloem = pathlib.Path(options.build).resolve() / "phloem"
        if not self.phloem.exists():
            sys.exit(f"no {self.phloem}: build it first")

    def run(self, *words):
        done = subprocess.run([str(self.phloem), *map(str, words)], capture_output=True, text=True, check=False)
        if done.returncode != 0:
            sys.exit(f"{' '.join(map(str, words))}\n{done.stdout}{done.stderr}")
        return done.stdout

    def require(self, is_met, what):
        print(f"{'PASS' if is_met else 'short of the bar'}: {what}")
        if not is_met:
            self.status = 1

    def of_seeds(self):
        for seed in self.options.seeds:
            if seed not in self.streams:
                self.streams[seed] = Stream(self, seed)
            yield self.streams[seed]


# ---- statistics -------------------------------------------------------------------------------------------------------


class Losses:
    """Losses on the second half of what was replayed, summed by user."""

    def __init__(self, labels, users, probabilities):
        self.sums, self.weights = {}, {}
        rate = sum(labels) / len(labels)
        entropy = -rate * math.log(rate) - (1 - rate) * math.log(1 - rate)
        for label, user, p in zip(labels, users, probabilities, strict=True):
            p = min(max(p, 1e-9), 1 - 1e-9)
            self.sums[user] = self.sums.get(user, 0) - math.log(p if label else 1 - p)
            self.weights[user] = self.weights.get(user, 0) + entropy
        self.ne = sum(self.sums.values()) / sum(self.weights.values())


def change(pairs):
    """Returns the change of NE from the first to the second of each pair, relative, and half of its interval of 95 %."""
    differences, weights = [], []
    for before, after in pairs:
        for user, loss in before.sums.items():
            differences.append(after.sums[user] - loss)
            weights.append(before.weights[user] * before.ne)
    ratio = sum(differences) / sum(weights)
    spread = math.sqrt(sum((d - ratio * w) ** 2 for d, w in zip(differences, weights, strict=True)))
    return ratio, 1.96 * spread / sum(weights)


def percent(pairs):
    ratio, half = change(pairs)
    return f"{100 * ratio:+.3f} % +- {100 * half:.3f}"


# ---- a seed's stream --------------------------------------------------------------------------------------------------


class Stream:
    """A seed's rows, its FM, and students of what was served."""

    def __init__(self, figures, seed):
        self.figures, self.seed = figures, seed
        self.folder = pathlib.Path(figures.options.out).resolve() / f"seed{seed}"
        self.known = {}
        self.make_rows()
        self.make_models()

    def path(self, name):
        return self.folder / name

    def make_rows(self):
        shutil.rmtree(self.folder, ignore_errors=True)
        self.folder.mkdir(parents=True)
        hours = self.figures.options.hours
        self.figures.run("synth", "--slates", "--out", self.path("synth"), "--set", f"slates.seed={self.seed}",
                         "--set", f"slates.hours={hours}", "--set", f"slates.requests={hours / 4}")
        rows = self.path("synth/train.tsv")
        self.cut(rows, hours * 1800, "learnt.tsv", "stream.tsv")
        rows.unlink()
        self.middle = hours * 2700
        self.cut(self.path("stream.tsv"), self.middle, "plain.train.tsv", "plain.test.tsv")
        with open(self.path("plain.test.tsv"), encoding="utf-8") as lines:
            next(lines)
            cells = [line.split("\t", 6) for line in lines]
        self.labels, self.users = [row[0] == "1" for row in cells], [row[5] for row in cells]

    def cut(self, path, seconds, before, after):
        """Cuts a file at a time."""
        with open(path, encoding="utf-8") as lines:
            header = next(lines)
            with open(self.path(before), "w", encoding="utf-8") as first, open(self.path(after), "w",
                                                                               encoding="utf-8") as second:
                first.write(header)
                second.write(header)
                for line in lines:
                    (first if float(line.split("\t", 4)[3]) < seconds else second).write(line)

    def train(self, name, config, data, settings):
        sets = [word for key, value in settings.items() for word in ("--set", f"{key}={value}")]
        if config.name != "pair_teacher.yaml":
            sets += ["--set", "train.schedule=cosine", "--set", f"train.schedule_steps={self.steps_of(data)}"]
        self.figures.run("train", config, "--out", self.path(name), "--set", f"data.train={data}",
                         "--set", f"seed={self.seed}", *sets)
        return self.path(name)

    def steps_of(self, data):
        with open(data, encoding="utf-8") as lines:
            return (sum(1 for _ in lines) - 1) // BATCH

    def config(self, reads_pairs, has_teacher=False):
        path = CONFIGS / ("pair_student.yaml" if reads_pairs else "pair_plain.yaml")
        if not has_teacher:
            return path
        own = self.path(f"taught_{path.name}")
        own.write_text(path.read_text().replace("  fields:\n", "  fields:\n    - {name: teacher, kind: teacher}\n"))
        return own

    def make_models(self):
        self.fm = self.train("fm", CONFIGS / "pair_teacher.yaml", self.path("learnt.tsv"), {})
        self.figures.run("encode", self.fm, "--data", self.path("learnt.tsv"), "--numbers", NUMBERS, "--rows", 20000)
        self.scorer = self.train("scorer", self.config(False), self.path("learnt.tsv"), {})
        self.known["fm"] = self.measure(self.fm, self.path("plain.test.tsv"))
        self.known["none"] = self.student("none", "plain", False)

    def measure(self, folder, data):
        predictions = self.path("predictions.csv")
        self.figures.run("predict", folder, data, "--out", predictions)
        values = [float(line.split(",")[-1]) for line in predictions.read_text().splitlines()[1:]]
        return Losses(self.labels, self.users, values)

    def student(self, name, halves, reads_pairs=True, settings=None, test=None):
        """Learns the first half of what was served, and returns the losses on the second one, or on `test`."""
        if name not in self.known:
            has_teacher = settings is not None
            folder = self.train(f"student {name}", self.config(reads_pairs, has_teacher),
                                self.path(f"{halves}.train.tsv"), settings or {})
            self.known[name] = self.measure(folder, self.path(f"{test or halves}.test.tsv"))
            shutil.rmtree(folder)
        return self.known[name]

    def served(self, name, settings, needs_rows=True):
        """Replays the stream; NAME.train.tsv and NAME.test.tsv are its halves. Returns what phloem replay printed."""
        sets = {"speculation.seconds": 3600 * LIFE_HOURS, "replay.tick_seconds": TICK_SECONDS, "replay.seed": self.seed,
                **settings}
        words = [word for key, value in sets.items() for word in ("--set", f"{key}={value}")]
        out = self.path(f"{name}.tsv")
        if needs_rows:
            words += ["--out", out]
        text = self.figures.run("replay", self.scorer, "--teacher", self.fm, "--data", self.path("stream.tsv"), *words)
        if needs_rows:
            self.cut(out, self.middle, f"{name}.train.tsv", f"{name}.test.tsv")
            out.unlink()
        return text

    def drop(self, *names):
        for name in names:
            for half in ("train", "test"):
                self.path(f"{name}.{half}.tsv").unlink(missing_ok=True)

    def forced(self, share):
        name = f"forced {share}"
        if name not in self.known:
            self.served("forced", {"replay.coverage": share})
            self.student(name, "forced")
            self.drop("forced")
        return self.known[name]

    def rewritten(self, name, halves, rewrite):
        """Copies both halves; rewrite(columns, rows) may change cells."""
        for half in ("train", "test"):
            with open(self.path(f"{halves}.{half}.tsv"), encoding="utf-8") as lines:
                columns = next(lines).rstrip("\n").split("\t")
                rows = [line.rstrip("\n").split("\t") for line in lines]
            rewrite(columns, rows)
            with open(self.path(f"{name}.{half}.tsv"), "w", encoding="utf-8") as out:
                out.write("\t".join(columns) + "\n")
                out.writelines("\t".join(row) + "\n" for row in rows)


def pairs(figures, before, after):
    return [(before(stream), after(stream)) for stream in figures.of_seeds()]


def none(stream):
    return stream.known["none"]


def share_of_gap(figures, after):
    """Returns how much of what the FM knows more a student has."""
    gained, _ = change(pairs(figures, none, after))
    gap, _ = change(pairs(figures, none, lambda stream: stream.known["fm"]))
    return gained / gap


# ---- parts ------------------------------------------------------------------------------------------------------------


def forced(figures):
    shares = (0.2, 0.4, 0.6, 0.8, 1)
    print(f"NE of the student: {' '.join(f'{none(s).ne:.4f}' for s in figures.of_seeds())}")
    print(f"FM beside it: {percent(pairs(figures, none, lambda stream: stream.known['fm']))}")
    former, former_name = none, "0"
    for share in shares:
        def here(stream, share=share):
            return stream.forced(share)

        print(f"coverage {share:.1f}: {percent(pairs(figures, none, here))}, {share_of_gap(figures, here):.3f} of the gap")
        step, half = change(pairs(figures, former, here))
        figures.require(step + half < 0, f"{share} below {former_name}: {100 * step:+.3f} % +- {100 * half:.3f}")
        former, former_name = here, share
    for share, bar in ((1, 0.6), (0.4, 0.2)):
        gained = share_of_gap(figures, lambda stream, share=share: stream.forced(share))
        figures.require(gained >= bar, f"coverage {share} gives {gained:.3f} of the gap; the bar is {bar}")


def coverage(text, line="second half"):
    found = re.search(f"^{line} +(.*)$", text, re.MULTILINE).group(1).split()
    return {name: float(value) for name, value in zip(found[::2], found[1::2], strict=True)}


def predictor(figures):
    policies = ("expected", "random", "latest", "frequent", "known")
    means = {}
    for policy in policies:
        texts = [stream.served("policy", {"replay.budget": BUDGET, "replay.policy": policy}, False)
                 for stream in figures.of_seeds()]
        means[policy] = sum(coverage(text)["pair"] for text in texts) / len(texts)
        spent = [re.search(r"of_pairs ([\d.]+)", text).group(1) for text in texts]
        cache = [re.search(r"replaced (\d+) never_read (\d+)", text) for text in texts]
        unread = sum(int(found.group(2)) for found in cache) / sum(int(found.group(1)) for found in cache)
        print(f"{policy}: pairs {means[policy]:.4f}, rows of pairs {' '.join(spent)}, never read {unread:.3f}")
    own = means["expected"]
    for bar, name, other in ((1.5, "random", means["random"]), (1.15, "the better of latest and frequent",
                             max(means["latest"], means["frequent"])), (0.6, "known", means["known"])):
        figures.require(own >= bar * other, f"expected is {own / other:.2f} x {name}; the bar is {bar}")


def without(rungs):
    """Returns a rewriting that blanks what was found on these rungs."""
    def rewrite(columns, rows):
        first, flags = columns.index("fm_1"), [columns.index(f"fm_{rung}") for rung in rungs]
        for row in rows:
            if any(row[flag] != "0" for flag in flags):
                row[first:] = ["0"] * (len(row) - first)

    return rewrite


def ladder(figures):
    found = []
    for stream in figures.of_seeds():
        text = stream.served("served", {"replay.budget": BUDGET})
        found.append(coverage(text))
        stream.student("ladder", "served")
        for name, rungs in (("pairs and users", ["near"]), ("pairs", ["near", "user"])):
            stream.rewritten("fewer", "served", without(rungs))
            stream.student(name, "fewer")
        stream.drop("served", "fewer")
    for rung in ("pair", "user", "near", "none"):
        print(f"{rung}: {sum(one[rung] for one in found) / len(found):.4f} of rows")
    some = 1 - sum(one["none"] for one in found) / len(found)
    figures.require(some >= 0.85, f"{some:.3f} of rows have something; the bar is .85")
    steps = [none] + [lambda stream, name=name: stream.known[name] for name in ("pairs", "pairs and users", "ladder")]
    for name, former, here in zip(("pairs", "pairs and users", "ladder"), steps, steps[1:]):
        print(f"{name}: {percent(pairs(figures, none, here))}, {share_of_gap(figures, here):.3f} of the gap")
        step, half = change(pairs(figures, former, here))
        figures.require(step + half < 0, f"{name} beside the rung before: {100 * step:+.3f} % +- {100 * half:.3f}")


def life(figures):
    hours = (0.25, 1, 4, 24)
    for stream in figures.of_seeds():
        for life_hours in hours:
            stream.served("life", {"replay.budget": BUDGET, "speculation.seconds": 3600 * life_hours})
            stream.student(f"life {life_hours}", "life")
            stream.drop("life")
    gains = {}
    for life_hours in hours:
        def here(stream, name=f"life {life_hours}"):
            return stream.known[name]

        gains[life_hours] = change(pairs(figures, none, here))[0]
        print(f"life {life_hours} h: {percent(pairs(figures, none, here))}")
    best = min(gains, key=gains.get)
    step, half = change(pairs(figures, lambda s: s.known[f"life {best}"], lambda s: s.known["life 24"]))
    figures.require(best != 24 and step - half > 0, f"{best} h is best; 24 h beside it {100 * step:+.3f} % +- {100 * half:.3f}")


def transfer(figures):
    for stream in figures.of_seeds():
        log = stream.path("teacher.log")
        stream.figures.run("teach", stream.fm, "--data", stream.path("stream.tsv"), "--key", "row", "--out", log)
        stream.served("forced", {"replay.coverage": 0.4})
        for halves in ("plain", "forced"):
            for half in ("train", "test"):
                stream.figures.run("teach", "--join", log, "--data", stream.path(f"{halves}.{half}.tsv"), "--out",
                                   stream.path(f"taught {halves}.{half}.tsv"))
        stream.student("head", "taught plain", False, HEAD)
        stream.student("both", "taught forced", True, HEAD)
        stream.student("forced 0.4", "forced")
        stream.drop("forced", "taught plain", "taught forced")
    shares = {}
    for name in ("forced 0.4", "head", "both"):
        def here(stream, name=name):
            return stream.known[name]

        shares[name] = share_of_gap(figures, here)
        print(f"{name}: {percent(pairs(figures, none, here))}, transfer ratio {shares[name]:.3f}")
    figures.require(shares["forced 0.4"] > shares["head"], "pairs of 40 % of rows transfer more than the auxiliary head")
    step, half = change(pairs(figures, lambda s: s.known["forced 0.4"], lambda s: s.known["both"]))
    figures.require(step + half < 0, f"both beside pairs alone: {100 * step:+.3f} % +- {100 * half:.3f}")


def other_pairs(columns, rows):
    """Gives each row what belongs to a random other row."""
    first = columns.index("fm_1")
    cells = [row[first:] for row in rows]
    random.Random(1).shuffle(cells)
    for row, other in zip(rows, cells, strict=True):
        row[first:] = other


def controls(figures):
    for stream in figures.of_seeds():
        stream.served("forced", {"replay.coverage": 1})
        stream.rewritten("other", "forced", other_pairs)
        stream.student("other pairs", "other")
        stream.drop("other")
        stream.served("some", {"replay.coverage": 0.4})
        stream.student("forced 0.4", "some")
        stream.student("learnt at 1", "forced", test="some")
        stream.drop("forced", "some")
    beside, half = change(pairs(figures, none, lambda s: s.known["other pairs"]))
    figures.require(abs(beside) <= 0.0002 + half, f"other pairs' numbers: {100 * beside:+.3f} % +- {100 * half:.3f}; "
                    "the bar is .02 %")
    step, half = change(pairs(figures, lambda s: s.known["forced 0.4"], lambda s: s.known["learnt at 1"]))
    figures.require(step - half > 0, f"learnt at 100 %, served 40 %: {100 * step:+.3f} % +- {100 * half:.3f} beside learnt "
                    "as served")


PARTS = {"forced": forced, "predictor": predictor, "ladder": ladder, "life": life, "transfer": transfer,
         "controls": controls}


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--part", choices=[*PARTS, "all"], nargs="+", default=["all"])
    parser.add_argument("--seeds", type=int, nargs="+", default=[11, 12, 13, 14, 15])
    parser.add_argument("--hours", type=float, default=144)
    parser.add_argument("--build", default=ROOT / "build" / "release")
    parser.add_argument("--out", default=ROOT / "build" / "bench" / "pairs")
    parser.add_argument("--keep", action="store_true")
    options = parser.parse_args()
    figures = Figures(options)
    for name, part in PARTS.items():
        if name in options.part or "all" in options.part:
            print(f"\n## {name}\n", flush=True)
            part(figures)
    if not options.keep:
        for stream in figures.streams.values():
            shutil.rmtree(stream.folder)
    sys.exit(figures.status)


if __name__ == "__main__":
    main()
