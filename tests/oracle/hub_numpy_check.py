#!/usr/bin/env python3
"""The parameter hub over bindings/python against NumPy: the sums of examples/hub/numpy_worker.py, optimizers written
once more in double, and what a caller of Python is promised: errors are exceptions, arrays are the client's memory.

usage: hub_numpy_check.py SOURCE_DIR LIBPHLOEM_HUB

Skips (77) where NumPy is not importable.
"""
import concurrent.futures
import os
import pathlib
import subprocess
import sys
import tempfile

try:
    import numpy as np
except ImportError as missing:
    print(f"skipped: {missing}")
    sys.exit(77)

RATE, MOMENTUM, BETA1, BETA2, EPSILON, L2, DECAY = 0.05, 0.9, 0.9, 0.99, 1e-6, 0.01, 0.02
STEPS, SIZE = 12, 1000
TOLERANCE = 2e-5  # of a step, in fp32


def check_example(source):
    example = source / "examples" / "hub" / "numpy_worker.py"
    finished = subprocess.run([sys.executable, example, "3"], capture_output=True, text=True, timeout=200)
    if finished.returncode != 0:
        sys.exit(f"numpy_worker.py ended with {finished.returncode}:\n{finished.stderr}")
    wanted = [f"rank {rank} of 3: 5 exchanges over shared memory, sums are right" for rank in range(3)]
    assert sorted(finished.stdout.splitlines()) == wanted, finished.stdout
    for arguments in (["0"], ["three"], ["-1"], ["1", "2"], ["127.0.0.1:1", "x", "2", "77"], ["127.0.0.1:1", "0", "2"]):
        finished = subprocess.run([sys.executable, example, *arguments], capture_output=True, text=True, timeout=200)
        assert finished.returncode == 2 and finished.stderr.startswith("usage: numpy_worker.py"), (arguments, finished)


# ---- optimizers ----


def sgd(w, g, _state, _step):
    return w - RATE * g


def momentum(w, g, state, _step):
    state["m"] = MOMENTUM * state.get("m", 0) + g
    return w - RATE * state["m"]


def nesterov(w, g, state, _step):
    state["m"] = MOMENTUM * state.get("m", 0) + g
    return w - RATE * (g + MOMENTUM * state["m"])


def adagrad(w, g, state, _step):
    state["s"] = state.get("s", 0) + g * g
    return w - RATE * g / (np.sqrt(state["s"]) + EPSILON)


def adam(w, g, state, step):
    state["m"] = BETA1 * state.get("m", 0) + (1 - BETA1) * g
    state["s"] = BETA2 * state.get("s", 0) + (1 - BETA2) * g * g
    return w - RATE * state["m"] / (1 - BETA1**step) / (np.sqrt(state["s"] / (1 - BETA2**step)) + EPSILON)


def adamw(w, g, state, step):
    return adam(w, g, state, step) - RATE * DECAY * w


def optimizers(hub):
    """(name, struct ph_hub_optimizer, step in double)"""
    kind, adam_like = hub.OptimizerKind, {"learning_rate": RATE, "beta1": BETA1, "beta2": BETA2, "epsilon": EPSILON}
    heavy = {"kind": kind.MOMENTUM, "learning_rate": RATE, "momentum": MOMENTUM}
    return [("sgd", hub.Optimizer(kind=kind.SGD, learning_rate=RATE, l2=L2),
             lambda w, g, state, step: sgd(w, g + L2 * w, state, step)),
            ("momentum", hub.Optimizer(**heavy), momentum),
            ("nesterov", hub.Optimizer(is_nesterov=True, **heavy), nesterov),
            ("adagrad", hub.Optimizer(kind=kind.ADAGRAD, learning_rate=RATE, epsilon=EPSILON), adagrad),
            ("adam", hub.Optimizer(kind=kind.ADAM, **adam_like), adam),
            ("adamw", hub.Optimizer(kind=kind.ADAMW, weight_decay=DECAY, **adam_like), adamw)]


def gradient_of(step, key):
    return np.random.default_rng([step, key]).standard_normal(SIZE).astype(np.float32)


def check_optimizers(hub, address, transport, transport_name):
    """One service with all of them, a key each."""
    all_of_them = optimizers(hub)
    service = f"optimizers over {transport_name}"
    hub.create_service(address, service, 1, 1, [struct for _, struct, _ in all_of_them])
    first = np.linspace(-1, 1, SIZE, dtype=np.float32)
    with hub.Client(address, service, 1, 0, transport=transport) as client:
        assert client.describe()["transport"] == transport_name
        client.init(hub.Key.of(first, optimizer) for optimizer in range(len(all_of_them)))
        wanted = [first.astype(np.float64) for _ in all_of_them]
        states = [{} for _ in all_of_them]
        for step in range(1, STEPS + 1):
            for key, (_, _, take_step) in enumerate(all_of_them):
                client.gradient(key)[:] = gradient = gradient_of(step, key)
                client.pushpull_start(key)
                wanted[key] = take_step(wanted[key], gradient.astype(np.float64), states[key], step)
            client.wait_all()
            for key, (name, _, _) in enumerate(all_of_them):
                difference = np.abs(client.parameters(key) - wanted[key]).max()
                assert difference < TOLERANCE, f"{name}, step {step}: off by {difference}"


