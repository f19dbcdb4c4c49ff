"""Draws docs/plots/shard-KIND.svg: for each kind of shard a table cut for four ranks on two hosts, and what travels for the
samples of rank 3. Draws docs/plots/dense-shards.svg: a step with three units of dense parameters on four ranks. Draws
docs/plots/towers.svg: the way from ids to the interaction through two towers, each on a host. Needs Python alone.

usage: python3 tools/shard_pictures.py FOLDER
"""
import pathlib
import sys

from bench_plots import HUES, TEXT, WIDTH, line, picture, text

RANKS, RANKS_PER_HOST, ASKING = 4, 2, 3
TABLE_X, TABLE_Y, TABLE_WIDTH, TABLE_HEIGHT = 70, 62, 176, 160
RANK_X, RANK_Y, RANK_WIDTH, RANK_HEIGHT = 306, 78, 66, 34
LOWER_Y = 190
HEIGHT = 262


def box(x, y, width, height, color, opacity):
    return (
        f'<rect x="{x:.1f}" y="{y:.1f}" width="{width:.1f}" height="{height:.1f}" rx="3" fill="{color}" '
        f'fill-opacity="{opacity}" stroke="{color}"/>'
    )


class Shard:
    """Rows and columns of a table, as shares of 1, on a rank."""

    def __init__(self, rank, rows=(0, 1), columns=(0, 1), name=None):
        self.rank, self.rows, self.columns, self.name = rank, rows, columns, name or f"rank {rank}"

    def draw(self):
        x, y = TABLE_X + self.columns[0] * TABLE_WIDTH, TABLE_Y + self.rows[0] * TABLE_HEIGHT
        width = (self.columns[1] - self.columns[0]) * TABLE_WIDTH - 2
        height = (self.rows[1] - self.rows[0]) * TABLE_HEIGHT - 2
        return [
            box(x, y, width, height, HUES[self.rank], 0.35),
            text(x + width / 2, y + height / 2 + 4, self.name, "middle"),
        ]


def halves(index, count):
    return (index / count, (index + 1) / count)


def center(rank):
    """Of a rank's box: owners stand above, whoever gets something below."""
    host, place = divmod(rank, RANKS_PER_HOST)
    return RANK_X + host * 180 + place * 84 + RANK_WIDTH / 2


def rank_box(rank, y):
    x = center(rank) - RANK_WIDTH / 2
    return [box(x, y, RANK_WIDTH, RANK_HEIGHT, HUES[rank], 0.2), text(center(rank), y + 21, f"rank {rank}", "middle")]


def arrow(start, end, color, dash=""):
    """From one point to another, with a head."""
    (x1, y1), (x2, y2) = start, end
    length = ((x2 - x1) ** 2 + (y2 - y1) ** 2) ** 0.5 or 1
    ux, uy = (x2 - x1) / length, (y2 - y1) / length
    head = " ".join(
        f"{x:.1f},{y:.1f}"
        for x, y in ((x2, y2), (x2 - 8 * ux - 4 * uy, y2 - 8 * uy + 4 * ux), (x2 - 8 * ux + 4 * uy, y2 - 8 * uy - 4 * ux))
    )
    return [line(x1, y1, x2 - 6 * ux, y2 - 6 * uy, color, 1.6, dash), f'<polygon points="{head}" fill="{color}"/>']


