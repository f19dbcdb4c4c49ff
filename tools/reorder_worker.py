#!/usr/bin/env python3
"""A rank of reorder_rounds.sh work: steps of a training whose gradients or histograms other ranks sum, by software that knows
nothing of Phloem.

    reorder_worker.py torch RANK MACHINES_FILE       gloo; prints, on rank 0, seconds a step and the share of them that the
                                                     AllReduce takes
    reorder_worker.py lightgbm RANK MACHINES_FILE    prints, on rank 0, seconds a tree

MACHINES_FILE has an address and a port a line, one for each rank.
"""
import os
import statistics
import sys
import time

STEPS, SEED = 6, 7


def torch_rank(rank, machines):
    import torch
    import torch.distributed as distributed
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
    if rank == 0:  # the first step warms up
        print(f"{statistics.median(steps[1:]):.4f} {statistics.median(sums[1:]) / statistics.median(steps[1:]):.3f}")
    distributed.barrier()


def lightgbm_rank(rank, machines):
    import lightgbm
    import numpy
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
    if rank == 0:
        print(f"{statistics.median(after - before for before, after in zip(ends, ends[1:])):.4f}")


def main():
    kind, rank, path = sys.argv[1:]
    with open(path, encoding="utf-8") as file:
        machines = [line.split() for line in file]
    {"torch": torch_rank, "lightgbm": lightgbm_rank}[kind](int(rank), machines)


if __name__ == "__main__":
    main()
