#!/usr/bin/env python3
"""The peer of bench_ranks' perceptron: PyTorch's DistributedDataParallel over gloo, a process a rank, one thread each.

    case dense batch=N features=N units=N,N,... ranks=N
    train STEPS      seconds of that many training steps, of the slowest rank
    end

The same layers, ReLU between them, binary cross entropy and Adagrad, on random batches of the bench's size.
Tuning, so that it is not beaten by its defaults: one thread a rank; the fused optimizer; buckets of the fastest of several
sizes, by a trial at the start; gradients that are views of the buckets; a static graph; subnormal numbers flushed to
zero; the loopback interface set for gloo, which otherwise looks up the host's name.

A rank runs this script with the arguments RANK RANKS FILE BATCH FEATURES UNITS; ranks meet at the file.
"""
import os
import pathlib
import sys
import tempfile
import time

import processes
import protocol

sys.path.pop(0)  # this folder, whose files are named after the packages that they import

try:
    import torch
    import torch.distributed
    from torch.nn.parallel import DistributedDataParallel
except ImportError as error:
    protocol.missing(error)

NUM_BATCHES = 4
WARM_UP_STEPS = 5  # followed by as many timed ones in a trial
BUCKETS_MIB = (25, 4, 1)  # PyTorch's own size, and smaller ones that are sent sooner
LEARNING_RATE = 0.01


def make_model(features, units):
    layers = []
    for width in units:
        layers += [torch.nn.Linear(features, width), torch.nn.ReLU()]
        features = width
    return torch.nn.Sequential(*layers, torch.nn.Linear(features, 1))


class Rank:
    """Trains one process's share of each batch."""

    def __init__(self, samples, features, units):
        torch.manual_seed(1)
        self.loss = torch.nn.BCEWithLogitsLoss()
        self.batches = [(torch.rand(samples, features), torch.rand(samples, 1)) for _ in range(NUM_BATCHES)]
        learners = [self.make_learner(features, units, size) for size in BUCKETS_MIB]
        self.model, self.optimizer = min(learners, key=self.try_learner)

    def make_learner(self, features, units, bucket_mib):
        model = DistributedDataParallel(
            make_model(features, units), bucket_cap_mb=bucket_mib, gradient_as_bucket_view=True, static_graph=True
        )
        return model, torch.optim.Adagrad(model.parameters(), lr=LEARNING_RATE, fused=True)

    def try_learner(self, learner):
        """Returns the seconds of the slowest rank, so that all choose the same learner."""
        self.model, self.optimizer = learner
        self.train(WARM_UP_STEPS)
        seconds = torch.tensor(self.train(WARM_UP_STEPS))
        torch.distributed.all_reduce(seconds, torch.distributed.ReduceOp.MAX)
        return seconds.item()

    def train(self, steps):
        torch.distributed.barrier()
        begin = time.perf_counter()
        for step in range(steps):
            inputs, labels = self.batches[step % NUM_BATCHES]
            self.optimizer.zero_grad(set_to_none=True)
            self.loss(self.model(inputs), labels).backward()
            self.optimizer.step()
        return time.perf_counter() - begin


def serve_rank(rank, ranks, meeting, batch, features, units):
    answers = protocol.take_over_output()
    torch.set_flush_denormal(True)
    torch.set_num_threads(1)
    torch.set_num_interop_threads(1)
    torch.distributed.init_process_group("gloo", init_method=f"file://{meeting}", rank=rank, world_size=ranks)
    learner = Rank(batch * (rank + 1) // ranks - batch * rank // ranks, features, units)
    print("ready", file=answers)
    for line in sys.stdin:
        print(learner.train(int(line.split()[1])), file=answers)
    torch.distributed.destroy_process_group()


class Job:
    def __init__(self, options):
        ranks = int(options["ranks"])
        self.folder = tempfile.TemporaryDirectory(prefix="phloem-peer-")
        self.processes = processes.Processes()
        meeting = str(pathlib.Path(self.folder.name) / "meeting")
        environment = {**os.environ, "GLOO_SOCKET_IFNAME": "lo"}
        self.ranks = [
            self.processes.start(
                [
                    *(sys.executable, __file__, str(rank), str(ranks), meeting),
                    *(options["batch"], options["features"], options["units"]),
                ],
                env=environment,
            )
            for rank in range(ranks)
        ]
        try:
            for process in self.ranks:
                self.processes.read(process)
        except protocol.Skipped:
            self.close()
            raise

    def train(self, steps):
        return max(float(words[0]) for words in self.processes.ask(self.ranks, f"train {steps}"))

    def close(self):
        self.processes.close()
        self.folder.cleanup()


def main():
    if not torch.distributed.is_available() or not torch.distributed.is_gloo_available():
        protocol.missing("this PyTorch is built without gloo")
    if len(sys.argv) > 1:
        rank, ranks, meeting, batch, features, units = sys.argv[1:]
        widths = [int(width) for width in units.split(",")]
        serve_rank(int(rank), int(ranks), meeting, int(batch), int(features), widths)
        return
    protocol.serve(f"torch_ranks {torch.__version__} gloo", lambda _, options: Job(options))


main()
