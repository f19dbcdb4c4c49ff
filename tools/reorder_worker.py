#!/usr/bin/env python3
"""The part "work" of reorder_rounds.sh: steps of trainings whose gradients or histograms ranks on several hosts sum, by
software that knows nothing of Phloem.

    reorder_worker.py RACKS FOLDER ROUNDS

RACKS is the folder of tests/support/shaped_racks.sh; FOLDER has lists of machines, an address and a port a line, one for each
rank: torch.found, lightgbm.found, and interleaved and grouped for both. Prints lines

    work ROUND torch VARIANT SECONDS SHARE     of a step by gloo; share of the AllReduce
    work ROUND lightgbm VARIANT SECONDS        of a tree
"""
import ctypes
import os
import pathlib
import signal
import statistics
import sys
import time

import lightgbm
import numpy
import torch
import torch.distributed as distributed

STEPS, SEED = 6, 7
FIRST_PORT, PATIENCE = 12400, 120  # seconds of a rank


def torch_rank(rank, machines):
    torch.set_num_threads(1)
    torch.manual_seed(SEED)
    os.environ.update(MASTER_ADDR=machines[0][0], MASTER_PORT=machines[0][1], GLOO_SOCKET_IFNAME="wire")
    distributed.init_process_group("gloo", rank=rank, world_size=len(machines))
    model = torch.nn.Sequential(torch.nn.Linear(512, 1024), torch.nn.ReLU(), torch.nn.Linear(1024, 512), torch.nn.ReLU(),
                                torch.nn.Linear(512, 1))
    optimizer = torch.optim.SGD(model.parameters(), lr=0.01)
    torch.manual_seed(SEED + rank)
    batch, labels = torch.randn(64, 512), torch.rand(64, 1).round()
    steps, sums = [], []
    for _ in range(1 + STEPS):
        began = time.monotonic()
        optimizer.zero_grad()
        torch.nn.functional.binary_cross_entropy_with_logits(model(batch), labels).backward()
        gradients = torch.cat([parameter.grad.flatten() for parameter in model.parameters()])
        summed = time.monotonic()
        distributed.all_reduce(gradients)
        sums.append(time.monotonic() - summed)
        at = 0
        for parameter in model.parameters():
            parameter.grad.copy_(gradients[at:at + parameter.numel()].view_as(parameter) / len(machines))
            at += parameter.numel()
        optimizer.step()
        steps.append(time.monotonic() - began)
    distributed.barrier()
    seconds = statistics.median(steps[1:])  # the first step warms up
    return f"{seconds:.4f} {statistics.median(sums[1:]) / seconds:.3f}"


def lightgbm_rank(rank, machines):
    random = numpy.random.default_rng(SEED + rank)
    rows = random.standard_normal((2000, 256)).astype("float32")
    labels = (rows[:, 0] + rows[:, 1] * rows[:, 2] + random.standard_normal(2000) > 0).astype("float32")
    ends = []
    parameters = {"objective": "binary", "tree_learner": "data", "num_machines": len(machines),
                  "machines": ",".join(map(":".join, machines)), "local_listen_port": int(machines[rank][1]),
                  "num_leaves": 7, "max_bin": 255, "verbosity": -1,
                  "num_threads": 1, "pre_partition": True, "enable_bundle": False}
    lightgbm.train(parameters, lightgbm.Dataset(rows, labels), num_boost_round=1 + STEPS,
                   callbacks=[lambda _: ends.append(time.monotonic())])
    return f"{statistics.median(after - before for before, after in zip(ends, ends[1:])):.4f}"


PROGRAMS = {"torch": torch_rank, "lightgbm": lightgbm_rank}


def enter(host):
    """Joins the namespaces of a host, by the number of a process there."""
    libc = ctypes.CDLL(None, use_errno=True)
    for kind in ("net", "uts"):
        with open(f"/proc/{host}/ns/{kind}", encoding="ascii") as namespace:
            if libc.setns(namespace.fileno(), 0) != 0:
                raise OSError(ctypes.get_errno(), "setns")


def be_rank(program, rank, machines, host, result):
    """Runs a rank in a child, which ends with it."""
    signal.alarm(PATIENCE)
    os.dup2(os.open(os.devnull, os.O_WRONLY), 1)
    try:
        enter(host)
        text = PROGRAMS[program](rank, machines)
        if rank == 0:
            os.write(result, text.encode())
        os._exit(0)
    except BaseException as error:  # a child must not go on as its parent
        print(f"{program}, rank {rank}: {error}", file=sys.stderr, flush=True)
        os._exit(1)


def run(program, machines, hosts):
    """Runs all ranks; returns what rank 0 says."""
    result, end = os.pipe()
    children = []
    for rank, (address, _) in enumerate(machines):
        child = os.fork()
        if child == 0:
            be_rank(program, rank, machines, hosts[address], end)
        children.append(child)
    os.close(end)
    with os.fdopen(result, encoding="ascii") as said:
        text = said.read()
    if any([os.waitpid(child, 0)[1] for child in children]):
        sys.exit(f"{program} failed")
    return text


def read_machines(folder, program, variant, port):
    """Ports are not used twice: the system keeps those of connections that were closed."""
    path = folder / (f"{program}.found" if variant == "found" else variant)
    return [(line.split()[0], str(port)) for line in path.read_text(encoding="utf-8").splitlines()]


def main():
    racks, folder, rounds = pathlib.Path(sys.argv[1]), pathlib.Path(sys.argv[2]), int(sys.argv[3])
    hosts = {}
    for path in racks.glob("address*"):
        name = path.name.replace("address", "host")
        hosts[name] = hosts[path.read_text(encoding="ascii").strip()] = (racks / name).read_text(encoding="ascii").strip()
    port = FIRST_PORT
    for number in range(rounds):
        for program in PROGRAMS:
            for variant in ("interleaved", "grouped", "found"):
                port += 1
                print(f"work {number + 1} {program} {variant}", run(program, read_machines(folder, program, variant, port), hosts),
                      flush=True)


if __name__ == "__main__":
    main()