def hosts():
    parts = []
    for host in range(RANKS // RANKS_PER_HOST):
        x = RANK_X - 10 + host * 180
        parts.append(
            f'<rect x="{x}" y="{TABLE_Y - 8}" width="170" height="{LOWER_Y - RANK_Y + RANK_HEIGHT + 34}" rx="6" fill="none" '
            f'stroke="{TEXT}" stroke-opacity="0.5"/>'
        )
        parts.append(text(x + 85, TABLE_Y - 14, f"host {host}", "middle"))
        for place in range(RANKS_PER_HOST):
            parts += rank_box(host * RANKS_PER_HOST + place, RANK_Y) + rank_box(host * RANKS_PER_HOST + place, LOWER_Y)
    parts.append(text(WIDTH - 8, RANK_Y + 21, "owners", "end"))
    parts.append(text(WIDTH - 8, LOWER_Y + 21, "askers", "end"))
    return parts


def below(rank):
    return (center(rank), RANK_Y + RANK_HEIGHT)


def above(rank):
    return (center(rank), LOWER_Y)


def straight(shards, is_sum):
    """Every owner to the one who asks."""
    return [
        piece
        for shard in shards
        for piece in arrow(below(shard.rank), above(ASKING), HUES[shard.rank], "5 3" if is_sum else "")
    ]


def over_hosts(shards):
    """Partial sums to the rank of the owners' host that has the asker's place, and from there on."""
    parts = []
    place = ASKING % RANKS_PER_HOST
    for host in sorted({shard.rank // RANKS_PER_HOST for shard in shards}):
        gatherer = host * RANKS_PER_HOST + place
        for shard in shards:
            if shard.rank // RANKS_PER_HOST == host:
                parts += arrow(below(shard.rank), above(gatherer), HUES[shard.rank], "5 3")
        if gatherer != ASKING:
            start = (center(gatherer) + RANK_WIDTH / 2, LOWER_Y + RANK_HEIGHT / 2)
            end = (center(ASKING) - RANK_WIDTH / 2, LOWER_Y + RANK_HEIGHT / 2)
            middle = (start[0] + end[0]) / 2
            bottom = LOWER_Y + RANK_HEIGHT + 14
            parts.append(
                f'<path d="M{center(gatherer):.1f} {LOWER_Y + RANK_HEIGHT} Q {middle:.1f} {bottom + 22} '
                f'{center(ASKING) - 6:.1f} {LOWER_Y + RANK_HEIGHT + 5}" fill="none" stroke="{HUES[gatherer]}" '
                'stroke-width="1.6"/>'
            )
            tip = (center(ASKING) - 2, LOWER_Y + RANK_HEIGHT + 1)
            parts += arrow((tip[0] - 8, tip[1] + 6), tip, HUES[gatherer])
    return parts


def replicas():
    """All ranks tell all others which rows their samples named, and by what."""
    return [
        piece
        for rank in range(RANKS)
        if rank != ASKING
        for piece in arrow(below(rank), above(ASKING), HUES[rank], "2 3")
    ]


def draw(kind, words, shards, moves):
    """words: what the arrows are."""
    parts = [text(TABLE_X, TABLE_Y - 14, "columns"), text(TABLE_X - 8, TABLE_Y + TABLE_HEIGHT, "rows", turn=-90)]
    for shard in shards:
        parts += shard.draw()
    parts += hosts() + moves + [text(TABLE_X, HEIGHT - 4, words)]
    return picture(f"{kind}: what is where, and what rank {ASKING} gets for its samples", HEIGHT, parts)


def pictures():
    whole = [Shard(1)]
    rows = [Shard(rank, rows=halves(rank, RANKS)) for rank in range(RANKS)]
    columns = [Shard(rank, columns=halves(rank, RANKS)) for rank in range(RANKS)]
    host_rows = [Shard(rank, rows=halves(rank, RANKS_PER_HOST)) for rank in range(RANKS_PER_HOST)]
    host_columns = [Shard(rank, columns=halves(rank, RANKS_PER_HOST)) for rank in range(RANKS_PER_HOST)]
    grid = [
        Shard(rank, halves(rank % RANKS_PER_HOST, RANKS_PER_HOST), halves(rank // RANKS_PER_HOST, RANKS // RANKS_PER_HOST))
        for rank in range(RANKS)
    ]
    pooled = "whole lines: pooled vectors"
    summed = "dashed: partial sums, which the one who gets them adds in the order of the ranks"
    yield "table_wise", pooled, whole, straight(whole, False)
    yield "row_wise", summed, rows, straight(rows, True)
    yield "column_wise", "whole lines: some columns of the pooled vectors", columns, straight(columns, False)
    yield "table_row_wise", "dashed: partial sums within the host; whole: their sum, once", host_rows, over_hosts(host_rows)
    yield "table_column_wise", "whole lines: some columns of the pooled vectors", host_columns, straight(host_columns, False)
    yield "grid", "dashed: partial sums within a host; whole: some columns of the pooled vectors", grid, over_hosts(grid)
    every = [Shard(0, name="every rank")]
    yield "data_parallel", "dotted: rows that others' samples have named, and their gradients, after backward", every, replicas()


# ---- dense-shards.svg: left the units and their shards, right a step against time ----

UNIT_X, UNIT_Y, UNIT_WIDTH, UNIT_HEIGHT, UNIT_STEP = 70, 66, 104, 52, 66
STEP_X, SLOT_WIDTH, LANE_HEIGHT = 298, 51, 30
LANES = {"gather": 52, "compute": 98, "whole": 144, "reduce": 224}  # by name: the top of each
DENSE_HEIGHT = 300


def strips(x, y, width, height):
    """All shards of a unit: a strip in the hue of each rank."""
    return [box(x, y + rank * height / RANKS, width, height / RANKS - 1, HUES[rank], 0.35) for rank in range(RANKS)]


def unit_shards():
    parts = [text(UNIT_X, UNIT_Y - 12, "held from step to step")]
    for number, name in enumerate("abc"):
        y = UNIT_Y + number * UNIT_STEP
        parts += strips(UNIT_X, y, UNIT_WIDTH, UNIT_HEIGHT) + [text(UNIT_X - 8, y + UNIT_HEIGHT / 2 + 4, f"unit {name}", "end")]
        if number == 0:
            strip = UNIT_HEIGHT / RANKS
            parts += [
                text(UNIT_X + UNIT_WIDTH + 6, y + rank * strip + strip / 2 + 4, f"rank {rank}", size=10, color=HUES[rank])
                for rank in range(RANKS)
            ]
    return parts


def slot_x(slot):
    return STEP_X + slot * SLOT_WIDTH


def striped(lane, slot, num_slots, name, row=0):
    """All shards of a unit for some slots of time, behind the unit's name."""
    x, y, width = slot_x(slot), LANES[lane] + row * (LANE_HEIGHT + 4), num_slots * SLOT_WIDTH - 4
    return [text(x + 2, y + LANE_HEIGHT / 2 + 4, name), *strips(x + 13, y, width - 13, LANE_HEIGHT)]


def computed(slot, name):
    x, y, width = slot_x(slot), LANES["compute"], SLOT_WIDTH - 4
    return [box(x, y, width, LANE_HEIGHT, TEXT, 0.15), text(x + width / 2, y + LANE_HEIGHT / 2 + 4, name, "middle")]


def dense_step():
    names = {"gather": "gathers", "compute": "computes", "whole": "holds whole", "reduce": "reduces"}
    parts = [text(STEP_X - 8, LANES[lane] + 19, name, "end") for lane, name in names.items()]
    for slot, name in ((0, "a"), (1, "b"), (2, "c"), (4, "b"), (5, "a")):
        parts += striped("gather", slot, 1, name)
    for slot, name in ((1, "a"), (2, "b"), (3, "c"), (4, "c"), (5, "b"), (6, "a")):
        parts += computed(slot, name)
    for slot, num_slots, name, row in ((0, 2, "a", 0), (1, 2, "b", 1), (2, 3, "c", 0), (4, 2, "b", 1), (5, 2, "a", 0)):
        parts += striped("whole", slot, num_slots, name, row)
    for slot, name in ((5, "c"), (6, "b"), (7, "a")):
        parts += striped("reduce", slot, 1, name)
    top, bottom = LANES["gather"] - 8, LANES["reduce"] + LANE_HEIGHT + 4
    parts.append(line(slot_x(4) - 2, top, slot_x(4) - 2, bottom, TEXT, 1.0, "3 3"))
    parts += [text(slot_x(2), top, "forward", "middle"), text(slot_x(6), top, "backward", "middle")]
    return parts


def dense_shards():
    words = (
        "striped: shards of all ranks travel, or lie together. A unit is freed where its stripes end;",
        "the last one, c, stays until backward. Of reduced gradients each rank keeps its own shard.",
    )
    below_it = [text(UNIT_X, DENSE_HEIGHT - 22 + 16 * row, sentence) for row, sentence in enumerate(words)]
    title = "full: each rank holds a quarter of each unit, and at most two units whole"
    return picture(title, DENSE_HEIGHT, [*unit_shards(), *dense_step(), *below_it])


# ---- towers.svg: from the ids at the top to the interaction at the bottom ----

TOWER_X, TOWER_WIDTH, TOWER_HEIGHT = 196, 104, 38
TOWER_ROWS = {"lookup": 82, "tower": 174, "interaction": 280}  # by name: the top of each
TOWERS_HEIGHT = 354


def tower_center(rank):
    host, place = divmod(rank, RANKS_PER_HOST)
    return TOWER_X + 66 + host * 264 + place * 124


def two_lines(x, y, upper, lower):
    return [text(x, y + 16, upper, "middle", 11), text(x, y + 30, lower, "middle", 11)]


def tower_module(rank, y):
    """A box that is as wide as what comes in above, and half as wide below."""
    x, half = tower_center(rank), TOWER_WIDTH / 2
    corners = ((x - half, y), (x + half, y), (x + half / 2, y + TOWER_HEIGHT + 6), (x - half / 2, y + TOWER_HEIGHT + 6))
    points = " ".join(f"{px:.1f},{py:.1f}" for px, py in corners)
    return [f'<polygon points="{points}" fill="{HUES[rank]}" fill-opacity="0.2" stroke="{HUES[rank]}"/>']


def rank_column(rank):
    """What a rank does, from the lookup down."""
    host, place = divmod(rank, RANKS_PER_HOST)
    x, left = tower_center(rank), tower_center(rank) - TOWER_WIDTH / 2
    lookup, tower, interaction = TOWER_ROWS.values()
    peers = " and ".join(str(peer) for peer in range(place, RANKS, RANKS_PER_HOST))
    parts = [text(x, lookup - 10, f"rank {rank}", "middle")]
    parts += [box(left, lookup, TOWER_WIDTH, TOWER_HEIGHT, HUES[rank], 0.2), *two_lines(x, lookup, "own tables", "all samples")]
    parts += tower_module(rank, tower) + two_lines(x, tower, f"tower {host}", f"of {peers}")
    parts += [box(left, interaction, TOWER_WIDTH, TOWER_HEIGHT, HUES[rank], 0.2)]
    return parts + two_lines(x, interaction, "both towers", f"samples of {rank}")


def tower_exchange(upper, lower, partners):
    """Arrows from each rank to each of its partners, itself among them: dashed within a host, whole between hosts."""
    return [
        piece
        for rank in range(RANKS)
        for partner in partners(rank)
        for piece in arrow(
            (tower_center(rank), upper),
            (tower_center(partner) + 8 * (rank - partner) / RANKS, lower),
            HUES[rank],
            "5 3" if rank // RANKS_PER_HOST == partner // RANKS_PER_HOST else "",
        )
    ]


def in_host(rank):
    first = rank // RANKS_PER_HOST * RANKS_PER_HOST
    return range(first, first + RANKS_PER_HOST)


def among_peers(rank):
    return range(rank % RANKS_PER_HOST, RANKS, RANKS_PER_HOST)


def towers():
    lookup, tower, interaction = TOWER_ROWS.values()
    parts = []
    for host in range(RANKS // RANKS_PER_HOST):
        x = tower_center(host * RANKS_PER_HOST) - 58
        parts.append(
            f'<rect x="{x}" y="{lookup - 26}" width="240" height="{interaction + TOWER_HEIGHT - lookup + 36}" rx="6" fill="none" '
            f'stroke="{TEXT}" stroke-opacity="0.5"/>'
        )
        parts.append(text(x + 120, lookup - 32, f"host {host}: the tables of tower {host}", "middle"))
    names = {
        lookup: ("ids have come;", "lookups"),
        tower: ("tower module: fewer", "columns leave it"),
        interaction: ("interaction", "and top layers"),
    }
    for y, (upper, below_it) in names.items():
        parts += [text(8, y + 16, upper), text(8, y + 32, below_it)]
    for rank in range(RANKS):
        parts += rank_column(rank)
    parts += [text(8, (lookup + TOWER_HEIGHT + tower) / 2 + 4, "exchange in the host")]
    parts += [text(8, (tower + TOWER_HEIGHT + 6 + interaction) / 2 + 4, "exchange among peers")]
    parts += tower_exchange(lookup + TOWER_HEIGHT, tower, in_host)
    parts += tower_exchange(tower + TOWER_HEIGHT + 6, interaction, among_peers)
    words = "dashed: within a host, or a rank's own; whole lines: between hosts, what the towers give"
    parts.append(text(8, TOWERS_HEIGHT - 6, words))
    return picture("towers: vectors cross hosts behind the tower module", TOWERS_HEIGHT, parts)


def main():
    folder = pathlib.Path(sys.argv[1])
    for kind, words, shards, moves in pictures():
        (folder / f"shard-{kind.replace('_', '-')}.svg").write_text(draw(kind, words, shards, moves))
    (folder / "dense-shards.svg").write_text(dense_shards())
    (folder / "towers.svg").write_text(towers())


if __name__ == "__main__":
    main()
