#!/usr/bin/env python3
"""Plans tasks of bench_plan by TorchRec's own planner, and writes plans that bench_plan prices.

    bench_plan --part tables | tools/plan_torchrec.py FOLDER

Needs the Python packages torchrec and fbgemm-gpu-cpu (1.8.0 go with PyTorch 2.13). Each rank is a device whose memory and
links have the rates of the task's ranks; no memory is held in reserve. Tables lie whole, cut by rows or columns, or copied, as
the planner chooses. Prints the seconds of each task; one for which the planner finds nothing gets no file. Ends with 77 where
a package is missing.
"""
import logging
import pathlib
import sys
import time

RANKS, BATCH = 4, 2048


def read_tasks(lines):
    """Returns by index (rank bytes, rate of memory, rate of links) and tables (name, rows, dim, ids a sample)."""
    tasks = {}
    for kind, index, *words in (line.split() for line in lines):
        if kind == "ranks":
            tasks[index] = ([float(word) for word in words], [])
        else:
            tasks[index][1].append((words[0], int(words[1]), int(words[2]), float(words[3])))
    return tasks


def plan_task(ranks, tables):
    """Returns the choice for each table, by its number; None: the planner has found nothing."""
    collection = torchrec.EmbeddingBagCollection(
        device=torch.device("meta"),
        tables=[
            torchrec.EmbeddingBagConfig(name=str(i), num_embeddings=rows, embedding_dim=dim, feature_names=[name])
            for i, (name, rows, dim, _) in enumerate(tables)
        ],
    )
    rank_bytes, memory, link = ranks
    topology = planner.Topology(  # bytes a millisecond
        world_size=RANKS, local_world_size=RANKS, compute_device="cuda", hbm_cap=int(rank_bytes), ddr_cap=0,
        hbm_mem_bw=memory / 1e3, intra_host_bw=link / 1e3, inter_host_bw=link / 1e3,
    )  # fmt: skip
    constraints = {str(i): planner.ParameterConstraints(pooling_factors=[ids]) for i, (*_, ids) in enumerate(tables)}
    by_rules = planner.EmbeddingShardingPlanner(
        topology=topology, batch_size=BATCH // RANKS, constraints=constraints, stats=[],
        storage_reservation=FixedPercentageStorageReservation(percentage=0),
    )  # fmt: skip
    try:
        return by_rules.plan(collection, [EmbeddingBagCollectionSharder()]).plan[""]
    except planner.types.PlannerError:
        return None


def line_of(name, choice):
    if choice.sharding_type == "data_parallel":
        return f"  {name}: {{kind: data_parallel}}"
    if choice.sharding_type == "table_wise":
        return f"  {name}: {{kind: table_wise, rank: {choice.ranks[0]}}}"
    kind = {"row_wise": "row_wise", "table_row_wise": "row_wise", "column_wise": "column_wise"}[choice.sharding_type]
    return f"  {name}: {{kind: {kind}, ranks: {list(choice.ranks)}}}"


def main():
    folder = pathlib.Path(sys.argv[1])
    for index, (ranks, tables) in read_tasks(sys.stdin).items():
        begin = time.perf_counter()
        choices = plan_task(ranks, tables)
        print(f"torchrec {index} {time.perf_counter() - begin:.3f}", flush=True)
        if choices is not None:
            lines = [f"version: 1\nworld_size: {RANKS}\nranks_per_host: {RANKS}\ntables:"]
            lines += [line_of(name, choices[str(i)]) for i, (name, *_) in enumerate(tables)]
            (folder / f"task_{index}.yaml").write_text("\n".join(lines) + "\n", encoding="ascii")


if __name__ == "__main__":
    logging.disable(logging.CRITICAL)
    try:
        import torch
        import torchrec
        from torchrec.distributed import planner
        from torchrec.distributed.embeddingbag import EmbeddingBagCollectionSharder
        from torchrec.distributed.planner.storage_reservations import FixedPercentageStorageReservation
    except (ImportError, OSError) as error:
        print(f"no TorchRec here: {error}", file=sys.stderr)
        sys.exit(77)
    main()
