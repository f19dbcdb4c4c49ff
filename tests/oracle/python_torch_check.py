#!/usr/bin/env python3
"""Phloem and PyTorch train in one process, whichever is imported first, one after the other and at the same time, and Phloem ends
in the bits that it has without PyTorch.

usage: python_torch_check.py [SOURCE LIBPHLOEM PHLOEM]

Without arguments the installed package is looked at. Skips (77) where PyTorch is not importable.
"""
import importlib.util
import os
import pathlib
import subprocess
import sys

CHILD = """
import sys, threading

def by_phloem():
    import numpy, phloem
    rng = numpy.random.default_rng(1)
    x, city = rng.normal(size=8000), rng.integers(0, 50, 8000)
    rows = {"label": (x + numpy.sin(city) > 0).astype(numpy.int64), "x": x, "city": city}
    config = {"threads": 2, "model": {"kind": "dlrm", "embedding_dim": 8, "bottom_units": [32], "top_units": [64, 32]},
              "train": {"epochs": 3, "batch_size": 200}}
    run = phloem.train(config, rows, rows)
    assert 0.8 < run.metrics["valid"]["auc"] <= 1, run.metrics
    return run.summary["checkpoint_sha256"]

def by_torch():
    import torch
    torch.set_num_threads(2)
    torch.manual_seed(1)
    x = torch.randn(4000, 16)
    y = (x.sum(1, keepdim=True) > 0).float()
    net = torch.nn.Sequential(torch.nn.Linear(16, 256), torch.nn.ReLU(), torch.nn.Linear(256, 1))
    optimizer = torch.optim.Adam(net.parameters(), 0.01)
    for _ in range(60):
        optimizer.zero_grad()
        loss = torch.nn.functional.binary_cross_entropy_with_logits(net(x), y)
        loss.backward()
        optimizer.step()
    assert loss.item() < 0.2, loss

sums = []
for step in sys.argv[1].split(","):
    threads = [threading.Thread(target=lambda word=word: by_torch() if word == "torch" else sums.append(by_phloem()))
               for word in step.split("+")]
    if len(threads) == 1:
        by_torch() if step == "torch" else sums.append(by_phloem())
        continue
    wanted = len(sums) + step.count("phloem")
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert len(sums) == wanted, "a thread failed"
libraries = {line.split()[-1] for line in open("/proc/self/maps") if "/" in line}
print(*sums, "openmp:", *sorted(path for path in libraries if path.rsplit("/")[-1].startswith(("libgomp", "libomp", "libiomp"))))
"""
ORDERS = ["phloem", "torch,phloem,torch+phloem", "phloem,torch,phloem+torch", "torch+phloem+phloem"]


def main():
    if not importlib.util.find_spec("torch"):
        print("skipped: PyTorch is not importable")
        return 77
    environment = {name: value for name, value in os.environ.items() if name != "OMP_WAIT_POLICY"}
    if len(sys.argv) > 1:
        source, library, program = (pathlib.Path(argument).resolve() for argument in sys.argv[1:])
        environment.update(PYTHONPATH=str(source / "bindings" / "python"), PHLOEM_LIBRARY=str(library),
                           PHLOEM_PROGRAM=str(program), PYTHONDONTWRITEBYTECODE="1")
    wanted = None
    for order in ORDERS:
        ended = subprocess.run([sys.executable, "-c", CHILD, order], env=environment, capture_output=True, text=True, timeout=250)
        assert ended.returncode == 0, f"{order}: {ended.returncode}\n{ended.stderr}"
        sums, runtimes = ended.stdout.split("openmp:")
        assert len(runtimes.split()) < 2, f"{order}: several OpenMP runtimes: {runtimes}"
        assert len(sys.argv) > 1 or order != "phloem" or not runtimes.split(), f"the package brings {runtimes}"
        wanted = wanted or set(sums.split())
        assert set(sums.split()) == wanted, f"{order}: {sums} are not {wanted}"
    print("Phloem's bits are the same without PyTorch, beside it, before it and after it")
    return 0


if __name__ == "__main__":
    sys.exit(main())
