#!/usr/bin/env python3
"""The event files of a training, read back by the TensorBoard package, against metrics.jsonl.

usage: tensorboard_check.py PHLOEM

Trains a small model, stops it on the way and resumes it, so that there are several files. Every number of metrics.jsonl
must be there once under its tag, at its step, as the float that it is nearest to, with a time between the start and the end
of this script; and nothing else. Ends with 1 where that is not so, and with 77 where TensorBoard is not importable.
"""
import json
import math
import pathlib
import signal
import struct
import subprocess
import sys
import tempfile
import time

try:
    from tensorboard.backend.event_processing import event_accumulator, event_file_loader
except ImportError as error:
    print(f"skipped: {error}")
    sys.exit(77)

JOB = """
seed: 1
threads: 1
data: {train: data/train.tsv, valid: data/valid.tsv, test: data/test.tsv, format: criteo}
model: {kind: deepfm, embedding_dim: 4, hidden_units: [8]}
optimizer: {kind: adam, learning_rate: 0.01}
train: {epochs: 3, batch_size: 100, report_seconds: 0, evaluate_steps: 7, patience: 0, checkpoint_steps: 5}
synth: {train_rows: 4000, valid_rows: 500, test_rows: 500, table_rows: 50, format: criteo}
"""
EVERYTHING = {event_accumulator.SCALARS: 0, event_accumulator.TENSORS: 0}  # 0: keep all
NUMBERS = {
    "train": ["loss", "auc", "learning_rate", "samples_per_s"],
    "valid": ["auc", "logloss", "ne", "calibration"],
    "test": ["auc", "logloss", "ne", "calibration"],
}


def as_float(number):
    return struct.unpack("f", struct.pack("f", number))[0]


def expected_scalars(path):
    """(tag, step): number, of metrics.jsonl."""
    scalars = {}
    for line in path.read_text().splitlines():
        event = json.loads(line)
        for key in NUMBERS.get(event["event"], []):
            if event[key] is not None:
                scalars[f"{event['event']}/{key}", event["step"]] = as_float(event[key])
    return scalars


def found_scalars(folder, began, ended):
    """The same of the events, and what is wrong with them."""
    accumulator = event_accumulator.EventAccumulator(str(folder), size_guidance=EVERYTHING)
    accumulator.Reload()
    tags = accumulator.Tags()
    scalars, problems = {}, []
    for tag in tags["scalars"] + tags["tensors"]:
        if tag in tags["scalars"]:
            values = [(event.step, event.value, event.wall_time) for event in accumulator.Scalars(tag)]
        else:
            values = [(e.step, e.tensor_proto.float_val[0], e.wall_time) for e in accumulator.Tensors(tag)]
        for step, number, when in values:
            if (tag, step) in scalars:
                problems.append(f"{tag} at step {step} is there twice")
            if not began <= when <= ended:
                problems.append(f"{tag} at step {step} is of {when}")
            scalars[tag, step] = number
    return scalars, problems


def num_summaries(folder):
    """Of all files, as they lie there: whoever reads them without TensorBoard's rules finds nothing twice, either."""
    files = sorted(folder.glob("events.out.tfevents.*"))
    events = [event for path in files for event in event_file_loader.LegacyEventFileLoader(str(path)).Load()]
    return len(files), sum(event.HasField("summary") for event in events)


def main():
    phloem = pathlib.Path(sys.argv[1]).resolve()
    with tempfile.TemporaryDirectory() as name:
        folder = pathlib.Path(name)
        (folder / "job.yaml").write_text(JOB)
        subprocess.run([phloem, "synth", "job.yaml", "--out", "data"], cwd=folder, check=True, stdout=subprocess.DEVNULL)
        began = time.time() - 1
        train = [phloem, "train", "job.yaml", "--out", "run", "--quiet"]
        stopped = subprocess.Popen(train, cwd=folder, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
        metrics = folder / "run/metrics.jsonl"
        while stopped.poll() is None and not (metrics.exists() and '"step":33' in metrics.read_text()):
            time.sleep(0.001)
        stopped.send_signal(signal.SIGKILL)
        stopped.wait()
        time.sleep(1.1)  # the next file has a later name
        subprocess.run(train + ["--resume"], cwd=folder, check=True, stdout=subprocess.DEVNULL)
        wanted = expected_scalars(metrics)
        found, problems = found_scalars(folder / "run", began, time.time() + 1)
        num_files, num_found = num_summaries(folder / "run")
        num_lines = sum(json.loads(line)["event"] in NUMBERS for line in metrics.read_text().splitlines())
    if num_found != num_lines:
        problems.append(f"{num_found} events for {num_lines} lines of metrics.jsonl")
    for place in sorted(set(wanted) | set(found), key=str):
        if not math.isclose(wanted.get(place, math.nan), found.get(place, math.nan), rel_tol=1e-6):
            problems.append(f"{place}: {wanted.get(place)} in metrics.jsonl, {found.get(place)} in the events")
    print("\n".join(problems) if problems else f"{len(found)} numbers of {num_found} events in {num_files} files: fine")
    return 1 if problems or not wanted else 0


if __name__ == "__main__":
    sys.exit(main())
