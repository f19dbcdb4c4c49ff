"""Phloem for Python: trains, evaluates and serves recommendation models from any DataFrame.

    run = phloem.train({"model": {"kind": "dlrm"}}, train=frame, valid=other, label="click")
    run.metrics, run.predict(frame), run.report

docs/PYTHON.md is the manual; phloem.hub is the parameter hub's client.
"""
import importlib

_PLACES = {"train": "_train", "Run": "_train", "ProgressLine": "_train", "default_fields": "_train", "load": "_model",
           "Model": "_model", "compare": "_program", "tune": "_program", "plan": "_program", "inspect": "_program",
           "schema": "_settings", "Classifier": "_classifier"}
_PLACES |= {name: "_library" for name in ("Error", "UsageError", "ConfigError", "DataError", "DivergedError", "CheckpointError",
                                          "ResourceError", "OutOfMemoryError", "PeerError", "Terminated")}
__all__ = [*_PLACES]


def __getattr__(name):  # read when asked for, so that phloem.hub needs libphloem_hub alone
    if name in _PLACES:
        globals()[name] = getattr(importlib.import_module(f"phloem.{_PLACES[name]}"), name)
        return globals()[name]
    if name == "__version__":
        from phloem._library import library
        return library().ph_version().decode()
    raise AttributeError(f"module 'phloem' has no attribute '{name}'")


def __dir__():
    return [*__all__, "__version__", "hub"]
