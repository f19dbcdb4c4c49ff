"""The schema of settings, as the library has it, and configs made of paths, texts and dicts."""
import collections.abc
import ctypes
import functools
import json
import os

from phloem import _library
from phloem._library import Config, UsageError


@functools.cache
def schema():
    """Returns the schema of settings: a list of sections {section, help, keys}; keys are dicts {key, type, default, range,
    help, may_change_on_resume}."""
    return json.loads(_library.text_of("ph_config_schema"))


def default_of(key):
    """Returns the default of a schema's key as a Python value; None: it has none, or must be given."""
    text, kind = key["default"], key["type"]
    if text is None or (text == "" and kind != "text"):
        return () if kind.startswith("list of") and text is not None else None
    if kind == "true or false":
        return text == "true"
    if kind == "integer":
        return int(text)
    if kind == "number":
        return float(text)
    if kind == "list of integers":
        return tuple(int(item) for item in text.split(","))
    return text


def _setting_text(value):
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, (list, tuple)):
        return ",".join(json.dumps(item, ensure_ascii=False) if isinstance(item, str) else str(item) for item in value)
    return str(value) if not isinstance(value, float) else repr(value)


def sets_of(settings):
    """Returns the texts key=value of a dict of settings by their whole names, such as {"train.epochs": 3}."""
    return [f"{key}={_setting_text(value)}" for key, value in (settings or {}).items() if value is not None]


def _without_none(value):
    if isinstance(value, collections.abc.Mapping):
        return {str(key): _without_none(item) for key, item in value.items() if item is not None}
    if isinstance(value, (list, tuple)):
        return [_without_none(item) for item in value]
    return value.item() if hasattr(value, "item") else os.fspath(value) if isinstance(value, os.PathLike) else value


def text_of(config):
    """Returns a config as (text, name): of a path (text None), a text of YAML, or a dict."""
    if config is None:
        return "", "config"
    if isinstance(config, collections.abc.Mapping):
        try:
            return json.dumps(_without_none(config), ensure_ascii=False, allow_nan=False), "config"
        except (TypeError, ValueError) as problem:
            raise UsageError(f"config: {problem}: use texts, numbers, booleans, lists and dicts") from problem
    if isinstance(config, os.PathLike):
        return None, os.fspath(config)
    if isinstance(config, str):
        return (config, "config") if "\n" in config or ":" in config and not os.path.exists(config) else (None, config)
    raise UsageError(f"config must be a path, a text of YAML or a dict, not {type(config).__name__}")


def read(config, sets):
    """Reads a config into the library's object."""
    text, name = text_of(config)
    values = (ctypes.c_char_p * len(sets))(*[value.encode() for value in sets])
    made = Config()
    _library.call("ph_config_from_text", None if text is None else text.encode(), name.encode(), values,
                  ctypes.c_size_t(len(sets)), ctypes.byref(made))
    return made