# ---- promises ----


def fails(hub, status, text, call, *arguments, **options):
    try:
        call(*arguments, **options)
    except hub.HubError as error:
        assert error.status == status and text in str(error), f"{error.status!r}: {error}"
        return
    raise AssertionError(f"'{text}' was expected")


def check_version(hub):
    """Another version of the library than the module is for."""
    version, hub.API_VERSION = hub.API_VERSION, hub.API_VERSION + 1
    try:
        with hub.Server():
            raise AssertionError("a library of another version was taken")
    except ImportError as error:
        assert f"has version {version} of the hub's interface" in str(error), error
    hub.API_VERSION = version


def check_errors(hub, address):
    hub.create_service(address, "errors", 1, 1)
    hub.create_service(address, "errors", 1, 1)
    usage = hub.Status.ERROR_USAGE
    fails(hub, usage, "another nonce", hub.create_service, address, "errors", 2, 1)
    fails(hub, hub.Status.ERROR_PEER, "service 'other' does not exist", hub.Client, address, "other", 1, 0)
    fails(hub, usage, "rank 1 of 1 workers", hub.Client, address, "errors", 1, 1)
    client = hub.Client(address, "errors", 1, 0)
    fails(hub, usage, "key 0 does not exist", client.gradient, 0)
    fails(hub, usage, "after ph_hub_init", hub._call, "parameters", client._handle(), 0)
    client.init([hub.Key((4,))])
    fails(hub, usage, "key -1 does not exist", client.parameters, -1)
    fails(hub, usage, "key 7 does not exist", hub._call, "gradient", client._handle(), 7)
    client.pushpull_start(0)
    fails(hub, usage, "are under way", client.pushpull_start, 0)
    client.wait(0)
    hub.destroy_service(address, "errors", 1)
    client.pushpull_start(0)
    fails(hub, hub.Status.ERROR_PEER, "", client.wait, 0)
    client.close()
    client.close()
    fails(hub, usage, "is closed", client.wait, 0)
    for wrong in (lambda: hub.Options(adress=address), lambda: hub.Key((1,), "float64")):
        try:
            wrong()
        except TypeError:
            continue
        raise AssertionError("a TypeError was expected")


def check_arrays(hub, address):
    """They lie where the client has them, shaped as their keys; two iterations may be under way with depth 2."""
    first = np.arange(6, dtype=np.float16).reshape(2, 3)
    hub.create_service(address, "arrays", 1, 1, depth=2)
    with hub.Client(address, "arrays", 1, 0, has_own_parameters=True) as client:
        assert client.init([hub.Key.of(first), hub.Key((3,), "bfloat16")]) == 0
        assert np.array_equal(client.parameters(0), first) and client.parameters(0).dtype == np.float16
        assert client.parameters(1).dtype == np.uint16
        addresses = []
        for number in (1, 2):
            client.gradient(0)[:] = number
            addresses.append(client.gradient(0).ctypes.data)
            client.pushpull_start(0)
        client.wait(0)
        assert np.all(client.parameters(0) == 1)
        client.wait(0)
        assert np.all(client.parameters(0) == 2) and client.parameters(0).flags.writeable
        assert client.gradient(0).ctypes.data == addresses[0] != addresses[1]
    hub.create_service(address, "shared", 1, 1)
    with hub.Client(address, "shared", 1, 0) as client:
        client.init([hub.Key((3,))])
        assert not client.parameters(0).flags.writeable


def check_bfloat16(hub):
    """Against the nearest of all numbers that there are; bits as they are; nothing that would lose its value unseen."""
    def bits_of(values):
        return hub.Key(values.shape, "bfloat16", values)._to_c()[1].ravel()

    all_bits = np.arange(0x7F80, dtype=np.uint16)  # finite, from 0 on
    assert np.array_equal(bits_of(all_bits), all_bits)
    numbers = (all_bits.astype(np.uint32) << 16).view(np.float32).astype(np.float64)
    middles = (numbers[:-1] + numbers[1:]) / 2  # exact in double
    even = all_bits[:-1] + (all_bits[:-1] & 1)
    for sign, bit in ((1, 0), (-1, 0x8000)):
        assert np.array_equal(bits_of(sign * numbers), all_bits | bit)
        assert np.array_equal(bits_of((sign * numbers).astype(np.float32)), all_bits | bit)
        assert np.array_equal(bits_of(sign * middles), even | bit)
        assert np.array_equal(bits_of(sign * np.nextafter(middles, 0)), all_bits[:-1] | bit)
        assert np.array_equal(bits_of(sign * np.nextafter(middles, np.inf)), all_bits[1:] | bit)
        infinite = np.array([np.inf, 1e300, 3.4e38 * 1.01]) * sign
        assert np.all(bits_of(infinite) == 0x7F80 | bit), bits_of(infinite)
    assert np.all(bits_of(np.array([np.nan, -np.nan], np.float32)) & 0x7FFF > 0x7F80)
    assert bits_of(np.array([1.5], np.float16)) == 0x3FC0
    for wrong in (np.arange(3), np.array([True]), np.arange(3, dtype=np.int16)):
        try:
            bits_of(wrong)
        except TypeError:
            continue
        raise AssertionError(f"{wrong.dtype} was taken for bfloat16")
    try:
        import ml_dtypes
    except ImportError:
        print("without ml_dtypes: no array of its bfloat16")
        return
    array = numbers.astype(ml_dtypes.bfloat16)
    key = hub.Key.of(array)
    assert key.dtype == "bfloat16" and np.array_equal(key._to_c()[1], all_bits)


