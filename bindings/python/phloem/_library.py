"""Finds and loads the shared library, once a process."""
import ctypes
import functools
import os
import pathlib

LIBRARY = "libphloem.so.0"


def path_of(variable, fallback):
    """Returns the library to load: the file that the environment's variable names, else the wheel's own, else the fallback,
    which the loader looks for."""
    own = pathlib.Path(__file__).parent / "lib" / "libphloem.so"
    return os.environ.get(variable) or (str(own) if own.exists() else fallback)


@functools.cache
def library():
    loaded = ctypes.CDLL(path_of("PHLOEM_LIBRARY", LIBRARY))
    loaded.ph_version.restype = ctypes.c_char_p
    return loaded
