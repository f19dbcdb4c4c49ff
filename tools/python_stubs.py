#!/usr/bin/env python3
"""Writes the type stubs of the package phloem: the signatures and docs that it has when it runs, those of Classifier from the
schema of settings, with the types that this script knows.

usage: python_stubs.py LIBPHLOEM           writes bindings/python/phloem/__init__.pyi and hub.pyi
       python_stubs.py LIBPHLOEM --check ROOT
                                           ends with 1 where those of the tree ROOT are not what it would write

Skips (77) where NumPy or scikit-learn is not importable.
"""
import ast
import ctypes
import dataclasses
import enum
import inspect
import os
import pathlib
import sys

try:
    import numpy
    import sklearn
except ImportError as missing:
    print(f"skipped: {missing}")
    sys.exit(77)

BINDINGS = pathlib.Path(__file__).resolve().parent.parent / "bindings" / "python"
HEAD = "# Made by tools/python_stubs.py; do not edit.\n"
HEADS = {"phloem": HEAD + """import os
import pathlib
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any, Literal, Protocol, TextIO

import numpy
from numpy.typing import NDArray
from sklearn.base import BaseEstimator, ClassifierMixin

from phloem import hub as hub

class _Frame(Protocol):
    def __arrow_c_stream__(self, requested_schema: object | None = None) -> object: ...

class _Sparse(Protocol):
    def tocsr(self) -> Any: ...

_Path = str | os.PathLike[str]
_Rows = _Path | _Frame | _Sparse | Mapping[Any, Any] | Callable[[], Any]
_Config = _Path | Mapping[str, Any] | None
_Callback = Callable[[dict[str, Any]], object]
_Set = Mapping[str, Any] | None
__version__: str
""", "phloem.hub": HEAD + """import ctypes
import enum
import os
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any, Literal

import numpy
from numpy.typing import NDArray

_Text = str | bytes | os.PathLike[str]
_DType = Literal["float32", "float16", "bfloat16"]
"""}

# Types by the parameter's name, or by function.parameter; those of results and properties by their whole names.
TYPES = {
    "config": "_Config", "configs": "Iterable[_Config]", "out": "_Path | None", "set": "_Set", "resume": "bool",
    "seeds": "int | Sequence[int]", "callbacks": "Iterable[_Callback] | _Callback", "label": "str | Sequence[str]",
    "fields": "str | Sequence[Mapping[str, Any]] | None",
    "progress": "bool | None", "rows": "_Rows", "folder": "_Path", "threads": "int", "feature": "str", "ids": "Iterable[Any]",
    "world": "int", "what": "_Path", "event": "dict[str, Any]", "stream": "TextIO | None", "early_stopping": "bool | None",
    "validation_fraction": "float", "X": "Any", "y": "Any", "sample_weight": "Any", "eval_set": "tuple[Any, Any] | None",
    "train.train": "_Rows | None", "train.valid": "_Rows | None", "train.test": "_Rows | None", "compare.out": "_Path",
    "tune.out": "_Path", "temporary": "Any",
    "ProgressLine.is_wanted": "bool", "ProgressLine.__call__": "None", "default_fields": "str", "train": "Run", "load": "Model",
    "compare": "dict[str, Any]", "tune": "dict[str, Any]", "plan": "str", "inspect": "str", "schema": "list[dict[str, Any]]",
    "Run.summary": "dict[str, Any]", "Run.metrics": "dict[str, Any]", "Run.history": "list[dict[str, Any]]",
    "Run.report": "pathlib.Path", "Run.model": "Model", "Run.predict": "NDArray[numpy.float32]", "Run.evaluate": "Any",
    "Model.columns": "list[str]", "Model.predict": "NDArray[numpy.float32]", "Model.evaluate": "Any",
    "Model.state_dict": "dict[str, NDArray[Any]]", "Model.embedding": "NDArray[numpy.float32]", "Classifier.fit": "Classifier",
    "Classifier.predict": "NDArray[Any]", "Classifier.predict_proba": "NDArray[numpy.float64]",
    "Classifier.decision_function": "NDArray[numpy.float64]",
    # the hub
    "address": "_Text", "name": "_Text", "destroy_service.name": "str", "service": "str", "nonce": "int", "num_workers": "int",
    "rank": "int", "optimizers": "Iterable[Optimizer] | None", "options": "Any",
    "create_service.options": "Mapping[str, Any] | None",
    "settings": "Any", "members": "Any", "status": "Status", "text": "str", "shape": "tuple[int, ...]", "dtype": "_DType",
    "initial": "NDArray[Any] | None", "optimizer": "int", "array": "NDArray[Any]", "keys": "Iterable[Key]",
    "key": "int",
    "learning_rate": "float", "Key.of": "Key", "create_service": "None", "destroy_service": "None", "Client.init": "int",
    "Client.gradient": "NDArray[Any]", "Client.parameters": "NDArray[Any]", "Client.test": "bool",
    "Client.describe": "dict[str, Any]",
    **{f"Client.{name}": "None" for name in ("push_start", "pull_start", "pushpull_start", "wait", "wait_all",
                                             "set_learning_rate", "checkpoint", "leave", "close")}, "Server.close": "None",
}
ATTRIBUTES = {"Run": {"folder": "pathlib.Path"}, "Model": {"folder": "pathlib.Path", "num_labels": "int"},
              "ProgressLine": {"stream": "TextIO"}, "HubError": {"status": "Status"},
              "Server": {"address": "str", "metrics_address": "str | None"},
              "Classifier": {"classes_": "NDArray[Any]", "n_features_in_": "int", "feature_names_in_": "NDArray[Any]",
                             "run_": "Run"}}