def check_ends(hub, address):
    """What nobody uses any more is closed: a client when its arrays are gone, too, and a hub that was never entered."""
    hub.create_service(address, "ends", 1, 1)
    client = hub.Client(address, "ends", 1, 0)
    client.init([hub.Key((4,))])
    end, gradient = client._end, client.gradient(0)
    assert client.describe()["num_workers"] == 1
    del client
    assert end.alive
    gradient[:] = 1
    del gradient
    assert not end.alive
    server = hub.Server()
    end = server._end
    del server
    assert not end.alive


def check_deaths(hub, address):
    """Whoever waits for a worker that has died hears who it was."""
    for nonce in range(50):
        hub.create_service(address, "deaths", nonce, 2)
        clients = [hub.Client(address, "deaths", nonce, rank) for rank in (0, 1)]
        with concurrent.futures.ThreadPoolExecutor() as threads:
            list(threads.map(lambda client: client.init([hub.Key((1000,))]), clients))
        clients[0].pushpull_start(0)
        clients[1].close()
        fails(hub, hub.Status.ERROR_PEER, "worker 1 of service 'deaths' failed", clients[0].wait, 0)
        clients[0].close()
        hub.destroy_service(address, "deaths", nonce)


def check_server(hub, folder):
    """What a hub ends with is raised where it is closed, once; and one that was never entered is closed, too."""
    traces = pathlib.Path(folder, "traces")
    traces.mkdir()
    server = hub.Server(trace_path=traces / "trace.json")
    with server:
        traces.rmdir()
        try:
            server.close()
        except hub.HubError as error:
            assert error.status == hub.Status.ERROR_DISK and "trace.json" in str(error), error
        else:
            raise AssertionError("the trace's end was not told")
    server.close()
    fails(hub, hub.Status.ERROR_USAGE, "is closed", server.__enter__)
    kept = hub.Server(checkpoint_folder=folder)
    kept.close()
    with hub.Server(metrics_address="127.0.0.1:0") as server:
        assert server.metrics_address.startswith("127.0.0.1:") and server.metrics_address != "127.0.0.1:0"
    assert kept.metrics_address is None
    with hub.Server(checkpoint_folder=folder):  # which the one before has unlocked
        pass


def check_resumption(hub, folder):
    """A job goes on where its checkpoint is, at another hub over the same folder."""
    for run, begun_at in enumerate([0, 3]):
        with hub.Server(checkpoint_folder=folder) as server:
            hub.create_service(server.address, "kept", 1, 1, [hub.Optimizer(kind=hub.OptimizerKind.SGD, learning_rate=1)])
            client = hub.Client(server.address, "kept", 1, 0)
            assert client.init([hub.Key((5,))]) == begun_at
            for _ in range(3):
                client.gradient(0)[:] = -1
                client.pushpull_start(0)
                client.wait(0)
            assert np.all(client.parameters(0) == begun_at + 3), f"run {run}: {client.parameters(0)}"
            client.checkpoint()
            client.close()


def main():
    source, library = pathlib.Path(sys.argv[1]).resolve(), pathlib.Path(sys.argv[2]).resolve()
    bindings = source / "bindings" / "python"
    os.environ.update(PYTHONPATH=str(bindings), PYTHONDONTWRITEBYTECODE="1", PHLOEM_HUB_LIBRARY=str(library))
    sys.dont_write_bytecode = True
    sys.path.insert(0, str(bindings))
    import phloem.hub

    check_example(source)
    check_version(phloem.hub)
    with phloem.hub.Server() as server:
        check_optimizers(phloem.hub, server.address, phloem.hub.Transport.AUTO, "shared memory")
        check_optimizers(phloem.hub, server.address, phloem.hub.Transport.TCP, "tcp")
        check_errors(phloem.hub, server.address)
        check_arrays(phloem.hub, server.address)
        check_bfloat16(phloem.hub)
        check_ends(phloem.hub, server.address)
        check_deaths(phloem.hub, server.address)
    with tempfile.TemporaryDirectory() as folder:
        check_server(phloem.hub, folder)
        check_resumption(phloem.hub, folder)
    print(f"sums, {len(optimizers(phloem.hub))} optimizers, errors and arrays are as NumPy {np.__version__} has them")


if __name__ == "__main__":
    main()
