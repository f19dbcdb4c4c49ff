#!/usr/bin/env python3
"""The examples of docs/PYTHON.md work: its blocks of Python, in one program; and the notebooks of examples/python, cell by cell.

usage: python_docs_check.py SOURCE LIBPHLOEM PHLOEM

Skips (77) where pandas, pyarrow or scikit-learn is not importable.
"""
import ast
import json
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


def run_notebook(path):
    """Runs the cells in one namespace, with what a notebook shows of each last expression; returns the namespace."""
    notebook, names, shown = json.loads(path.read_text()), {}, 0
    assert notebook["nbformat"] == 4
    for number, cell in enumerate(notebook["cells"]):
        if cell["cell_type"] != "code":
            continue
        assert not cell["outputs"] and cell["execution_count"] is None, f"{path.name}: cell {number}: clear the outputs"
        tree, where = ast.parse("".join(cell["source"])), f"{path.name}, cell {number}"
        last = tree.body.pop() if isinstance(tree.body[-1], ast.Expr) else None
        exec(compile(tree, where, "exec"), names)
        if last:
            value = eval(compile(ast.Expression(last.value), where, "eval"), names)
            text = value._repr_html_() if hasattr(value, "_repr_html_") else repr(value)
            shown += value is not None and bool(text)
    assert shown >= 3, shown
    return names


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
        notebook = run_notebook(source / "examples" / "python" / "click_model.ipynb")
        assert notebook["run"].metrics["test"]["auc"] > 0.75 and "<iframe" in notebook["run"]._repr_html_()
        assert notebook["search"].best_params_ == {"learning_rate": 0.003}
        os.chdir("/")
    print(f"{len(blocks)} examples and a notebook work (pandas {pandas.__version__}, pyarrow {pyarrow.__version__}, "
          f"scikit-learn {sklearn.__version__})")


if __name__ == "__main__":
    main()
