"""Makes a seed's stream, what teachers say of its rows, and students (tools/distill_figures.py)."""
import json
import pathlib
import shutil

ROOT = pathlib.Path(__file__).resolve().parent.parent
CONFIGS = ROOT / "configs" / "foundation"
DOMAIN, SHARE = "2", 10  # the student's: a tenth of the rows
LOGGED_ROWS = 10000  # of a window that a student logs: train.progressive_rows of student.yaml
WINDOWS, SNAPSHOTS = 20, (3, 7, 11, 15)  # windows that a teacher has learnt from; it scores from one window later on
SCORED = SNAPSHOTS[0] + 1  # the first window with a teacher
AGED, AGES = SNAPSHOTS[-1] + 1, (0, 1, 4, 14)  # of the teachers that score windows from AGED on
CURRENT = "age0"
TEACHER_BATCH, PASSES = 1000, 3  # of teacher.yaml; of the teacher that remembers rows


class Stream:
    """A seed's rows, teachers' logs, and students."""

    def __init__(self, figures, seed):
        self.figures, self.seed = figures, seed
        self.rows = figures.options.rows
        self.folder = figures.out / f"{'untold' if figures.options.untold else 'seed'}{seed}"
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

    def teacher_config(self):
        """Returns the teacher's config, with --untold without the domain."""

        def make(path):
            told = (CONFIGS / "teacher.yaml").read_text(encoding="utf-8")
            path.write_text(told.replace("{name: domain, kind: id, encoding: raw, rows: 3}", "{name: domain, kind: ignore}"),
                            encoding="utf-8")

        return self.once("teacher.yaml", make) if self.figures.options.untold else CONFIGS / "teacher.yaml"

    def train_teacher(self, folder, rows, *more):
        words = ["train", self.teacher_config(), "--out", folder, "--resume", "--quiet"]
        settings = [f"data.train={rows}", f"seed={self.seed}", f"threads={self.figures.options.threads}", *more]
        self.figures.run(*words, *(word for setting in settings for word in ("--set", setting)))

    def teacher(self, end):
        """Trains a teacher on the windows before `end`, on from the newest snapshot that has learnt from fewer.

        Beyond WINDOWS it learns them again."""

        def make(path):
            older = [n for n in range(end) if self.path(f"teacher_{n}").exists()]
            draft = path.with_name(path.name + ".draft")
            shutil.rmtree(draft, ignore_errors=True)
            if older:
                shutil.copytree(self.path(f"teacher_{older[-1]}"), draft)
            steps = end * self.size // TEACHER_BATCH
            passes = -(-end // WINDOWS)
            self.train_teacher(draft, self.all_rows(), f"train.max_steps={steps}", f"train.epochs={passes}")
            draft.rename(path)

        return self.once(f"teacher_{end}", make)

    def score(self, teacher, rows, draft, *checked):
        self.figures.run("teach", teacher, "--data", rows, "--key", "row", "--out", draft, "--quiet", *checked)

    def score_windows(self, draft, parts):
        """Scores windows (first, end) of parts by a teacher that has learnt from so many."""
        for learnt, first, end in parts:
            checked = ["--unchecked"] if learnt > first else ["--learnt", self.windows(0, learnt)]
            self.score(self.teacher(learnt), self.windows(first, end), draft, *checked)

    def held_back(self, half):
        """Writes every other row that the student learns from a teacher, and the stream without those rows."""

        def is_held_back(number, line, domain):
            return number >= SCORED * self.size and number % 2 == half and line.split("\t", domain + 1)[domain] == DOMAIN

        def make(path):
            held, rest = path.with_suffix(".tsv"), path.with_suffix(".rest.tsv")
            with open(held, "w", encoding="utf-8") as own, open(rest, "w", encoding="utf-8") as others:
                lines = self.lines(0, WINDOWS)
                header = next(lines)
                domain = header.rstrip("\n").split("\t").index("domain")
                own.write(header)
                others.write(header)
                for number, line in enumerate(lines):
                    (own if is_held_back(number, line, domain) else others).write(line)
            path.touch()

        path = self.once(f"windows_held_{half}", make)
        return path.with_suffix(".tsv"), path.with_suffix(".rest.tsv")

    def score_held_back(self, draft):
        for half in (0, 1):
            held, rest = self.held_back(half)
            teacher = self.once(f"teacher_held_{half}", lambda path, rest=rest: self.train_teacher(path, rest))
            self.score(teacher, held, draft)  # refuses rows that it has learnt

    def makers(self):
        """Returns what makes each log, in an order in which the teachers of one are there for the next."""
        ends = [learnt + 1 for learnt in SNAPSHOTS[1:]]
        recent = [(learnt, learnt + 1, end) for learnt, end in zip(SNAPSHOTS, ends)]
        logs = {f"age{age}": [*recent, (SNAPSHOTS[-1] - age, AGED, WINDOWS)] for age in reversed(AGES)}
        logs |= {"once": [(WINDOWS, SCORED, WINDOWS)], "often": [(PASSES * WINDOWS, SCORED, WINDOWS)]}
        makers = {name: lambda draft, parts=parts: self.score_windows(draft, parts) for name, parts in logs.items()}
        return {**makers, "held": self.score_held_back}

    def log(self, wanted, is_alone=False):
        """Returns a log of all domains' rows; makes all logs at once, unless this one is wanted alone."""
        if self.path(f"{wanted}.log").exists():
            return self.path(f"{wanted}.log")
        for name, maker in self.makers().items():
            path, draft = self.path(f"{name}.log"), self.path(f"{name}.draft")
            if path.exists() or is_alone and name != wanted:
                continue
            draft.unlink(missing_ok=True)
            maker(draft)
            draft.rename(path)
        self.tidy([*self.folder.glob("teacher_*"), *self.folder.glob("windows_*")])
        return self.path(f"{wanted}.log")

    def tidy(self, paths):
        for path in [] if self.figures.options.keep else paths:
            if path.is_dir():
                shutil.rmtree(path)
            else:
                path.unlink()

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
            with open(self.taught(self.log(CURRENT)), encoding="utf-8") as lines:
                columns = next(lines).rstrip("\n").split("\t")
                rows = [line.rstrip("\n").split("\t") for line in lines]
            change({name: i for i, name in enumerate(columns)}, rows)
            with open(path, "w", encoding="utf-8") as own:
                own.writelines("\t".join(row) + "\n" for row in [columns, *rows])

        return self.once(f"student_{name}.tsv", make)

    def student(self, name, data, settings):
        """Trains a student; returns what it logs of each whole window of rows: the few rows behind them are noise."""

        def make(path):
            words = [f"--set={key}={value}" for key, value in settings.items()]
            more = ["--set", f"data.train={data}", "--set", f"seed={self.seed}", "--set", "threads=1"]
            draft = path.with_name(path.name + ".draft")
            shutil.rmtree(draft, ignore_errors=True)
            self.figures.run("train", CONFIGS / "student.yaml", "--out", draft, "--quiet", *more, *words)
            draft.rename(path)

        folder = self.once(f"students/{name}", make)
        with open(folder / "metrics.jsonl", encoding="utf-8") as lines:
            events = [event for event in map(json.loads, lines) if event["event"] == "progressive"]
        return [event for event in events if event["rows"] == LOGGED_ROWS]

    def part(self, first, end=None):
        """Selects windows [first, end) of the stream among those that a student logs."""
        logged = self.rows // SHARE // LOGGED_ROWS
        return slice(first * logged // WINDOWS, end and end * logged // WINDOWS)
