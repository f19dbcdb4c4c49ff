#!/usr/bin/env python3
"""PyTorch's DistributedDataParallel through the parameter hub (examples/hub/torch_ddp_hook.py) learns what it learns by
its own AllReduce, bit for bit where it has two workers; and what hub_torch.txt says, which is the same training written
with NumPy, in double and without any communication. A worker that dies ends the backward pass of the others.

usage: hub_torch_check.py SOURCE_DIR LIBPHLOEM_HUB
       hub_torch_check.py --write        prints what hub_torch.txt holds

Skips (77) where PyTorch or NumPy is not importable.
"""
import os
import pathlib
import subprocess
import sys

try:
    import numpy as np
except ImportError as missing:
    print(f"skipped: {missing}")
    sys.exit(77)

WORKERS, STEPS, ROWS, INPUTS, UNITS, RATE, MOMENTUM = 2, 20, 16, 8, 16, 0.1, 0.9
TOLERANCE = 2e-5  # relative: twenty steps in fp32


# ---- the oracle ----


def first_parameters():
    """Of Linear, Tanh, Linear: weight (UNITS, INPUTS), bias, weight (1, UNITS), bias."""
    shapes = [(UNITS, INPUTS), (UNITS,), (1, UNITS), (1,)]
    return [0.5 * np.sin(number + 0.7 * np.arange(np.prod(shape))).reshape(shape)
            for number, shape in enumerate(shapes)]


def rows_of(rank, step):
    x = np.sin(np.arange(ROWS * INPUTS) * (1 + rank) + step).reshape(ROWS, INPUTS)
    return x, x[:, :1] * x[:, 1:2] + x[:, 2:3]


def loss_and_gradients(parameters, x, y):
    w1, b1, w2, b2 = parameters
    hidden = np.tanh(x @ w1.T + b1)
    error = hidden @ w2.T + b2 - y  # (ROWS, 1)
    d_out = 2 * error / len(x)
    d_hidden = d_out @ w2 * (1 - hidden**2)
    return np.mean(error**2), [d_hidden.T @ x, d_hidden.sum(0), d_out.T @ hidden, d_out.sum(0)]


def expected_lines():
    parameters = first_parameters()
    velocities = [np.zeros_like(p) for p in parameters]
    losses = {}
    for step in range(STEPS):
        results = [loss_and_gradients(parameters, *rows_of(rank, step)) for rank in range(WORKERS)]
        for rank in range(WORKERS):
            losses[rank, step] = results[rank][0]
        for i, parameter in enumerate(parameters):
            velocities[i] = MOMENTUM * velocities[i] + sum(gradients[i] for _, gradients in results) / WORKERS
            parameter -= RATE * velocities[i]
    return [f"{rank} {step} {losses[rank, step]:.12f}" for rank in range(WORKERS) for step in range(STEPS)]


# ---- the example ----


def run(example, *arguments):
    finished = subprocess.run([sys.executable, example, *arguments], capture_output=True, text=True, timeout=200)
    if finished.returncode != 0:
        sys.exit(f"{example.name} {' '.join(arguments)} ended with {finished.returncode}:\n{finished.stderr}")
    return sorted(finished.stdout.splitlines())


def losses_of(lines):
    """(rank, step): loss."""
    triples = [line.split() for line in lines if line[0].isdigit()]
    return {(int(rank), int(step)): float(loss) for rank, step, loss in triples}


def check_losses(actual, expected):
    assert actual.keys() == expected.keys(), "other steps than expected"
    for (rank, step), loss in expected.items():
        difference = abs(actual[rank, step] - loss)
        assert difference <= TOLERANCE * loss, f"rank {rank}, step {step}: {actual[rank, step]}, expected {loss}"


# ---- a worker that dies ----


def check_death(example_folder):
    """The other worker of the service has gone: backward() says so."""
    sys.path.insert(0, str(example_folder))
    import torch

    import phloem.hub
    import torch_ddp_hook

    os.environ.setdefault("GLOO_SOCKET_IFNAME", "lo")
    torch.distributed.init_process_group("gloo", store=torch.distributed.HashStore(), rank=0, world_size=1)
    model = torch_ddp_hook.make_model()
    ddp = torch.nn.parallel.DistributedDataParallel(model)
    other = """if True:
        import sys, phloem.hub
        sizes = [int(size) for size in sys.argv[2:]]
        client = phloem.hub.Client(sys.argv[1], "ddp", 1, 1)
        client.init(phloem.hub.Key((size,)) for size in sizes)
        sys.stdin.read()"""  # until this one has joined as well
    with phloem.hub.Server() as server:
        phloem.hub.create_service(server.address, "ddp", 1, 2, is_mean=True)
        sizes = [str(parameter.numel()) for parameter in model.parameters()]
        process = subprocess.Popen([sys.executable, "-c", other, server.address, *sizes], stdin=subprocess.PIPE)
        client = phloem.hub.Client(server.address, "ddp", 1, 0)
        gradients = torch_ddp_hook.HubGradients(client, model.parameters())
        process.stdin.close()
        ddp.register_comm_hook(None, gradients.hook)
        try:
            torch_ddp_hook.train(0, ddp)
            raise AssertionError("a training went on without its other worker")
        except RuntimeError as error:
            assert "worker 1 of service 'ddp' failed" in str(error), error
        finally:
            gradients.close()
            client.close()
            process.wait()
    torch.distributed.destroy_process_group()


def main():
    expected_file = pathlib.Path(__file__).with_name("hub_torch.txt")
    if sys.argv[1:] == ["--write"]:
        print("\n".join(expected_lines()))
        return
    try:
        import torch
    except ImportError as missing:
        print(f"skipped: {missing}")
        sys.exit(77)
    source, library = pathlib.Path(sys.argv[1]).resolve(), pathlib.Path(sys.argv[2]).resolve()
    bindings = source / "bindings" / "python"
    os.environ.update(PYTHONPATH=str(bindings), PYTHONDONTWRITEBYTECODE="1", PHLOEM_HUB_LIBRARY=str(library))
    sys.dont_write_bytecode = True
    sys.path.insert(0, str(bindings))
    expected = losses_of(expected_file.read_text(encoding="utf-8").splitlines())
    check_losses(losses_of(expected_lines()), expected)
    example = source / "examples" / "hub" / "torch_ddp_hook.py"
    for arguments in (["--plian"], ["--plain", "2"]):
        finished = subprocess.run([sys.executable, example, *arguments], capture_output=True, text=True, timeout=200)
        assert finished.returncode == 2 and finished.stderr.startswith("usage: torch_ddp_hook.py"), finished
    through_hub = run(example)
    check_losses(losses_of(through_hub), expected)
    buckets = [line for line in through_hub if "buckets" in line]
    assert buckets == [f"rank {rank} had 3 buckets a step, over shared memory" for rank in range(WORKERS)], buckets
    plain = run(example, "--plain")
    assert [line for line in through_hub if "buckets" not in line] == plain, "the hub's bits are not those of AllReduce"
    check_death(example.parent)
    print(f"{STEPS} steps of torch {torch.__version__} through the hub: the bits of AllReduce, the losses of NumPy")


if __name__ == "__main__":
    main()
