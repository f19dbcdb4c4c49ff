"""What the peers share: the lines that a benchmark sends, and the answers. CONTRIBUTING.md describes both.

A peer is a program of this folder, named after the package that it drives. Imported before the folder leaves sys.path.
"""
import os
import sys


class Skipped(Exception):
    """A case that the peer cannot run, and why."""


def one_line(error):
    text = str(error).strip() or type(error).__name__
    return " ".join(text.splitlines()[0].split())


def missing(why):
    print(f"missing {one_line(why)}", flush=True)
    sys.exit(0)


def take_over_output():
    """The stream of answers; whatever libraries print goes to standard error from here on."""
    answers = os.fdopen(os.dup(1), "w", buffering=1)
    os.dup2(2, 1)
    return answers


def answer(case, verb, words):
    if case is None:
        raise Skipped("there is no case")
    return getattr(case, verb)(int(words[0]))


def serve(version, make_case):
    """Answers until the end of the input. "case FOLDER NAME=VALUE ..." makes make_case(FOLDER, {NAME: VALUE}), "end" drops
    it; any other line "VERB COUNT" is a method of the case, and its result the answer."""
    answers = take_over_output()
    print(version, file=answers)
    case = None
    for line in sys.stdin:
        verb, *words = line.split()
        try:
            if verb == "case":
                case = None  # frees the former one's tables first
                case = make_case(words[0], dict(word.split("=", 1) for word in words[1:]))
                print("ready", file=answers)
            elif verb == "end":
                case = None
                print("ended", file=answers)
            else:
                print(answer(case, verb, words), file=answers)
        except Exception as error:  # whatever the library cannot do on this machine
            print(f"skipped {one_line(error)}", file=answers)
