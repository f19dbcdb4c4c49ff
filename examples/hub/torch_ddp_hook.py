#!/usr/bin/env python3
"""A communication hook for PyTorch's DistributedDataParallel that averages gradients through a parameter hub, and a
training of two processes that uses it. Prints "rank step loss" lines and a digest of the weights.

usage: torch_ddp_hook.py             workers and a hub, started here
       torch_ddp_hook.py --plain     the same training by DDP's own AllReduce, over gloo

Needs PyTorch and NumPy, bindings/python in PYTHONPATH, and libphloem_hub where the loader finds it or at
$PHLOEM_HUB_LIBRARY. To reuse it: copy HubGradients alone; its service has as many workers as DDP has.
"""
import collections
import gc
import hashlib
import os
import queue
import sys
import tempfile
import threading

import numpy
import torch
import torch.distributed
import torch.multiprocessing

import phloem.hub

NUM_WORKERS, NUM_STEPS, NUM_ROWS, NUM_INPUTS, NUM_UNITS = 2, 20, 16, 8, 16


class HubGradients:
    """Averages the DDP buckets of all workers.

    A client belongs to one thread, and DDP calls hook() in the thread of the backward pass, which must not wait. So a
    thread of its own has the client: it starts to exchange a bucket when that is full, while the backward pass goes on
    to fill the next, and waits only when the last one is on its way. Each parameter is a key: DDP makes its buckets
    anew after the first step, parameters stay.
    """

    def __init__(self, client, parameters):
        self._client = client
        self._key_of = {parameter: key for key, parameter in enumerate(parameters)}
        client.init(phloem.hub.Key(tuple(p.shape), str(p.dtype).removeprefix("torch.")) for p in self._key_of)
        self.num_buckets = 0  # in the last backward pass
        self._filled = queue.SimpleQueue()  # buckets, then None
        self._thread = threading.Thread(target=self._exchange_all)
        self._thread.start()

    def hook(self, _state, bucket):
        """Exchanges a bucket; pass it to DistributedDataParallel.register_comm_hook."""
        self.num_buckets = bucket.index() + 1
        done = torch.futures.Future()
        keys = [self._key_of[parameter] for parameter in bucket.parameters()]
        self._filled.put((keys, bucket.gradients(), bucket.buffer(), bucket.is_last(), done))
        return done.then(lambda future: future.value())  # raises an exception that is set on `done`

    def close(self):
        self._filled.put(None)
        self._thread.join()

    def _exchange_all(self):
        begun = collections.deque()
        for keys, gradients, buffer, is_last, done in iter(self._filled.get, None):
            begun.append((keys, gradients, buffer, done))
            try:
                self._begin(keys, gradients)
                while begun and (is_last or self._has_come(begun[0][0])):
                    self._finish(*begun[0])
                    begun.popleft()
            except Exception as error:  # whatever it is, the backward pass shall hear of it
                for *_, waiting in begun:
                    waiting.set_exception(error)
                begun.clear()

    def _begin(self, keys, gradients):
        for key, gradient in zip(keys, gradients):
            numpy.copyto(self._client.gradient(key), gradient.numpy())
            self._client.pushpull_start(key)

    def _has_come(self, keys):
        return all(self._client.test(key) for key in keys)

    def _finish(self, keys, gradients, buffer, done):
        for key, gradient in zip(keys, gradients):  # which lie in the buffer
            self._client.wait(key)
            numpy.copyto(gradient.numpy(), self._client.parameters(key))
        done.set_result(buffer)


def make_model():
    """A small network that starts with the same weights everywhere: sines."""
    model = torch.nn.Sequential(
        torch.nn.Linear(NUM_INPUTS, NUM_UNITS), torch.nn.Tanh(), torch.nn.Linear(NUM_UNITS, 1))
    with torch.no_grad():
        for number, parameter in enumerate(model.parameters()):
            values = 0.5 * numpy.sin(number + 0.7 * numpy.arange(parameter.numel()))
            parameter.copy_(torch.from_numpy(values).reshape(parameter.shape))
    return model


def rows_of(rank, step):
    x = numpy.sin(numpy.arange(NUM_ROWS * NUM_INPUTS) * (1 + rank) + step).reshape(NUM_ROWS, NUM_INPUTS)
    y = x[:, :1] * x[:, 1:2] + x[:, 2:3]
    return torch.from_numpy(x).float(), torch.from_numpy(y).float()


def train(rank, ddp):
    optimizer = torch.optim.SGD(ddp.parameters(), lr=0.1, momentum=0.9)
    losses = []
    for step in range(NUM_STEPS):
        x, y = rows_of(rank, step)
        loss = torch.nn.functional.mse_loss(ddp(x), y)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        losses.append(loss.item())
    return losses


def train_through_hub(rank, ddp, address):
    phloem.hub.create_service(address, "ddp", 1, NUM_WORKERS, is_mean=True)
    with phloem.hub.Client(address, "ddp", 1, rank) as client:
        gradients = HubGradients(client, ddp.parameters())
        try:
            ddp.register_comm_hook(None, gradients.hook)
            losses = train(rank, ddp)
        finally:
            gradients.close()
        transport = client.describe()["transport"]
    if rank == 0:
        phloem.hub.destroy_service(address, "ddp", 1)  # when all have left
    sys.stdout.write(f"rank {rank} had {gradients.num_buckets} buckets a step, over {transport}\n")
    return losses


def run(rank, address):
    ddp = torch.nn.parallel.DistributedDataParallel(make_model(), bucket_cap_mb=0.00006)  # three buckets
    losses = train(rank, ddp) if address is None else train_through_hub(rank, ddp, address)
    digest = hashlib.sha256(b"".join(p.detach().numpy().tobytes() for p in ddp.parameters())).hexdigest()
    lines = [f"{rank} {step} {loss:.9g}\n" for step, loss in enumerate(losses)]
    sys.stdout.write("".join(lines) + f"rank {rank} has learnt {digest}\n")


def work(rank, address, folder):
    os.environ.setdefault("GLOO_SOCKET_IFNAME", "lo")  # all workers are on this host
    torch.set_num_threads(1)
    torch.distributed.init_process_group(
        "gloo", init_method=f"file://{folder}/store", rank=rank, world_size=NUM_WORKERS)
    run(rank, address)
    gc.collect()  # a DDP that is left over keeps threads of gloo, which may abort a process at its end
    torch.distributed.destroy_process_group()


def main():
    if sys.argv[1:] not in ([], ["--plain"]):
        sys.stderr.write("usage: torch_ddp_hook.py [--plain]\n")
        return 2
    with tempfile.TemporaryDirectory() as folder:
        if sys.argv[1:] == ["--plain"]:
            torch.multiprocessing.spawn(work, (None, folder), NUM_WORKERS)
        else:
            with phloem.hub.Server() as server:
                torch.multiprocessing.spawn(work, (server.address, folder), NUM_WORKERS)
    return 0


if __name__ == "__main__":
    sys.exit(main())
