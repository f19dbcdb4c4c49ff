"""Draws docs/plots/shard-KIND.svg: for each kind of shard a table cut for four ranks on two hosts, and what travels for the
samples of rank 3. Needs Python alone.

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


def main():
    folder = pathlib.Path(sys.argv[1])
    for kind, words, shards, moves in pictures():
        (folder / f"shard-{kind.replace('_', '-')}.svg").write_text(draw(kind, words, shards, moves))


if __name__ == "__main__":
    main()
