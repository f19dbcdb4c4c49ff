#include "kernel/cut.h"

struct ph_cut ph__cut_length(size_t length, size_t full)
{
    struct ph_cut cut = {.full = full, .num_full = length / full};
    size_t rest = length % full;
    for (size_t size = full / 2; size >= PH_MIN_PIECE; size /= 2) {
        if (rest >= size) {
            cut.tail[cut.num_tail++] = size;
            rest -= size;
        }
    }
    if (rest > 0)
        cut.tail[cut.num_tail++] = rest;
    return cut;
}

size_t ph__cut_pieces(const struct ph_cut *cut)
{
    return cut->num_full + cut->num_tail;
}

struct ph_piece ph__cut_piece(const struct ph_cut *cut, size_t index)
{
    if (index < cut->num_full)
        return (struct ph_piece){.first = index * cut->full, .count = cut->full};
    struct ph_piece piece = {.first = cut->num_full * cut->full, .kind = index - cut->num_full + 1};
    for (size_t i = 0; i + 1 < piece.kind; i++)
        piece.first += cut->tail[i];
    piece.count = cut->tail[piece.kind - 1];
    return piece;
}
