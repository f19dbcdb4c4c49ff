#!/usr/bin/env python3
"""bindings/python/phloem/hub.py says what include/phloem/hub.h and hub_server.h say: each structure member by member as the
compiler lays it out, each enumerator, each function with its parameters, the version of the interface and the library's name.

usage: hub_abi_check.py SOURCE_DIR C_COMPILER

Skips (77) where NumPy, which the module needs, is not importable.
"""
import ctypes
import pathlib
import re
import subprocess
import sys
import tempfile

try:
    import numpy  # noqa: F401
except ImportError as missing:
    print(f"skipped: {missing}")
    sys.exit(77)

STRUCTURES = {"ph_update_rule": "UpdateRule", "ph_hub_optimizer": "Optimizer", "ph_hub_service": "Service",
              "ph_hub_options": "Options", "ph_hub_key": "KeyOfC", "ph_hub_client_info": "ClientInfo",
              "ph_hub_server_options": "ServerOptions"}
ENUMERATIONS = {  # name: the class, and what its members' names begin with in C
    "ph_hub_mode": ("Mode", "PH_HUB_"), "ph_hub_order": ("Order", "PH_HUB_"), "ph_hub_on_death": ("OnDeath", "PH_HUB_"),
    "ph_hub_wait_policy": ("WaitPolicy", "PH_HUB_WAIT_"), "ph_hub_transport": ("Transport", "PH_HUB_"),
    "ph_hub_results": ("Results", "PH_HUB_RESULTS_"), "ph_hub_aggregation": ("Aggregation", "PH_HUB_"),
    "ph_hub_log": ("Log", "PH_HUB_LOG_"),
    "ph_optimizer_kind": ("OptimizerKind", "PH_"), "ph_dtype": ("DType", "PH_"), "ph_status_code": ("Status", "PH_")}
OF_C = {"size_t": ctypes.c_size_t, "uint32_t": ctypes.c_uint32, "uint64_t": ctypes.c_uint64, "float": ctypes.c_float,
        "int": ctypes.c_int, "ph_status": "status", "void": None}


# ---- what the header says ----


def structures(header):
    """name: its members' names"""
    found = {}
    for name, body in re.findall(r"struct (ph_hub_\w+|ph_update_rule) \{(.*?)\};", header, re.S):
        declarators = [part for line in body.split(";") for part in line.split(",") if part.strip()]
        found[name] = [re.search(r"(\w+)\s*$", declarator)[1] for declarator in declarators]
    return found


def enumerations(header):
    found = re.findall(r"enum (ph_\w+) \{(.*?)\};", header, re.S)
    return {name: [part.split("=")[0].strip() for part in body.split(",") if part.strip()] for name, body in found}


def functions(header):
    """name without ph_hub_: what it returns, and its parameters, as texts"""
    found = {}
    for returned, name, parameters in re.findall(r"([\w ]+[ *]+)ph_hub_(\w+)\(([^()]*)\)", header):
        parameters = [] if parameters.strip() == "void" else [text.strip() for text in parameters.split(",")]
        found[name] = returned.strip(), parameters
    return found


def measure(compiler, include, names_of):
    """What the compiler says of sizes, offsets and values: {expression: number}."""
    expressions = ["PH_HUB_API_VERSION", "PH_VERSION_MAJOR"]
    for name, members in structures(names_of).items():
        expressions += [f"sizeof(struct {name})"]
        expressions += [f"offsetof(struct {name}, {member})" for member in members]
        expressions += [f"sizeof(((struct {name} *)0)->{member})" for member in members]
    for members in enumerations(names_of).values():
        expressions += members
    lines = "\n".join(f'    printf("%lld\\n", (long long)({expression}));' for expression in expressions)
    program = '#include <stddef.h>\n#include <stdio.h>\n#include "phloem/hub_server.h"\n#include "phloem/version.h"\n'
    program += f"int main(void)\n{{\n{lines}\n}}\n"
    with tempfile.TemporaryDirectory() as folder:
        source = pathlib.Path(folder) / "measure.c"
        source.write_text(program, encoding="utf-8")
        subprocess.run([compiler, "-std=c17", f"-I{include}", source, "-o", source.with_suffix("")], check=True)
        printed = subprocess.run([source.with_suffix("")], check=True, capture_output=True, text=True).stdout
    return dict(zip(expressions, map(int, printed.split())))


