"""Phloem for Python: trains, evaluates and serves recommendation models (phloem.hub: the parameter hub)."""
from phloem._library import library


def __getattr__(name):  # read when asked for, so that phloem.hub needs libphloem_hub alone
    if name == "__version__":
        return library().ph_version().decode()
    raise AttributeError(f"module 'phloem' has no attribute '{name}'")