SHOWN = {"__init__", "__post_init__", "__call__", "__enter__", "__exit__"}  # and what has no underscore
EXIT = "def __exit__(self, error: type[BaseException] | None, *_: object) -> None: ..."


def doc_lines(thing, indent):
    text = inspect.cleandoc(thing.__doc__ or "")
    if not text:
        return []
    quoted = f'"""{text}"""' if not text.endswith('"') else f'"""{text} """'
    return [f"{indent}{line}".rstrip() for line in quoted.replace("\\", "\\\\").split("\n")]


def type_of(qualified, parameter, known):
    found = known.get(parameter) or TYPES.get(f"{qualified}.{parameter}") or TYPES.get(parameter)
    if not found:
        sys.exit(f"python_stubs: add the type of {qualified}.{parameter} to TYPES")
    return found


def function_lines(qualified, function, indent="", known={}):
    """Returns the lines of a function; known: types of parameters in the place of those of TYPES."""
    name = qualified.rsplit(".", 1)[-1]
    if name == "__exit__":
        return [indent + EXIT]
    words, star = [], False
    for parameter in inspect.signature(function).parameters.values():
        word = parameter.name
        if word not in ("self", "cls"):
            word += f": {type_of(qualified, word, known)}"
        if parameter.kind is parameter.KEYWORD_ONLY and not star:
            words.append("*")
            star = True
        if parameter.default is not parameter.empty:
            word += f" = {parameter.default!r}"
        words.append({parameter.VAR_POSITIONAL: "*", parameter.VAR_KEYWORD: "**"}.get(parameter.kind, "") + word)
    special = {"__init__": "None", "__post_init__": "None", "__enter__": qualified.split(".")[0]}
    result = special.get(name) or TYPES.get(qualified)
    if not result:
        sys.exit(f"python_stubs: add what {qualified} returns to TYPES")
    head = f"{indent}def {name}({', '.join(words)}) -> {result}:"
    if len(head) > 128:
        head = f"{indent}def {name}(\n" + "".join(f"{indent}    {word},\n" for word in words) + f"{indent}) -> {result}:"
    docs = doc_lines(function, indent + "    ")
    return [head, *docs] if docs else [head + " ..."]


def member_lines(name, member, class_name, known):
    qualified = f"{class_name}.{name}"
    if isinstance(member, property):
        return ["    @property", f"    def {name}(self) -> {TYPES[qualified]}:", *(doc_lines(member, "        "))]
    if isinstance(member, (staticmethod, classmethod)):
        kind = type(member).__name__
        lines = function_lines(qualified, member.__func__, "    ", known)
        return [f"    @{kind}", *lines]
    if inspect.isfunction(member):
        return function_lines(qualified, member, "    ", known)
    return []