# ---- comparison: yields what differs ----


def structure_problems(module, header, measured):
    found = structures(header)
    for name in found.keys() ^ STRUCTURES.keys():
        yield f"struct {name} is not on both sides"
    for name in found.keys() & STRUCTURES.keys():
        structure = getattr(module, STRUCTURES[name])
        if [member for member, _ in structure._fields_] != found[name]:
            yield f"struct {name} has the members {found[name]}"
            continue
        if ctypes.sizeof(structure) != measured[f"sizeof(struct {name})"]:
            yield f"struct {name} has another size"
        for member in found[name]:
            field = getattr(structure, member)
            if field.offset != measured[f"offsetof(struct {name}, {member})"]:
                yield f"struct {name}: {member} is elsewhere"
            if field.size != measured[f"sizeof(((struct {name} *)0)->{member})"]:
                yield f"struct {name}: {member} has another size"


def enumeration_problems(module, header, measured):
    found = enumerations(header)
    for name in found:
        if name.startswith("ph_hub_") and name not in ENUMERATIONS:
            yield f"enum {name} is missing"
    for name, (python_name, prefix) in ENUMERATIONS.items():
        wanted = {member: measured[member] for member in found[name] if not member.endswith("_COUNT")}
        actual = {prefix + member.name: int(member) for member in getattr(module, python_name)}
        if actual != wanted:
            yield f"enum {name} is {wanted}"


def is_alike(python_type, of_c):
    """A parameter or a result, against the text of its declaration."""
    if "*" in of_c:
        is_pointer = isinstance(python_type, type) and issubclass(python_type, ctypes._Pointer)
        return is_pointer or python_type in (ctypes.c_void_p, ctypes.c_char_p)
    words = of_c.split()
    return python_type == OF_C[words[0]]


def function_problems(module, header):
    found = functions(header)
    for name in found.keys() ^ module.FUNCTIONS.keys():
        yield f"ph_hub_{name} is not on both sides"
    for name in found.keys() & module.FUNCTIONS.keys():
        (result, parameters), (returned, declared) = module.FUNCTIONS[name], found[name]
        if not is_alike(result, returned):
            yield f"ph_hub_{name} returns {returned}"
        if len(parameters) != len(declared) or not all(map(is_alike, parameters, declared)):
            yield f"ph_hub_{name} has the parameters {declared}"


def main():
    source, compiler = pathlib.Path(sys.argv[1]), sys.argv[2]
    sys.dont_write_bytecode = True
    sys.path.insert(0, str(source / "bindings" / "python"))
    import phloem.hub

    include = source / "include"
    header = subprocess.run([compiler, "-E", "-P", f"-I{include}", include / "phloem" / "hub_server.h"], check=True,
                            capture_output=True, text=True).stdout
    measured = measure(compiler, include, header)
    problems = [*structure_problems(phloem.hub, header, measured), *enumeration_problems(phloem.hub, header, measured),
                *function_problems(phloem.hub, header)]
    if phloem.hub.API_VERSION != measured["PH_HUB_API_VERSION"]:
        problems.append("API_VERSION is another")
    if phloem.hub.LIBRARY != f"libphloem_hub.so.{measured['PH_VERSION_MAJOR']}":
        problems.append("LIBRARY is of another version")
    print("\n".join(problems) or f"{len(STRUCTURES)} structures, {len(ENUMERATIONS)} enumerations and "
          f"{len(phloem.hub.FUNCTIONS)} functions are those of hub.h and hub_server.h")
    return 1 if problems else 0


if __name__ == "__main__":
    sys.exit(main())
