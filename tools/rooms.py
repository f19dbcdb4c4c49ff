"""The rooms of src/: what each may include, the order of its sub-rooms, and which file includes which.

check_layers.py enforces what stands here, house.py measures it. A new room, sub-room or public header is added here.
"""
import re

GROUND = {"base", "tensor"}
GRAPH_AND_BELOW = GROUND | {"kernel", "store", "graph"}
ALLOWED = {  # room: the rooms it may include, besides itself
    "base": set(),
    "tensor": {"base"},
    "kernel": GROUND,
    "store": GROUND | {"kernel"},
    "graph": GROUND | {"kernel", "store"},
    "op": GRAPH_AND_BELOW,
    "model": GROUND | {"graph", "op"},
    "data": GROUND,
    "net": GROUND,
    "comm": GROUND | {"kernel", "net"},  # net: the sockets of the watch
    "hub": GROUND | {"kernel", "store", "net"},  # store: the checkpoint format
    "plan": {"base", "kernel"},
    "shard": GRAPH_AND_BELOW | {"op", "net", "comm", "plan"},
    "sim": GROUND | {"graph", "comm", "plan"},
    "preload": {"sim"},  # libraries of their own, which no room includes; sim/run_memory.h includes nothing of ours
    "report": {"base"},
    "serve": GRAPH_AND_BELOW | {"op", "model", "data", "net", "report"},
    "train": GRAPH_AND_BELOW | {"op", "model", "data", "serve", "comm", "plan", "shard", "report"},
}
ALLOWED["study"] = ALLOWED["train"] | {"train"}
ALLOWED["cli"] = set(ALLOWED)

# room: its folders, each of which may include those before it. Files at a room's root stand outside of that order.
SUB_ROOMS = {
    "base": ["memory", "thread", "text", "sum", "file", "format", "option"],
    "kernel": ["simd", "cuda", "ref"],
    "op": ["table", "update", "dense", "interaction", "sequence", "loss"],
    "data": ["encode", "source", "graph", "learn", "prepared", "batch", "synth"],
    "net": ["link", "server"],
    "comm": ["wire", "watch", "probe", "collective"],
    "hub": ["layout", "wire", "keep", "shard", "server", "client"],
    "plan": ["fabric", "order", "search"],
    "shard": ["lookup", "tower", "units", "dense"],
    "preload": ["sim"],
    "serve": ["wire", "teacher", "speculation", "queue", "repository", "server"],
    "train": ["measure", "cost", "probe", "recipe", "config", "ranks", "folder", "loop"],
    "cli": ["hub", "serve", "sim", "topology", "verb", "plan", "foundation", "precision"],
}

MAX_FILES = 30  # of a folder
CROWDED = {"kernel", "model"}  # rooms that grow by a file a thing

PUBLIC_ROOM = {  # header of include/phloem: the room that it is the face of
    "comm.h": "comm",
    "memory.h": "base",
    "options.h": "base",
    "status.h": "base",
    "team.h": "base",
    "version.h": "base",
    "tensor.h": "tensor",
    "kernel.h": "kernel",
    "store.h": "store",
    "graph.h": "graph",
    "op.h": "op",
    "model.h": "model",
    "data.h": "data",
    "serve.h": "serve",
    "server.h": "serve",
    "train.h": "train",
    "hub.h": "hub",
    "hub_server.h": "hub",
    "config.h": "train",  # a job's config: the keys of all rooms below
    "phloem.h": "cli",  # the umbrella: for programs, not for rooms
}

INCLUDE = re.compile(r'^\s*#\s*include\s*(?:"([^"]+)"|<([^>]+)>)')


def modules(root):
    """Modules by name ("base/file": file.h and file.c): the set of modules of src/ that each includes."""
    source = root / "src"
    paths = {str(path.relative_to(source)): path for path in sorted(source.rglob("*.[ch]"))}
    graph = {}
    for name, path in paths.items():
        edges = graph.setdefault(name[:-2], set())
        for line in path.read_text(encoding="utf-8").splitlines():
            match = INCLUDE.match(line)
            if match and match[1] in paths and match[1][:-2] != name[:-2]:
                edges.add(match[1][:-2])
    return graph


def circles(graph):
    """Lists of the modules that include each other, each list and all of them sorted (Tarjan's components)."""
    index, low, stack, found = {}, {}, [], []

    def visit(node):
        index[node] = low[node] = len(index)
        stack.append(node)
        for other in sorted(graph[node]):
            if other not in index:
                visit(other)
                low[node] = min(low[node], low[other])
            elif other in stack:
                low[node] = min(low[node], index[other])
        if low[node] == index[node]:
            first = stack.index(node)
            if len(stack) > first + 1:
                found.append(sorted(stack[first:]))
            del stack[first:]

    for node in sorted(graph):
        if node not in index:
            visit(node)
    return sorted(found)
