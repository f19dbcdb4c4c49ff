#!/usr/bin/env python3
"""The layer rule: a room includes only what its row names, no modules include each other in a circle, no folder is crowded,
and a wrapped library has one door.

usage: check_layers.py [ROOT]

Prints one line a violation, "file:line: what is wrong", and ends with 1 when there is any.
The rooms and their order stand in rooms.py.
"""
import collections
import pathlib
import re
import sys

from rooms import ALLOWED, CROWDED, INCLUDE, MAX_FILES, PUBLIC_ROOM, SUB_ROOMS, circles, modules

WRAPPED = [  # library, its headers, the files that may include them
    ("OpenMP", r"omp\.h", r"src/base/thread/parallel_openmp\.c"),
    ("libyaml", r"yaml\.h", r"src/base/format/yaml\w*\.c"),
    ("jansson", r"jansson\w*\.h", r"src/base/format/json(_parse)?\.c"),
    ("zlib", r"zlib\.h", r"src/base/file/((de)?compress|compress_memory)\.c|tests/unit/base/file/test_stream\w*\.c"),
    ("zstd", r"zstd\w*\.h", r"src/base/file/((de)?compress|compress_memory)\.c|tests/unit/base/file/test_stream\w*\.c"),
    ("OpenSSL", r"openssl/.*", r"src/base/sum/(digest|gmac)\.c"),
    ("xxHash", r"xxh\w*\.h", r"src/base/sum/checksum\.c"),
    ("hwloc", r"hwloc(/.*|\.h)", r"src/hub/layout/placement_hwloc\.c"),
    ("oneDNN", r"(oneapi/.*|dnnl\w*\.h)", r"src/kernel/onednn\.h"),
    ("MPI", r"mpi\w*\.h", r"src/comm/wire/\w*mpi\w*\.c|src/preload/.*|tests/mpi/\w+\.[ch]|bench/peers/(\w*_allreduce|schedule_player)\.c"),
    ("UCX", r"(ucp|uct|ucs|ucm)/.*", r"src/net/link/\w*ucx\w*\.c"),
    ("libmicrohttpd", r"microhttpd\.h", r"src/net/server/http_server\.c"),
    ("nghttp2", r"nghttp2/nghttp2\.h", r"src/net/server/grpc_\w+\.[ch]|tests/unit/net/server/grpc_client\.h|bench/serve/bench_server/load_wire\.c"),
    ("SimGrid", r"(simgrid/.*|smpi/.*|xbt/.*)", r"src/sim/\w*simgrid\w*\.c"),
    ("CUDA", r"(cuda\w*|cublas\w*|nccl\w*)\.h", r"src/kernel/cuda/.*"),
]
WRAPPED_BY_SEVERAL = {"CUDA", "MPI", "OpenSSL", "jansson", "nghttp2", "zlib", "zstd"}  # a folder, or a file for each direction or algorithm


def sources(root):
    for folder in ("include", "src", "tests", "bench", "examples"):
        for path in sorted((root / folder).rglob("*.[ch]")):
            relative = path.relative_to(root)
            if relative.parts[:2] != ("tests", "fixtures"):
                yield path, relative


def room_of(relative):
    """The room a file belongs to; None for those that may include all of them."""
    if relative.parts[0] == "src":
        return relative.parts[1] if len(relative.parts) > 2 else ""
    if relative.parts[0] == "include":
        return PUBLIC_ROOM.get(relative.name, "")
    return None


def sub_room_violation(room, parts, name):
    """Why a file of `room`, whose folders are `parts`, may not include that room's "name", or None."""
    own, other = parts[2:3], name.split("/")[1:-1]
    if own and other and other[0] not in SUB_ROOMS[room][: SUB_ROOMS[room].index(own[0]) + 1]:
        return f'{room}/{own[0]} may not include {room}/{other[0]}: "{name}"'
    return None


def room_violation(room, relative, name):
    """Why `room` may not include "name", or None."""
    first = name.split("/")[0]
    if first == "phloem":
        target = PUBLIC_ROOM.get(name.split("/", 1)[1])
        if target is None:
            return f'"{name}" belongs to no room: add it to tools/rooms.py'
        if name == "phloem/phloem.h":
            return '"phloem/phloem.h" is for programs; a room names the headers that it uses'
    elif relative.parts[0] == "include":
        return f'a public header includes "{name}", which is not installed'
    elif "/" not in name:
        return f'"{name}" does not name its room: write "{room}/{name}"'
    else:
        target = first
        if target not in ALLOWED:
            return f'"{name}" is in no room that exists'
    if target != room and target not in ALLOWED[room]:
        return f'{room} may not include {target}: "{name}"'
    if target == room and first == room:
        return sub_room_violation(room, relative.parts[:-1], name)
    return None


def circle_problems(root):
    """A line for each group of modules (a header and its source) that include each other."""
    for ring in circles(modules(root)):
        yield f"src/{ring[0]}: a circle of modules that include each other: {', '.join(ring)}"


def crowd_problems(root):
    """A line for each folder of sources or of their tests that holds too many files."""
    folders = collections.Counter(
        path.parent.relative_to(root) for part in ("src", "tests/unit") for path in (root / part).rglob("*.[ch]"))
    for folder, count in sorted(folders.items()):
        if count > MAX_FILES and not CROWDED & set(folder.parts):
            yield f"{folder}: {count} files, {MAX_FILES} at most: a sub-room that nobody has named"


def main():
    root = pathlib.Path(sys.argv[1] if len(sys.argv) > 1 else ".")
    problems = []
    door = {}  # library, and src, bench or a peer, which is a program of its own: the file that includes it
    for path, relative in sources(root):
        room = room_of(relative)
        if room is not None and room not in ALLOWED:
            problems.append(f"{relative}:1: belongs to no room: add it to tools/rooms.py")
            continue
        if relative.parts[0] == "src" and relative.parts[2:-1] not in [(), *((sub,) for sub in SUB_ROOMS.get(room, []))]:
            problems.append(f"{relative}:1: belongs to no sub-room: add it to tools/rooms.py")
            continue
        for number, line in enumerate(path.read_text(encoding="utf-8").splitlines(), 1):
            match = INCLUDE.match(line)
            if not match:
                continue
            name = match[1] or match[2]
            where = f"{relative}:{number}"
            umbrella = str(relative) == "include/phloem/phloem.h"
            if match[1] and room is not None and not umbrella:
                violation = room_violation(room, relative, name)
                if violation:
                    problems.append(f"{where}: {violation}")
            for library, headers, allowed in WRAPPED:
                if not re.fullmatch(headers, name):
                    continue
                if not re.fullmatch(allowed, str(relative)):
                    problems.append(f"{where}: {library} is wrapped: <{name}> is not for this file")
                elif library not in WRAPPED_BY_SEVERAL:
                    program = relative if "peers" in relative.parts else relative.parts[0]
                    first = door.setdefault((library, program), relative)
                    if first != relative:
                        problems.append(f"{where}: {library} is already wrapped by {first}")
    problems += circle_problems(root)
    problems += crowd_problems(root)
    print("\n".join(problems) if problems else "layers: fine")
    return 1 if problems else 0


if __name__ == "__main__":
    sys.exit(main())
