#!/usr/bin/env python3
"""Fully sharded layers (parallel.dense_mode: full) learn what PyTorch's fully_shard does: the same perceptron from the same
weights on the same rows, two ranks over MPI here and over gloo there, with SGD and with Adam. The losses of twenty steps differ
by at most 1e-5. Adam on many layers makes rounding larger than that: then by twice what one rank differs from two.

usage: units_torch_check.py PHLOEM [--layers 3] [--width 64] [--samples 32] [--rounds 1] [--json FILE]

--samples: of a rank and step. Prints each optimizer's largest difference and both times of a step, the median over rounds of
medians over steps. The times are no comparison unless the machine has a core for each rank, and nothing else to do.

Skips (77) where mpirun is missing, or PyTorch with fully_shard, here and in $PHLOEM_BENCH_PYTHON.
"""
import argparse
import json
import os
import pathlib
import random
import shutil
import statistics
import struct
import subprocess
import sys
import tempfile
import time

try:
    import torch
    import torch.distributed
    from torch.distributed.fsdp import fully_shard
except ImportError as missing:
    other = os.environ.pop("PHLOEM_BENCH_PYTHON", None)
    if other:
        os.execvp(other, [other, *sys.argv])
    print(f"skipped: {missing}")
    sys.exit(77)

RANKS, STEPS, FIELDS = 2, 20, 16
MOST_DIFFERENCE = 1e-5
RATES = {"sgd": 0.05, "adam": 1e-4}


# ---- PyTorch: a process a rank ----


def read_tensors(path):
    """The fp32 tensors of a safetensors file, by name."""
    data = path.read_bytes()
    begin = 8 + struct.unpack_from("<Q", data)[0]
    tensors = {}
    for name, entry in json.loads(data[8:begin]).items():
        if name != "__metadata__":
            first, last = entry["data_offsets"]
            numbers = torch.frombuffer(bytearray(data[begin + first : begin + last]), dtype=torch.float32)
            tensors[name] = numbers.reshape(entry["shape"])
    return tensors


def make_model(tensors):
    """A unit of each layer, and the rest of the root; weights are (outputs, inputs) in both."""
    layers = []
    names = [name.removesuffix(".weight") for name in tensors if name.endswith(".weight")]
    for name in sorted((n for n in names if n[-1].isdigit()), key=lambda n: int(n.split(".")[-1])) + \
            [n for n in names if not n[-1].isdigit()]:
        linear = torch.nn.Linear(*reversed(tensors[f"{name}.weight"].shape))
        linear.weight.data.copy_(tensors[f"{name}.weight"])
        linear.bias.data.copy_(tensors[f"{name}.bias"])
        layers += [linear, torch.nn.ReLU()]
    model = torch.nn.Sequential(*layers[:-1])
    mesh = torch.distributed.init_device_mesh("cpu", (RANKS,))
    for layer in model:
        if isinstance(layer, torch.nn.Linear):
            fully_shard(layer, mesh=mesh)
    return fully_shard(model, mesh=mesh)


def read_rows(folder):
    lines = (folder / "rows.csv").read_text(encoding="ascii").splitlines()[1:]
    rows = torch.tensor([[float(cell) for cell in line.split(",")] for line in lines])
    return rows[:, 1:], rows[:, :1]


def train_rank(folder, rank, kind):
    """Trains one rank's share of each batch; returns losses and seconds of all steps."""
    model = make_model(read_tensors(folder / "first" / "model.safetensors"))
    optimizer = {"sgd": torch.optim.SGD, "adam": torch.optim.Adam}[kind](model.parameters(), lr=RATES[kind])
    x, y = read_rows(folder)
    samples = len(x) // STEPS // RANKS
    losses, seconds = [], []
    for step in range(STEPS):
        own = slice((step * RANKS + rank) * samples, (step * RANKS + rank + 1) * samples)
        began = time.perf_counter()
        optimizer.zero_grad(set_to_none=True)
        loss = torch.nn.functional.binary_cross_entropy_with_logits(model(x[own]), y[own])
        loss.backward()
        optimizer.step()
        mean = loss.detach()
        torch.distributed.all_reduce(mean)
        losses.append(mean.item() / RANKS)
        seconds.append(time.perf_counter() - began)
    return losses, seconds


def serve_rank(folder, rank):
    """Trains with each optimizer. Rank 0 prints {optimizer: [losses, seconds]}."""
    torch.set_num_threads(1)
    torch.distributed.init_process_group("gloo", init_method=f"file://{folder}/meeting", rank=rank, world_size=RANKS)
    results = {kind: train_rank(folder, rank, kind) for kind in RATES}
    if rank == 0:
        print(json.dumps(results))
    torch.distributed.destroy_process_group()


def train_torch(folder):
    (folder / "meeting").unlink(missing_ok=True)
    environment = {**os.environ, "GLOO_SOCKET_IFNAME": "lo"}
    ranks = [subprocess.Popen([sys.executable, __file__, "--rank", str(folder), str(rank)], env=environment, text=True,
                              stdout=subprocess.PIPE, stderr=subprocess.PIPE) for rank in range(RANKS)]
    outputs = [rank.communicate() for rank in ranks]
    for rank, (_, errors) in zip(ranks, outputs):
        if rank.returncode != 0:
            sys.exit(f"a rank of PyTorch ended with {rank.returncode}:\n{errors}")
    return {kind: (losses, statistics.median(seconds[1:])) for kind, (losses, seconds) in json.loads(outputs[0][0]).items()}


# ---- Phloem ----


