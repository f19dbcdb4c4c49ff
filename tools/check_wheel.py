#!/usr/bin/env python3
"""Checks a wheel: at most 25 MB; library and program need no library but glibc's, no OpenMP, no symbol of glibc newer than the
wheel's tag says; the library shows ph_* alone; the program runs. Prints sizes and the newest version of glibc that is needed.

usage: check_wheel.py WHEEL          checks it
       check_wheel.py --tag WHEEL    renames it first, manylinux_2_NN as its symbols need, and prints its name
"""
import base64
import hashlib
import pathlib
import re
import subprocess
import sys
import tempfile
import zipfile

MAX_BYTES = 25_000_000
GLIBC = {"libc.so.6", "libm.so.6", "libpthread.so.0", "libdl.so.2", "librt.so.1", "ld-linux-x86-64.so.2"}


def read(*command):
    return subprocess.run(command, check=True, capture_output=True, text=True, env={"LC_ALL": "C"}).stdout


def glibc_of(file):
    """Returns the newest version of glibc whose symbols the file uses, as (2, 34)."""
    versions = re.findall(r"GLIBC_(\d+)\.(\d+)", read("readelf", "--version-info", str(file)))
    return max((int(major), int(minor)) for major, minor in versions)


def problems_of(file, is_library):
    needed = set(re.findall(r"\(NEEDED\).*\[(.*)\]", read("readelf", "--dynamic", str(file))))
    if needed - GLIBC:
        yield f"needs {', '.join(sorted(needed - GLIBC))}"
    symbols = [line.split() for line in read("nm", "--dynamic", str(file)).splitlines()]
    undefined = [words[-1] for words in symbols if words[-2] in "Uw"]
    openmp = [name for name in undefined if re.match(r"(GOMP|omp|kmp|__kmpc)_", name)]
    if openmp:
        yield f"uses OpenMP: {openmp[0]}"
    shown = [words[-1] for words in symbols if words[-2] not in "Uw"]
    foreign = [name for name in shown if not re.match(r"ph_[a-z]", name)]
    if is_library and (foreign or not shown):
        yield f"shows {foreign[0] if foreign else 'nothing'}"


def program_problems(program):
    version = read(str(program), "--version").strip()
    if not re.fullmatch(r"phloem \d+\.\d+\.\d+", version):
        yield f"--version prints '{version}'"
    if "dlrm" not in read(str(program), "models"):
        yield "models does not list dlrm"


def retag(wheel, glibc):
    """Names the wheel for the glibc that it needs, in its file's name and in its metadata, whose hash RECORD has."""
    tag = f"manylinux_{glibc[0]}_{glibc[1]}_x86_64"
    renamed = wheel.with_name(re.sub(r"[a-z0-9_]+\.whl$", f"{tag}.whl", wheel.name))
    with zipfile.ZipFile(wheel) as old, zipfile.ZipFile(f"{renamed}.new", "w", zipfile.ZIP_DEFLATED) as new:
        contents = {item.filename: old.read(item) for item in old.infolist()}
        about, record = (next(name for name in contents if name.endswith(f".dist-info/{end}")) for end in ("WHEEL", "RECORD"))
        contents[about] = re.sub(rb"(?m)^(Tag: py3-none-).*$", rb"\1" + tag.encode(), contents[about])
        digest = base64.urlsafe_b64encode(hashlib.sha256(contents[about]).digest()).rstrip(b"=").decode()
        line = f"{about},sha256={digest},{len(contents[about])}"
        contents[record] = re.sub(rf"(?m)^{re.escape(about)},.*$", line, contents[record].decode()).encode()
        for item in old.infolist():
            new.writestr(item, contents[item.filename], zipfile.ZIP_DEFLATED)
    wheel.unlink()
    return pathlib.Path(f"{renamed}.new").rename(renamed)


def main():
    wheel = pathlib.Path(sys.argv[-1])
    with tempfile.TemporaryDirectory() as folder, zipfile.ZipFile(wheel) as archive:
        archive.extractall(folder)
        library, = pathlib.Path(folder).glob("phloem/lib/libphloem.so")
        program, = pathlib.Path(folder).glob("phloem-*.data/scripts/phloem")
        program.chmod(0o755)
        glibc = max(glibc_of(library), glibc_of(program))
        if sys.argv[1] == "--tag":
            print(retag(wheel, glibc))
            return 0
        problems = [f"libphloem.so {text}" for text in problems_of(library, True)]
        problems += [f"phloem {text}" for text in [*problems_of(program, False), *program_problems(program)]]
        sizes = [path.stat().st_size / 1e6 for path in (wheel, library, program)]
    if wheel.stat().st_size > MAX_BYTES:
        problems.append(f"the wheel has more than {MAX_BYTES} bytes")
    tag = re.search(r"manylinux_(\d+)_(\d+)", wheel.name)
    if tag and (int(tag[1]), int(tag[2])) < glibc:
        problems.append(f"the wheel's tag is {tag[0]}, but it needs glibc {glibc[0]}.{glibc[1]}")
    print("\n".join(f"{wheel.name}: {text}" for text in problems)
          or f"{wheel.name}: {sizes[0]:.1f} MB; library {sizes[1]:.1f} MB, program {sizes[2]:.1f} MB; glibc {glibc[0]}.{glibc[1]}")
    return 1 if problems else 0


sys.exit(main())
