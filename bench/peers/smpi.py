#!/usr/bin/env python3
"""The peer of the simulated network: SimGrid's SMPI, which runs the same schedules of messages on the same links.

    case ALGORITHM platform=FILE ranks=N bytes=N send_us=X receive_us=X eager=BYTES ranks_per_host=N host_us=X host_rate=X
    run COUNT    simulated seconds of a schedule, from the common start to the last rank's end, COUNT times
    took COUNT   seconds of this machine's time that the latest simulation took, COUNT times

A platform file has hosts h0, h1, ..., with ranks_per_host ranks each, whose own messages take host_us
microseconds and have host_rate bytes a second each. It needs smpicc and smpirun (Debian: libsimgrid-dev).

SMPI's own model of TCP is switched off, so that both simulate the same network: no factors of bandwidth and latency by size,
no share that depends on the round-trip time beyond SMPI's own (network/weight-S), no window (network/TCP-gamma), no
traffic of acknowledgements. Messages below `eager` bytes leave at once; longer ones wait for the receiver. SMPI sends them
then; the request to send, and the answer, which take two more latencies, are a factor of the latency. Its clock has steps of
10 ns: with finer ones flows that begin together may be taken one by one, and an AlltoAll takes up to a fifth longer.
"""
import pathlib
import shutil
import subprocess
import tempfile
import time

import processes
import protocol

SOURCES = processes.HERE.parent.parent / "src"
SCHEDULES = str(SOURCES / "preload" / "schedules.c")
FIXED = [
    "--log=root.thresh:critical",
    *("--cfg=network/model:SMPI", "--cfg=network/weight-S:0", "--cfg=network/TCP-gamma:1e12", "--cfg=network/crosstraffic:0"),
    *("--cfg=smpi/simulate-computation:no", "--cfg=smpi/os:0:0:0", "--cfg=smpi/wtime:0", "--cfg=smpi/init:0"),
    *("--cfg=smpi/host-speed:1f", "--cfg=smpi/bw-factor:0:1", "--cfg=surf/precision:1e-8"),
]
START_US = 1e6


def find_version(smpirun):
    if smpirun is None or shutil.which("smpicc") is None:
        protocol.missing("SMPI is not there: libsimgrid-dev")
    text = subprocess.run([smpirun, "-version"], capture_output=True, text=True, check=False).stdout
    for word in text.split():
        if word[:1].isdigit() and "." in word:
            return word.rstrip(",")
    return "?"


class Schedule:
    def __init__(self, smpirun, player, algorithm, options):
        self.ranks = int(options["ranks"])
        per_host = int(options["ranks_per_host"])
        self.folder = tempfile.TemporaryDirectory(prefix="phloem-peer-")
        hosts = pathlib.Path(self.folder.name) / "hosts"
        hosts.write_text("".join(f"h{rank // per_host}\n" for rank in range(self.ranks)), encoding="ascii")
        eager = options["eager"]
        messages = [
            *(f"--cfg=smpi/ois:0:{float(options['send_us']) * 1e-6}:0", f"--cfg=smpi/or:0:{float(options['receive_us']) * 1e-6}:0"),
            *(f"--cfg=smpi/send-is-detached-thresh:{eager}", f"--cfg=smpi/async-small-thresh:{eager}"),
            f"--cfg=smpi/lat-factor:0:1;{eager}:3",
            *(f"--cfg=network/loopback-lat:{float(options['host_us']) * 1e-6}", f"--cfg=network/loopback-bw:{options['host_rate']}"),
        ]
        launch = [smpirun, "-np", str(self.ranks), "-platform", options["platform"], "-hostfile", str(hosts), "-no-privatize"]
        words = f"{algorithm}:grouped:{options['bytes']}"
        self.command = [*launch, *FIXED, *messages, player.path, "1", str(START_US), "1", words]
        self.seconds = 0.0

    def close(self):
        self.folder.cleanup()

    def run(self, count):
        return " ".join(self.run_once() for _ in range(count))

    def run_once(self):
        began = time.monotonic()
        done = subprocess.run(self.command, capture_output=True, text=True, check=False, stdin=subprocess.DEVNULL)
        self.seconds = time.monotonic() - began
        if done.returncode != 0 or not done.stdout.split():
            raise protocol.Skipped(f"smpirun ended with {done.returncode}: {done.stderr[-200:]}")
        return done.stdout.split()[-1]

    def took(self, count):
        return " ".join([f"{self.seconds:.3f}"] * count)


def main():
    smpirun = shutil.which("smpirun")
    version = find_version(smpirun)
    player = processes.Driver("schedule_player.c", ["smpicc", "-std=gnu17", f"-I{SOURCES}"], [SCHEDULES])
    protocol.serve(f"smpi {version}", lambda algorithm, options: Schedule(smpirun, player, algorithm, options))


main()