def prepare(folder, options):
    generator = random.Random(1)
    names = [f"d{i}" for i in range(FIELDS)]
    lines = [",".join(["label", *names])]
    for _ in range(STEPS * RANKS * options.samples):
        cells = [round(generator.gauss(0, 1), 3) for _ in names]
        lines.append(",".join(map(str, [int(cells[0] * cells[1] + cells[2] > 0), *cells])))
    (folder / "rows.csv").write_text("\n".join(lines) + "\n", encoding="ascii")
    fields = [{"name": "label", "kind": "label"}, *({"name": name, "kind": "dense"} for name in names)]
    (folder / "job.yaml").write_text(json.dumps({
        "seed": 1,
        "threads": 1,
        "data": {"train": str(folder / "rows.csv"), "format": "csv", "fields": fields, "shuffle": False},
        "model": {"kind": "dnn", "hidden_units": [options.width] * options.layers, "embedding_dim": 4},
        "train": {"epochs": 1, "batch_size": RANKS * options.samples, "report": False, "tensorboard": False,
                  "report_seconds": 0},
    }), encoding="ascii")  # JSON is YAML, too


def train(options, folder, name, kind, rate, ranks, more=()):
    shutil.rmtree(folder / name, ignore_errors=True)
    launcher = ["mpirun", "-n", str(ranks)] if ranks > 1 else []
    told = subprocess.run(["mpirun", "--version"], capture_output=True, text=True, check=False).stdout
    if launcher and ("Open MPI" in told or "OpenRTE" in told):
        launcher += ["--oversubscribe", "--bind-to", "none", *(["--allow-run-as-root"] if os.getuid() == 0 else [])]
    settings = [f"optimizer.kind={kind}", f"optimizer.learning_rate={rate}", *more]
    command = [*launcher, options.phloem, "train", folder / "job.yaml", "--out", folder / name, "--quiet",
               *(word for setting in settings for word in ("--set", setting))]
    done = subprocess.run(command, capture_output=True, text=True, check=False, stdin=subprocess.DEVNULL)
    if done.returncode != 0:
        sys.exit(f"phloem train ended with {done.returncode}:\n{done.stderr}")
    lines = [json.loads(line) for line in (folder / name / "metrics.jsonl").read_text(encoding="utf-8").splitlines()]
    return [line["loss"] for line in lines if line["event"] == "train"]


def train_phloem(folder, options, kind):
    more = ["parallel.dense_mode=full"]
    losses = train(options, folder, kind, kind, RATES[kind], RANKS, more)
    ranks = json.loads((folder / kind / "summary.json").read_text(encoding="utf-8"))["ranks"]
    return losses, ranks["step_seconds"]


# ---- both ----


def run_rounds(folder, options):
    """[{optimizer: (losses, seconds, PyTorch's losses, PyTorch's seconds)}]"""
    rounds = []
    for _ in range(options.rounds):
        ours = {kind: train_phloem(folder, options, kind) for kind in RATES}
        theirs = train_torch(folder)
        rounds.append({kind: (*ours[kind], *theirs[kind]) for kind in RATES})
    return rounds


def largest_difference(losses, other_losses):
    return max(abs(a - b) for a, b in zip(losses, other_losses))


def compare(kind, rounds, own_losses):
    """own_losses: of one rank, which adds in another order."""
    losses, _, other_losses, _ = rounds[0][kind]
    assert len(losses) == STEPS, f"{len(losses)} steps"
    assert losses[0] != losses[-1], "nothing has been learnt"
    difference = largest_difference(losses, other_losses)
    rounding = largest_difference(losses, own_losses)
    limit = max(MOST_DIFFERENCE, 2 * rounding)
    ours, theirs = [figures[kind][1] for figures in rounds], [figures[kind][3] for figures in rounds]
    ratios = sorted(a / b for a, b in zip(ours, theirs))
    print(f"{kind}: losses of {STEPS} steps differ by at most {difference:.1e} (limit {limit:.1e}; one rank's by {rounding:.1e}); a step takes "
          f"{statistics.median(ours) * 1e3:.1f} ms, fully_shard's {statistics.median(theirs) * 1e3:.1f} ms, ratio "
          f"{statistics.median(ratios):.2f} ({ratios[0]:.2f} to {ratios[-1]:.2f})")
    return {"optimizer": kind, "difference": difference, "limit": limit, "rounding": rounding, "step_seconds": ours,
            "peer_step_seconds": theirs, "ratio": statistics.median(ratios), "label": "measured"}


def main():
    if sys.argv[1] == "--rank":
        serve_rank(pathlib.Path(sys.argv[2]), int(sys.argv[3]))
        return
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("phloem", type=pathlib.Path)
    parser.add_argument("--layers", type=int, default=3)
    parser.add_argument("--width", type=int, default=64)
    parser.add_argument("--samples", type=int, default=32)
    parser.add_argument("--rounds", type=int, default=1)
    parser.add_argument("--json", type=pathlib.Path)
    options = parser.parse_args()
    options.phloem = options.phloem.resolve()
    if shutil.which("mpirun") is None or not torch.distributed.is_gloo_available():
        print("skipped: mpirun or PyTorch's gloo is missing")
        sys.exit(77)
    with tempfile.TemporaryDirectory(prefix="phloem-units-") as name:
        folder = pathlib.Path(name)
        prepare(folder, options)
        train(options, folder, "first", "sgd", 1e-30, 1, ["train.max_steps=1"])
        rounds = run_rounds(folder, options)
        found = [compare(kind, rounds, train(options, folder, "one", kind, RATES[kind], 1)) for kind in RATES]
        wrong = largest_difference(rounds[0]["sgd"][0], rounds[0]["adam"][2])
        assert wrong > MOST_DIFFERENCE, "control: another optimizer would pass"
    if options.json:
        options.json.write_text(json.dumps(found, indent=2) + "\n", encoding="ascii")
    sys.exit(0 if all(figure["difference"] <= figure["limit"] for figure in found) else 1)


if __name__ == "__main__":
    main()
