#!/usr/bin/env python3
"""The peer of the hub's benchmarks that has no server: Open MPI's AllReduce of fp32 sums, alone or with a momentum pass.

    case allreduce bytes=N [ranks=2] [transport=shm|tcp] [segment=BYTES] [yield=0|1] [path=ob1|ucx]
    allreduce COUNT  seconds of each of COUNT AllReduces
    training COUNT   two numbers each: seconds of the AllReduce, and of momentum over the whole model, in each rank
    latency COUNT    microseconds of AllReduces in a row, as rank 0 sees them: 50th and 99th percentile
    pingpong COUNT   the same for N bytes from rank 0 to rank 1 and back
    bytes COUNT      two numbers: bytes that crossed the loopback interface for each of COUNT AllReduces, from any
                     process, and the bytes that the ring algorithm sends in all ranks together: 2 (ranks - 1) N
    end

Seconds are those of the slowest rank, from its leaving a barrier. A case is ready when two rounds of training have run.
A case or a measurement with a wrong sum or weight is skipped. Between lines no rank spins (openmpi_allreduce.c).

It needs mpicc and mpirun (Debian: libopenmpi-dev, openmpi-bin). Tuning, with 64 MiB and 2 ranks on 2 processors:
- segment: large AllReduces use the ring algorithm in segments of this many bytes, which Open MPI has but does not choose:
  20 ms instead of 36 over shared memory, 36 instead of 60 over TCP. The defaults were best, 256 KiB and 1 MiB; segment=0
  leaves the choice of the algorithm to Open MPI, as do buffers of one segment;
- shared memory is vader with cross-memory attach, its eager limit raised, so that a message of 4 KiB is eager: its round
  trip takes 2.9 us instead of 3.8. path=ucx is UCX instead, over either transport: no faster, except for these messages,
  2.6 us, so the benchmark tries both;
- TCP: more links, larger buffers and a thread for progress made it no faster; only loopback is used;
- ranks are bound to processors, as Open MPI does by itself, unless there are more ranks than processors; yield=1 (or 0)
  makes an idle rank yield its processor (or not), which Open MPI otherwise decides by the number of ranks;
- buffers are in huge pages and touched beforehand.
"""
import os
import shutil
import subprocess

import processes
import protocol

WARM_UP_ROUNDS = 2
TRANSPORTS = {
    "shm": ["--mca", "btl", "self,vader", "--mca", "btl_vader_eager_limit", "8192"],
    "tcp": ["--mca", "btl", "self,tcp", "--mca", "btl_tcp_if_include", "lo"],
}
UCX = {  # the transports, by UCX's names
    "shm": ["-x", "UCX_TLS=self,sm"],
    "tcp": ["-x", "UCX_TLS=self,tcp", "-x", "UCX_NET_DEVICES=lo"],
}
SEGMENT_BYTES = {"shm": 256 << 10, "tcp": 1 << 20}
SEGMENTED_RING = "5"


def find(name):
    """Finds a program of Open MPI, which has a suffix where several MPIs are installed."""
    return shutil.which(f"{name}.openmpi") or shutil.which(name)


def find_version(mpirun):
    if mpirun is None or find("mpicc") is None:
        protocol.missing("Open MPI is not there: openmpi-bin and libopenmpi-dev")
    text = subprocess.run([mpirun, "--version"], capture_output=True, text=True, check=False).stdout
    words = protocol.one_line(text).split()
    if len(words) < 3 or not words[1].startswith("(Open"):  # "(Open MPI)", "(OpenRTE)"
        protocol.missing(f"{mpirun} is not Open MPI's")
    return words[-1]


def allreduce_options(num_bytes, segment):
    if segment == 0 or num_bytes <= segment:
        return []
    return [
        *("--mca", "coll_tuned_use_dynamic_rules", "1"),
        *("--mca", "coll_tuned_allreduce_algorithm", SEGMENTED_RING),
        *("--mca", "coll_tuned_allreduce_algorithm_segmentsize", str(segment)),
    ]


def path_options(transport, path):
    if path == "ob1":
        return ["--mca", "pml", "ob1", *TRANSPORTS[transport]]
    if path == "ucx":
        # By default Open MPI uses UCX for network cards alone.
        anyhow = ["--mca", "opal_common_ucx_tls", "any", "--mca", "opal_common_ucx_devices", "any"]
        return ["--mca", "pml", "ucx", *anyhow, *UCX[transport]]
    raise protocol.Skipped(f"unknown path {path}")


def launch_options(options, ranks):
    launch = ["-n", str(ranks), "--oversubscribe"]
    if os.geteuid() == 0:
        launch.append("--allow-run-as-root")
    if ranks > len(os.sched_getaffinity(0)):
        launch += ["--bind-to", "none"]
    if "yield" in options:
        launch += ["--mca", "mpi_yield_when_idle", options["yield"]]
    return launch


class AllReduce:
    def __init__(self, mpirun, driver, options):
        transport = options.get("transport", "shm")
        if transport not in TRANSPORTS:
            raise protocol.Skipped(f"unknown transport {transport}")
        self.num_bytes = int(options["bytes"])
        self.ranks = int(options.get("ranks", 2))
        segment = int(options.get("segment", SEGMENT_BYTES[transport]))
        self.processes = processes.Processes()
        self.root = self.processes.start(
            [
                mpirun,
                *launch_options(options, self.ranks),
                *path_options(transport, options.get("path", "ob1")),
                *allreduce_options(self.num_bytes, segment),
                *(driver.path, str(self.num_bytes)),
            ]
        )
        try:
            self.training(WARM_UP_ROUNDS)
        except protocol.Skipped:
            self.close()
            raise

    def close(self):
        self.processes.close()

    def ask(self, verb, count):
        return " ".join(self.processes.ask([self.root], f"{verb} {count}")[0])

    def allreduce(self, count):
        return self.ask("allreduce", count)

    def training(self, count):
        return self.ask("training", count)

    def latency(self, count):
        return self.ask("latency", count)

    def pingpong(self, count):
        if self.ranks < 2:
            raise protocol.Skipped("rank 1 does not exist")
        return self.ask("pingpong", count)

    def bytes(self, count):
        counted = processes.loopback_bytes_of(lambda: self.allreduce(count))
        return f"{counted // count} {2 * (self.ranks - 1) * self.num_bytes}"


def main():
    mpirun = find("mpirun")
    version = find_version(mpirun)
    driver = processes.Driver("openmpi_allreduce.c", [find("mpicc"), "-std=gnu17"], [])
    protocol.serve(f"openmpi {version}", lambda _, options: AllReduce(mpirun, driver, options))


main()
