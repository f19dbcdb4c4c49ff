"""Shared by the peers: reads the lines that a benchmark sends, and writes the answers. CONTRIBUTING.md describes both.

A peer is a program of this folder, named after the package that it drives. It imports this before the folder leaves
sys.path.
"""
import ctypes
import gc
import os
import sys

FREE_BYTES_LEFT = 2 << 30  # for gradients, activations and other processes


class Skipped(Exception):
    """A case that the peer cannot run, and why."""


def one_line(error):
    text = str(error).strip() or type(error).__name__
    return " ".join(text.splitlines()[0].split())


def missing(why):
    print(f"missing {one_line(why)}", flush=True)
    sys.exit(0)


def take_over_output():
    """Returns the stream of answers; from here on libraries print to standard error."""
    answers = os.fdopen(os.dup(1), "w", buffering=1)
    os.dup2(2, 1)
    return answers


def give_back_memory():
    """Frees what the allocator keeps of a former case: it would count as taken."""
    gc.collect()
    library = ctypes.CDLL(None)
    if hasattr(library, "MallocExtension_ReleaseFreeMemory"):  # tcmalloc
        library.MallocExtension_ReleaseFreeMemory()
    library.malloc_trim(0)


def free_bytes():
    with open("/proc/meminfo", encoding="ascii") as lines:
        for line in lines:
            if line.startswith("MemAvailable:"):
                return int(line.split()[1]) * 1024
    return sys.maxsize


def refuse_beyond_memory(case, optimizer):
    """Refuses a case that does not fit: a peer killed for its memory might take the bench along."""
    give_back_memory()
    needed = case["tables"] * case["rows"] * case["dim"] * 4 * (2 if optimizer == "adagrad" else 1)
    free = free_bytes() - FREE_BYTES_LEFT
    if needed > free:
        raise Skipped(f"tables and slots take {needed / 2**30:.1f} GiB, and {free / 2**30:.1f} are free")


def answer(case, verb, words):
    if case is None:
        raise Skipped("no case was given")
    return getattr(case, verb)(int(words[0]))


def drop(case):
    """Frees the case's memory; ends its processes where it has any."""
    if hasattr(case, "close"):
        case.close()


def serve(version, make_case):
    """Answers until the end of the input. "case WHAT NAME=VALUE ..." makes make_case(WHAT, {NAME: VALUE}), "end" drops it;
    any other line "VERB COUNT" is a method of the case, and its result the answer."""
    answers = take_over_output()
    print(version, file=answers)
    case = None
    for line in sys.stdin:
        verb, *words = line.split()
        try:
            if verb in ("case", "end"):
                drop(case)  # frees the former case's tables first
                case = None
            if verb == "case":
                case = make_case(words[0], dict(word.split("=", 1) for word in words[1:]))
                print("ready", file=answers)
            elif verb == "end":
                print("ended", file=answers)
            else:
                print(answer(case, verb, words), file=answers)
        except Exception as error:  # anything that the library cannot do on this machine
            print(f"skipped {one_line(error)}", file=answers)
    drop(case)
