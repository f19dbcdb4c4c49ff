"""Shared by the peers that are programs of their own: compiles their driver, runs its processes, and sends them lines."""
import contextlib
import pathlib
import select
import subprocess
import tempfile
import time

import protocol

HERE = pathlib.Path(__file__).resolve().parent
ENDING_SECONDS = 10
FLAGS = ["-O3", "-march=native", "-ffp-contract=off", "-Wall", "-Wextra"]


class Driver:
    """A source file of this folder, compiled into a temporary folder that is removed with this object."""

    def __init__(self, source, compiler, libraries):
        self.folder = tempfile.TemporaryDirectory(prefix="phloem-peer-")
        self.path = str(pathlib.Path(self.folder.name) / pathlib.Path(source).stem)
        command = [*compiler, *FLAGS, str(HERE / source), *libraries, "-o", self.path]
        try:
            result = subprocess.run(command, capture_output=True, text=True, check=False)
        except OSError as error:
            protocol.missing(error)
        if result.returncode != 0:
            told = [line for line in result.stderr.splitlines() if "error" in line or "undefined" in line]
            protocol.missing(f"{source} cannot be compiled: {(told or [result.stderr])[0]}")


class Processes:
    """Processes of one case. They answer a line with a line; when one of them ends early, so does the case."""

    def __init__(self):
        self.all = []

    def start(self, command, **settings):
        process = subprocess.Popen(
            command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True, bufsize=1, **settings
        )
        self.all.append(process)
        return process

    def ask(self, processes, line):
        """Sends a line to processes that work on it together. Returns their answers, each a list of words."""
        try:
            for process in processes:
                process.stdin.write(f"{line}\n")
        except BrokenPipeError:
            raise protocol.Skipped("one of its processes ended") from None
        answers = [self.read(process).split() for process in processes]
        if any("wrong" in words for words in answers):
            raise protocol.Skipped("its results are wrong")
        return answers

    def read(self, process):
        """Returns the process's next line, which may take long; none comes when it waits for another one that has ended."""
        is_readable = False
        while not is_readable and all(other.poll() is None for other in self.all):
            is_readable = bool(select.select([process.stdout], [], [], 1.0)[0])
        line = process.stdout.readline() if is_readable else ""
        if not line:
            raise protocol.Skipped("one of its processes ended")
        return line

    def close(self):
        """Ends the orders, at which the processes end by themselves, unless one of them has failed."""
        for process in self.all:
            with contextlib.suppress(BrokenPipeError):
                process.stdin.close()
        has_failed = any(process.poll() not in (None, 0) for process in self.all)
        deadline = time.monotonic() + (0 if has_failed else ENDING_SECONDS)
        for process in self.all:
            try:
                process.wait(max(0, deadline - time.monotonic()))
            except subprocess.TimeoutExpired:
                process.terminate()
                process.wait()
            process.stdout.close()
        self.all = []


def loopback_bytes():
    """Returns the bytes that the machine has sent to itself so far."""
    with open("/proc/net/dev", encoding="ascii") as lines:
        for line in lines:
            interface, _, counters = line.partition(":")
            if interface.strip() == "lo":
                return int(counters.split()[8])
    return 0


def loopback_bytes_of(action):
    before = loopback_bytes()
    action()
    return loopback_bytes() - before
