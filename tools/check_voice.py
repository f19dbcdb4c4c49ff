#!/usr/bin/env python3
"""Voice: comments say what something does or is; errors say what is wrong and what to do. CONTRIBUTING.md explains the rules.

usage: check_voice.py [ROOT [ROOM...]]

ROOM limits the check to folders, such as src/hub; without it all of FOLDERS are checked. Prints one line a violation,
"file:line: what is wrong", and ends with 1 when there is any.
"""
import pathlib
import re
import sys

COLUMNS = 110
FOLDERS = ("include", "src", "examples", "bench", "tests/support")

# No comment opens with these: they make a fragment, or a riddle.
FRAGMENT = set("Of By What Whatever Whether Whose Where Wherever Who Whoever Whom Which It Its How When Why".split())
# No comment on a function opens with these either: such a comment begins with a verb (Orders, Returns, Adds).
NO_VERB = FRAGMENT | set("""A About After All An And Any As At Before Behind Below Beside Both But Each Either Every Everything For From
    He Here If In Inside Into Like Many Most No None Not Nothing Nowhere On One Only Or Over Same Several Since So Some Such Than
    That The Their Then There These They This Those Though Through To Two Under Until Up Upon With Within Without You""".split())

# Phrases that have a plain word: what stands in the text, and what to say instead.
PHRASES = [
    (r"\b(?:were|was|is|are) not answered\b", "timed out"),
    (r"\bstands? still\b", "stalled"),
    (r"\bknows? of (?:none|no)\b", "not registered, or has no"),
    (r"\bleaves? together\b", "shut down"),
    (r"\bwhich there (?:is|are) not\b", "unknown"),
    (r"\bis deaf\b", "paused"),
    (r"\bgoes? away\b", "closes, or ends"),
    (r"\b(?:him|himself|he is|he has)\b", "name the process or the caller"),
    (r"\bhears? of\b", "learns, or is told"),
]
ERROR_CALL = re.compile(r"\bph_(?:_)?\w*(?:fail|blame|complain|refuse|warn)\w*\(")
ERROR_RULES = [
    (re.compile(r"^(?!.*did you mean).*\?$"), "an error does not ask: say what to do"),
    (re.compile(r"^(?:is|are|was|were|has|have) "), "an error names its subject"),
    (re.compile(r"^(?:of|by|what|whether|whose|where|it|nobody|somebody|nothing|there) ", re.I), "an error names its subject"),
    (re.compile(r"\bis no\b"), "say 'is not a', and what it should be"),
]
COMMENT = re.compile(r"/\*.*?\*/", re.DOTALL)
STRING = re.compile(r'"((?:[^"\\]|\\.)*)"')
# A function's head behind a comment that fills its lines: a type or macros, a name, and a parenthesis.
FUNCTION = re.compile(r"\n(?:[A-Z_]+(?:\([^)\n]*\))?[ \n])*(?:static |inline |const |struct |enum |unsigned )*\w+[ *]+\w+\((?!\*)")


def words_of(comment):
    """Text of a comment in one line, without its stars and a heading's dashes."""
    lines = [line.strip().lstrip("*").strip() for line in comment[2:-2].strip("*").splitlines()]
    return " ".join(line for line in lines if line)


def comment_problem(words, is_on_function):
    match = re.match(r"([A-Z][a-z']*)\b", words)
    opening = match[1] if match else ""
    if opening in FRAGMENT:
        return f"opens with '{opening}': name the thing, or begin with a verb"
    if is_on_function and opening in NO_VERB:
        return f"a function's comment opens with '{opening}': begin with what it does (Returns, Adds)"
    for phrase, instead in PHRASES:
        match = re.search(phrase, words)
        if match:
            return f"'{match[0]}': {instead}"
    return None


def comment_problems(text):
    for match in COMMENT.finditer(text):
        line = text.count("\n", 0, match.start()) + 1
        begins_line = text[text.rfind("\n", 0, match.start()) + 1 : match.start()] == ""
        problem = comment_problem(words_of(match[0]), begins_line and FUNCTION.match(text, match.end()) is not None)
        if problem:
            yield line, problem
        for offset, piece in enumerate(match[0].splitlines()):
            if offset == 0:
                piece = text.splitlines()[line - 1]
            if len(piece) > COLUMNS and " " in piece.strip():
                yield line + offset, f"a comment of {len(piece)} columns; there are {COLUMNS}"


def error_texts(text):
    """Line and text of the first literal of each call that reports an error: adjacent literals are one."""
    for match in ERROR_CALL.finditer(text):
        end = text.find(";", match.end())
        call = text[match.end() : end]
        first = STRING.search(call)
        if not first:
            continue
        joined, at = first[1], first.end()
        while (following := re.compile(r'\s*(?:PRI\w+\s*)?"((?:[^"\\]|\\.)*)"').match(call, at)):
            joined, at = joined + following[1], following.end()
        yield text.count("\n", 0, match.start()) + 1, joined


def error_problems(text):
    for line, words in error_texts(text):
        for rule, problem in ERROR_RULES:
            if rule.search(words):
                yield line, f'"{words}": {problem}'
                break
        for phrase, instead in PHRASES:
            if re.search(phrase, words):
                yield line, f'"{words}": {instead}'


def main():
    root = pathlib.Path(sys.argv[1] if len(sys.argv) > 1 else ".")
    problems = []
    for folder in sys.argv[2:] or FOLDERS:
        for path in sorted((root / folder).rglob("*.[ch]")):
            text = path.read_text(encoding="utf-8")
            found = sorted([*comment_problems(text), *error_problems(text)])
            problems += [f"{path.relative_to(root)}:{line}: {what}" for line, what in found]
    print("\n".join(problems) if problems else "voice: fine")
    return 1 if problems else 0


if __name__ == "__main__":
    sys.exit(main())
