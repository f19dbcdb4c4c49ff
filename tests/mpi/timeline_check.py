"""Whether a trace and a summary.json of a training on ranks hold together: timeline_check.py TRACE SUMMARY RANKS."""
import collections
import json
import sys

SLACK = 0.002  # microseconds: times are written with three decimals


def tracks(events):
    """Complete events by process and track, in order, those that contain others first."""
    found = collections.defaultdict(list)
    for event in events:
        if event["ph"] == "X":
            assert event["dur"] >= 0, event
            found[event["pid"], event["tid"]].append(event)
    for of_track in found.values():
        of_track.sort(key=lambda event: (event["ts"], -event["dur"]))
    return found


def check_nesting(track, events):
    """Each event lies within the one that is open when it begins, or behind it."""
    open_ends = []
    for event in events:
        begin, end = event["ts"], event["ts"] + event["dur"]
        while open_ends and open_ends[-1] <= begin + SLACK:
            open_ends.pop()
        assert not open_ends or end <= open_ends[-1] + SLACK, f"{track}: {event} overlaps its neighbour"
        open_ends.append(end)


def check_flights(events, num_ranks):
    """What is sent is received, and what is waited for was in flight."""
    flights = [event for event in events if event.get("cat") == "in flight"]
    waits = [event for event in events if event.get("cat") == "wait"]
    bytes_by_what = collections.Counter()
    for flight in flights:
        arguments = flight["args"]
        bytes_by_what[flight["name"]] += arguments["sent_bytes"] - arguments["received_bytes"]
    assert not any(bytes_by_what.values()), f"sent, but not received: {bytes_by_what}"
    for wanted in ("ids", "lengths of bags", "gradients of dense parameters", "what comes next"):
        per_rank = collections.Counter(flight["pid"] for flight in flights if flight["name"] == wanted)
        assert len(per_rank) == num_ranks and len(set(per_rank.values())) == 1, f"{wanted}: {per_rank}"
    assert {wait["name"] for wait in waits} <= {flight["name"] for flight in flights}
    starts = collections.Counter(event["id"] for event in events if event["ph"] == "s")
    ends = collections.Counter(event["id"] for event in events if event["ph"] == "f")
    assert starts == ends and set(starts.values()) <= {1} and len(starts) == len(waits), "arrows lead nowhere"


def check_trace(trace, num_ranks, steps):
    events = trace["traceEvents"]
    assert trace["otherData"]["dropped_events"] == 0
    names = [event["args"]["name"] for event in events if event["name"] == "process_name"]
    assert names == [f"rank {rank} of {num_ranks}, host {rank}" for rank in range(num_ranks)], names
    named = {(event["pid"], event["tid"]) for event in events if event["name"] == "thread_name"}
    for track, of_track in tracks(events).items():
        assert track in named, f"track {track} has no name"
        check_nesting(track, of_track)
    check_flights(events, num_ranks)
    began = [[] for _ in range(num_ranks)]
    for event in events:
        if event.get("cat") == "step":
            began[event["pid"]].append(event["args"]["step"])
    assert began == [list(range(1, steps + 1))] * num_ranks, began


def check_ranks(summary, num_ranks):
    ranks = summary["ranks"]
    of_rank, links = ranks["of_rank"], ranks["links"]
    assert summary["world_size"] == num_ranks == len(of_rank) == len(links)
    assert ranks["measured_steps"] == summary["steps"] and ranks["hosts"] == num_ranks
    assert ranks["plan"] == {"table_wise": 24, "row_wise": 1, "data_parallel": 1}, ranks["plan"]
    for rank, row in enumerate(links):
        assert row[rank] == 0 and len(row) == num_ranks
        assert of_rank[rank]["sent_bytes"] == sum(row)
        assert of_rank[rank]["received_bytes"] == sum(other[rank] for other in links)
        assert 0 <= of_rank[rank]["exposed_seconds"] <= of_rank[rank]["step_seconds"]
    assert ranks["sent_bytes"] == sum(map(sum, links)) == sum(one["sent_bytes"] for one in ranks["operations"])
    own = sum(one["own_samples_per_s"] for one in of_rank)
    assert own > 0 and summary["samples_per_s"] > 0
    assert all(value >= 1 for value in ranks["imbalance"].values()), ranks["imbalance"]


def main():
    num_ranks = int(sys.argv[3])
    with open(sys.argv[1], encoding="utf-8") as trace, open(sys.argv[2], encoding="utf-8") as summary:
        trace, summary = json.load(trace), json.load(summary)
    check_trace(trace, num_ranks, summary["steps"])
    check_ranks(summary, num_ranks)


if __name__ == "__main__":
    main()
