#!/usr/bin/env python3
"""Parquet to the standard input of phloem, as CSV with a header, a batch of rows at a time.

usage: parquet_to_phloem.py [--columns NAME,NAME...] [--list-separator C] [--batch-rows N] PATH...
       parquet_to_phloem.py day_0.parquet | phloem prepare job.yaml --set data.train=- --out prepared

A PATH is a file, or a folder of *.parquet files, which are taken in the order of their names; all must have the same
columns. Memory holds one batch, never a file. Null and NaN become blank, true and false 1 and 0, times
"2014-10-21 05:30:00", and the items of a list are joined by the list separator (data.list_separator), nulls left out.
Needs pyarrow. Ends with 2 for wrong arguments and 3 for data that cannot be written so, saying why in one line.
"""
import argparse
import os
import pathlib
import sys

try:
    import numpy
    import pyarrow
    import pyarrow.parquet
    from pyarrow import compute, csv
except ImportError as missing:
    print(f"parquet_to_phloem.py: {missing}: it needs pyarrow and numpy", file=sys.stderr)
    sys.exit(2)


class BadData(Exception):
    """What the data lacks, in one line."""


def arguments():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("paths", nargs="+", metavar="PATH", help="a Parquet file, or a folder of them")
    parser.add_argument("--columns", metavar="NAME,NAME...", help="only these, in this order")
    parser.add_argument("--list-separator", default="|", metavar="C", help="between the items of a list")
    parser.add_argument("--batch-rows", type=int, default=65536, metavar="N", help="rows in memory at once")
    return parser.parse_args()


def files_of(paths):
    for text in paths:
        path = pathlib.Path(text)
        if not path.is_dir():
            yield path
            continue
        found = sorted(path.rglob("*.parquet"))
        if not found:
            raise BadData(f"{text}: the folder has no .parquet file")
        yield from found


def text_of(array):
    """The array's values as text, without NaN."""
    if pyarrow.types.is_dictionary(array.type):
        array = array.dictionary_decode()
    if pyarrow.types.is_boolean(array.type):
        array = array.cast(pyarrow.int8())
    if pyarrow.types.is_floating(array.type):
        array = compute.if_else(compute.is_nan(array), pyarrow.scalar(None, array.type), array)
    if pyarrow.types.is_timestamp(array.type):
        array = compute.floor_temporal(array, unit="second").cast(pyarrow.timestamp("s", array.type.tz))
    return array.cast(pyarrow.string())


def is_list(kind):
    return (pyarrow.types.is_list(kind) or pyarrow.types.is_large_list(kind)
            or pyarrow.types.is_fixed_size_list(kind))


def joined(array, separator, name):
    """Lists as one text each; a null list and an empty one are blank."""
    parents = compute.list_parent_indices(array)
    items = text_of(compute.list_flatten(array))
    is_kept = items.is_valid()
    parents, items = parents.filter(is_kept).to_numpy(), items.filter(is_kept)
    if compute.any(compute.match_substring(items, separator)).as_py():
        raise BadData(f"column '{name}': an item holds '{separator}', which separates items")
    counts = numpy.bincount(parents, minlength=len(array))
    offsets = pyarrow.array(numpy.concatenate([[0], numpy.cumsum(counts)]), pyarrow.int32())
    return compute.binary_join(pyarrow.ListArray.from_arrays(offsets, items), separator)


def cells_of(array, separator, name):
    """A column as text that CSV can hold on one line."""
    cells = joined(array, separator, name) if is_list(array.type) else text_of(array)
    if compute.any(compute.match_substring_regex(cells, "[\r\n]")).as_py():
        raise BadData(f"column '{name}': a value holds a line end")
    return cells


class Output:
    """CSV on standard output, whose columns the first file decides."""

    def __init__(self, options):
        self.options = options
        self.names = options.columns.split(",") if options.columns else None
        self.writer = None

    def open(self, path, names):
        if self.names is None:
            self.names = names
        missing = [name for name in self.names if name not in names]
        if missing:
            raise BadData(f"{path}: has no column '{missing[0]}'")
        if not self.options.columns and len(names) != len(self.names):
            raise BadData(f"{path}: has other columns than the first file")
        if self.writer is None:
            self.schema = pyarrow.schema([(name, pyarrow.string()) for name in self.names])
            self.writer = csv.CSVWriter(
                sys.stdout.buffer, self.schema, write_options=csv.WriteOptions(quoting_style="needed"))

    def write_file(self, path):
        with pyarrow.parquet.ParquetFile(path) as file:
            self.open(path, file.schema_arrow.names)
            for batch in file.iter_batches(self.options.batch_rows, columns=self.names):
                cells = [cells_of(batch.column(name), self.options.list_separator, name) for name in self.names]
                self.writer.write_batch(pyarrow.record_batch(cells, schema=self.schema))

    def close(self):
        if self.writer is not None:
            self.writer.close()
        sys.stdout.buffer.flush()


def main():
    options = arguments()
    output = Output(options)
    path = None
    try:
        for path in files_of(options.paths):
            output.write_file(path)
        output.close()
    except BrokenPipeError:  # phloem has ended, and has said why
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return 3
    except BadData as error:
        print(f"parquet_to_phloem.py: {error}", file=sys.stderr)
        return 3
    except (pyarrow.ArrowException, OSError) as error:
        print(f"parquet_to_phloem.py: {path}: {str(error).splitlines()[0]}", file=sys.stderr)
        return 3
    return 0


if __name__ == "__main__":
    sys.exit(main())
