#!/usr/bin/env python3
"""The peer of the hub's benchmarks that is a parameter server too: ps-lite over ZeroMQ, all processes on this host.

    case pushpull bytes=N [workers=2] [chunk=BYTES] [transport=tcp|ipc]
    pushpull COUNT   seconds of each of COUNT rounds: push all keys, pull them updated by momentum
    latency COUNT    microseconds of rounds in a row, as a worker sees them: 50th and 99th percentile
    bytes COUNT      two numbers: bytes that crossed the loopback interface for each of COUNT rounds, from any process, and
                     the bytes of gradients and weights: 2 workers N
    end

Seconds are those of the slowest worker, from its leaving a barrier. A case is ready when two rounds have run. A case or
a measurement with a wrong weight is skipped. Between lines no thread spins (pslite_pushpull.cc).

ps-lite is not part of this tree. Build it against the distribution's ZeroMQ and protobuf (Debian 12):

    apt-get install git g++ make libzmq3-dev libprotobuf-dev protobuf-compiler
    git clone https://github.com/dmlc/ps-lite
    git -C ps-lite checkout 15b8adf17e9871ff6112c80e4b290fa38c2b4656
    make -C ps-lite ps DEPS_PATH=/usr PROTOC=protoc
    export PHLOEM_BENCH_PSLITE=$PWD/ps-lite

DEPS_PATH names the folder of its dependencies: nothing else is downloaded. The driver is compiled against ps-lite's
include/ and build/libps.a.

Tuning, with 64 MiB and 2 workers on 2 processors:
- chunk: 1 MiB, the default, was best, with 256 KiB to 4 MiB within a sixth of it; 32 KiB takes twice the time;
- transport=ipc is ps-lite's DMLC_LOCAL, Unix sockets: 15 to 20% less time than TCP, and the nearest it has to shared memory;
- push and pull are one request a key, nothing is copied that ps-lite does not copy, a worker waits once for all keys, and
  the server sums and updates a key in one pass (pslite_pushpull.cc);
- the allocator, by bench/peer.c: glibc that keeps large blocks, or tcmalloc; by glibc's defaults it takes twice the time;
- a higher water mark (DMLC_PS_WATER_MARK), the van "p3", huge pages in the allocator: no faster, so left alone;
- gradients and weights are in huge pages and touched beforehand.
"""
import contextlib
import os
import pathlib
import socket
import stat
import subprocess

import processes
import protocol

WARM_UP_ROUNDS = 2
HOST = "127.0.0.1"
TRANSPORTS = {"tcp": "0", "ipc": "1"}  # values of DMLC_LOCAL


def find_built():
    named = os.environ.get("PHLOEM_BENCH_PSLITE")
    if not named:
        protocol.missing("$PHLOEM_BENCH_PSLITE names no built ps-lite: pslite.py says how to build it")
    folder = pathlib.Path(named).resolve()
    for part in ("include/ps/ps.h", "build/libps.a"):
        if not (folder / part).is_file():
            protocol.missing(f"$PHLOEM_BENCH_PSLITE has no {part}")
    return folder


def find_revision(folder):
    command = ["git", "-C", str(folder), "rev-parse", "--short", "HEAD"]
    with contextlib.suppress(OSError):
        result = subprocess.run(command, capture_output=True, text=True, check=False)
        if result.returncode == 0:
            return result.stdout.strip()
    return "of unknown revision"


def socket_path(port):
    """Returns where ps-lite puts the Unix socket of a port; it removes a file there, and leaves its own."""
    return pathlib.Path(f"/tmp/{port}")


def free_ports(count):
    """Returns ports that ps-lite's TCP and Unix sockets can use without taking another program's."""
    found = []
    with contextlib.ExitStack() as stack:
        while len(found) < count:
            taken = stack.enter_context(socket.socket())
            taken.bind((HOST, 0))
            port = taken.getsockname()[1]
            if not socket_path(port).exists():
                found.append(port)
    return found


class PushPull:
    def __init__(self, driver, options):
        transport = options.get("transport", "tcp")
        if transport not in TRANSPORTS:
            raise protocol.Skipped(f"unknown transport {transport}")
        self.num_bytes = int(options["bytes"])
        self.num_workers = int(options.get("workers", 2))
        chunk = min(int(options.get("chunk", 1 << 20)), self.num_bytes)
        self.processes = processes.Processes()
        roles = ["scheduler", "server"] + ["worker"] * self.num_workers
        self.ports = free_ports(len(roles))
        shared = self.environment(TRANSPORTS[transport])
        started = [
            self.processes.start(
                [driver.path, str(self.num_bytes), str(chunk)], env={**shared, "DMLC_ROLE": role, "PORT": str(port)}
            )
            for role, port in zip(roles, self.ports)
        ]
        self.workers = started[2:]
        try:
            self.pushpull(WARM_UP_ROUNDS)
        except protocol.Skipped:
            self.close()
            raise

    def environment(self, is_local):
        others = {name: value for name, value in os.environ.items() if not name.startswith(("DMLC_", "PS_"))}
        return {
            **others,
            "DMLC_NUM_WORKER": str(self.num_workers),
            "DMLC_NUM_SERVER": "1",
            "DMLC_PS_ROOT_URI": HOST,
            "DMLC_PS_ROOT_PORT": str(self.ports[0]),
            "DMLC_NODE_HOST": HOST,
            "DMLC_LOCAL": is_local,
        }

    def close(self):
        self.processes.close()
        for path in map(socket_path, self.ports):
            with contextlib.suppress(OSError):
                if stat.S_ISSOCK(path.lstat().st_mode):
                    path.unlink()

    def pushpull(self, count):
        rounds = zip(*self.processes.ask(self.workers, f"pushpull {count}"))
        return " ".join(max(seconds, key=float) for seconds in rounds)

    def latency(self, count):
        return " ".join(self.processes.ask(self.workers, f"latency {count}")[0])

    def bytes(self, count):
        counted = processes.loopback_bytes_of(lambda: self.pushpull(count))
        return f"{counted // count} {2 * self.num_workers * self.num_bytes}"


def main():
    folder = find_built()
    libraries = [str(folder / "build" / "libps.a"), "-lprotobuf-lite", "-lzmq", "-pthread"]
    compiler = ["g++", "-std=gnu++17", "-isystem", str(folder / "include")]
    driver = processes.Driver("pslite_pushpull.cc", compiler, libraries)
    protocol.serve(f"pslite {find_revision(folder)}", lambda _, options: PushPull(driver, options))


main()
