#!/usr/bin/env python3
"""The examples of docs/PYTHON.md work: its blocks of Python, in one program.

usage: python_docs_check.py SOURCE LIBPHLOEM PHLOEM

Skips (77) where pandas, pyarrow or scikit-learn is not importable.
"""
import os
import pathlib
import re
import sys
import tempfile

try:
    import pandas
    import pyarrow
    import sklearn
except ImportError as missing:
    print(f"skipped: {missing}")
    sys.exit(77)


def main():
    source, library, program = (pathlib.Path(argument).resolve() for argument in sys.argv[1:])
    os.environ.update(PHLOEM_LIBRARY=str(library), PHLOEM_PROGRAM=str(program))
    sys.dont_write_bytecode = True
    sys.path.insert(0, str(source / "bindings" / "python"))
    page = (source / "docs" / "PYTHON.md").read_text()
    blocks = re.findall(r"^```python\n(.*?)^```", page, re.M | re.S)
    assert len(blocks) >= 5, "the page has lost its examples"
    names = {}
    with tempfile.TemporaryDirectory() as folder:
        os.chdir(folder)
        for block in blocks:
            exec(compile(block, "docs/PYTHON.md", "exec"), names)
        assert names["run"].metrics["valid"]["auc"] > 0.6
        assert set(names["search"].best_params_) == {"learning_rate"}
        os.chdir("/")
    print(f"{len(blocks)} examples work (pandas {pandas.__version__}, pyarrow {pyarrow.__version__}, "
          f"scikit-learn {sklearn.__version__})")


if __name__ == "__main__":
    main()