def class_lines(cls, known={}):
    name, docs = cls.__name__, doc_lines(cls, "    ")
    if issubclass(cls, enum.IntEnum):
        return [f"class {name}(enum.IntEnum):", *(f"    {member.name} = {int(member)}" for member in cls)]
    bases = ", ".join(f"ctypes.{base.__name__}" if base is ctypes.Structure else base.__name__ for base in cls.__bases__
                      if base is not object)
    body = [f"    {attribute}: {kind}" for attribute, kind in {**known, **ATTRIBUTES.get(name, {})}.items()]
    if issubclass(cls, ctypes.Structure):
        fields = getattr(cls, "_fields_", [])
        body += [f"    {field}: Any" for field, *_ in fields]
        for inner in getattr(cls, "_anonymous_", ()):
            body += [f"    {field}: Any" for field, *_ in dict(fields)[inner]._fields_]
    if dataclasses.is_dataclass(cls):
        for field in dataclasses.fields(cls):
            default = "" if field.default is dataclasses.MISSING else f" = {field.default!r}"
            body.append(f"    {field.name}: {TYPES[field.name]}{default}")
    if "exit_code" in vars(cls):
        body.append("    exit_code: int")
    for member_name, member in vars(cls).items():
        is_shown = member_name in SHOWN or not member_name.startswith("_")
        if is_shown and not (member_name == "__init__" and dataclasses.is_dataclass(cls)):
            body += member_lines(member_name, member, name, known)
    head = f"class {name}({bases}):" if bases else f"class {name}:"
    head = ("@dataclass\n" if dataclasses.is_dataclass(cls) else "") + head
    return [head, *docs, *body] if docs or body else [head + " ..."]


def classifier_types(phloem):
    """Returns the types of Classifier's parameters by the schema's."""
    from phloem import _classifier
    keys = {f"{section['section']}.{key['key']}".lstrip("."): key for section in phloem.schema() for key in section["keys"]}
    plain = {"integer": "int", "number": "float", "true or false": "bool", "list of integers": "Sequence[int]"}

    def kind_of(key):
        if key["type"] == "choice" and " " not in key["range"].replace(", ", ","):
            return f"Literal[{', '.join(repr(word) for word in key['range'].split(', '))}]"
        return plain.get(key["type"], "str")

    return {name: f"{kind_of(keys[whole])} | None" for name, (whole, _, _) in _classifier.PARAMETERS.items()}


def stub_of(module, names, known):
    lines = []
    for name in names:
        thing = getattr(module, name)
        if inspect.isclass(thing):
            lines += ["", *class_lines(thing, known if name == "Classifier" else {})]
        elif inspect.isfunction(thing) or hasattr(thing, "__wrapped__"):
            lines += ["", *function_lines(name, getattr(thing, "__wrapped__", thing))]
        else:
            lines += [f"{name}: {type(thing).__name__}"]
    return HEADS[module.__name__] + "\n".join(lines) + "\n"


def main():
    os.environ["PHLOEM_LIBRARY"] = str(pathlib.Path(sys.argv[1]).resolve())
    sys.dont_write_bytecode = True
    sys.path.insert(0, str(BINDINGS))
    import phloem
    import phloem.hub
    own = [name for name, thing in vars(phloem.hub).items() if not name.startswith("_")
           and (getattr(thing, "__module__", "") == "phloem.hub" or name.isupper())]
    made = {"__init__.pyi": stub_of(phloem, phloem.__all__, classifier_types(phloem)), "hub.pyi": stub_of(phloem.hub, own, {})}
    root = pathlib.Path(sys.argv[3]) / "bindings" / "python" if "--check" in sys.argv else BINDINGS
    stale = 0
    for name, text in made.items():
        ast.parse(text)
        file = root / "phloem" / name
        if "--check" not in sys.argv:
            file.write_text(text)
        elif not file.exists() or file.read_text() != text:
            print(f"bindings/python/phloem/{name}:1: is not what the package says; make it anew: "
                  "python3 tools/python_stubs.py build/release/libphloem.so")
            stale = 1
    if not stale:
        print("stubs: fine")
    return stale


if __name__ == "__main__":
    sys.exit(main())
