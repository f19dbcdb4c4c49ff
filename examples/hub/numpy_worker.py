#!/usr/bin/env python3
"""Workers that exchange NumPy arrays through a parameter hub: each gives arrays of its own, all get the sums.

usage: numpy_worker.py [NUM_WORKERS]                        workers (3) and a hub, started here
       numpy_worker.py ADDRESS RANK NUM_WORKERS NONCE       one worker at a hub that runs already

Needs NumPy, bindings/python in PYTHONPATH, and libphloem_hub where the loader finds it or at $PHLOEM_HUB_LIBRARY.
"""
import multiprocessing
import sys

import numpy

import phloem.hub

SHAPES = [((300, 70), "float32"), ((11,), "float32"), ((5, 1000), "float16")]
NUM_EXCHANGES = 5


def array_of(rank, exchange, key):
    """Returns the array that a worker pushes. Any worker can compute all of them, and so check the sums."""
    shape, dtype = SHAPES[key]
    return numpy.random.default_rng([rank, exchange, key]).standard_normal(shape).astype(dtype)


def sum_of(num_workers, exchange, key):
    """Returns the sum with the bits of the hub, which adds in fp32, rank 0 first."""
    total = array_of(0, exchange, key).astype(numpy.float32)
    for rank in range(1, num_workers):
        total += array_of(rank, exchange, key)
    return total.astype(SHAPES[key][1])


def work(address, rank, num_workers, nonce):
    phloem.hub.create_service(address, "sums", nonce, num_workers)
    with phloem.hub.Client(address, "sums", nonce, rank) as client:
        client.init(phloem.hub.Key(shape, dtype) for shape, dtype in SHAPES)
        for exchange in range(NUM_EXCHANGES):
            for key in range(len(SHAPES)):
                client.gradient(key)[:] = array_of(rank, exchange, key)
                client.pushpull_start(key)
            for key in range(len(SHAPES)):
                client.wait(key)
                wanted = sum_of(num_workers, exchange, key)
                assert numpy.array_equal(client.parameters(key), wanted), f"exchange {exchange}: key {key} is wrong"
        transport = client.describe()["transport"]
        sys.stdout.write(f"rank {rank} of {num_workers}: {NUM_EXCHANGES} exchanges over {transport}, sums are right\n")
    if rank == 0:
        phloem.hub.destroy_service(address, "sums", nonce)  # when all have left


def run_all_here(num_workers):
    spawning = multiprocessing.get_context("spawn")
    with phloem.hub.Server() as server:
        workers = [spawning.Process(target=work, args=(server.address, rank, num_workers, 1))
                   for rank in range(num_workers)]
        for worker in workers:
            worker.start()
        for worker in workers:
            worker.join()
    return 0 if all(worker.exitcode == 0 for worker in workers) else 1


def main():
    address, numbers = (sys.argv[1], sys.argv[2:]) if len(sys.argv) > 2 else (None, sys.argv[1:] or ["3"])
    is_right = all(number.isdecimal() for number in numbers) and len(numbers) == (1 if address is None else 3)
    if not is_right or (address is None and int(numbers[0]) == 0):
        sys.stderr.write("usage: numpy_worker.py [NUM_WORKERS]\n"
                         "       numpy_worker.py ADDRESS RANK NUM_WORKERS NONCE\n")
        return 2
    if address is None:
        return run_all_here(int(numbers[0]))
    work(address, *map(int, numbers))
    return 0


if __name__ == "__main__":
    sys.exit(main())
