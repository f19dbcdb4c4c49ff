#!/usr/bin/env python3
"""Checks the Chakra traces that phloem sim has left, by a decoder of its own.

usage: chakra_check.py DIR

Each rank's nodes depend on earlier ones and do not end before them; each message that is sent is received; and the
bytes between ranks are those of DIR/summary.json. Prints the number of nodes of each type.
"""
import collections
import json
import pathlib
import sys

COMP, SEND, RECEIVE = 4, 5, 6


def varint(data, at):
    value = shift = 0
    while True:
        byte = data[at]
        at += 1
        value |= (byte & 127) << shift
        shift += 7
        if byte < 128:
            return value, at


def fields(data):
    """(number, value) of each field of a message: a number, or bytes."""
    at = 0
    while at < len(data):
        tag, at = varint(data, at)
        value, at = varint(data, at)
        if tag & 7 == 2:
            value, at = data[at:at + value], at + value
            assert at <= len(data), "a field ends beyond its message"
        else:
            assert tag & 7 == 0, f"wire type {tag & 7}"
        yield tag >> 3, value


def messages(data):
    at = 0
    while at < len(data):
        size, at = varint(data, at)
        assert at + size <= len(data), "the file ends within a message"
        yield data[at:at + size]
        at += size


def numbers(data):
    at = 0
    while at < len(data):
        value, at = varint(data, at)
        yield value


def node_of(message):
    node = {"deps": [], "start": 0, "duration": 0}
    for number, value in fields(message):
        if number == 5:
            node["deps"] = list(numbers(value))
        elif number == 10:
            (_, name), (_, attribute) = fields(value)
            node[name.decode()] = attribute
        else:
            node[{1: "id", 2: "name", 3: "type", 6: "start", 7: "duration"}[number]] = value
    node["end"] = node["start"] + node["duration"]
    return node


def check_order(nodes):
    for place, node in enumerate(nodes, 1):
        assert node["id"] == place, f"node {place} has the id {node['id']}"
        assert all(0 < one < place for one in node["deps"]), f"node {place} depends on {node['deps']}"
        assert all(nodes[one - 1]["end"] <= node["end"] for one in node["deps"]), f"node {place} ends too early"


def main(folder):
    links = json.loads((folder / "summary.json").read_text())["ranks"]["links"]
    counts, sent, received = collections.Counter(), collections.Counter(), collections.Counter()
    for rank in range(len(links)):
        metadata, *rest = messages((folder / "chakra" / f"rank.{rank}.et").read_bytes())
        assert next(fields(metadata)) == (1, b"0.0.4")
        nodes = [node_of(message) for message in rest]
        check_order(nodes)
        counts.update(node["type"] for node in nodes)
        for node in nodes:
            if node["type"] == COMP:
                assert node["num_ops"] > 0 and node["tensor_size"] > 0
                continue
            assert node["comm_src" if node["type"] == SEND else "comm_dst"] == rank
            message = tuple(node[name] for name in ("comm_src", "comm_dst", "comm_tag"))
            assert node["comm_size"] > 0
            message += (0 if node["name"].startswith(b"empty ") else node["comm_size"],)
            (sent if node["type"] == SEND else received)[message] += 1
    assert sent == received, f"sent but not received, or otherwise: {(sent - received) + (received - sent)}"
    for source, row in enumerate(links):
        for to, wanted in enumerate(row):
            found = sum(count * one[3] for one, count in sent.items() if one[:2] == (source, to))
            assert found == wanted, f"{found} bytes from rank {source} to {to}; summary.json has {wanted}"
    print(counts[COMP], counts[SEND], counts[RECEIVE])


if __name__ == "__main__":
    main(pathlib.Path(sys.argv[1]))
