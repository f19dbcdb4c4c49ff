/* Backward and update of merged slots in one sweep. A run's gradient is summed in registers, a few vectors of
 * columns at a time, and stepped into its row at once. Row-wise Adagrad needs the whole gradient before it
 * can step: the gradient stays in registers where a row is few whole vectors, and is first summed into
 * scratch elsewhere. One body serves all formats of rows: it is inlined for each, the format a constant. The
 * rows of coming runs and of their entries are prefetched: they are scattered over the table, so memory
 * latency bounds the sweep. */
#include <assert.h>

#include "kernel/simd/merged_run.h"
#include "kernel/simd/optimizer_step.h"
#include "kernel/simd/rowwise_squares.h"
#include "kernel/simd/simd.h"
#include "kernel/simd/table_numbers.h"

enum { ROW_VECTORS = 8 };
_Static_assert(
    DRAWN_WORDS % (VECTORS * VF_WIDTH) == 0, "a block of columns lies within what is drawn at once");

/* State of a sweep over runs. */
struct sweep {
    const struct ph__embedding_update_args *args;
    struct constants constants;
    bool is_scaled, has_penalty; /* row-wise Adagrad: gradient_scale is not 1; l2 is not 0 */
    struct chance chance;
    size_t drawn, next; /* random words are drawn for the runs [drawn, next) */
};

/* Steps the columns from `column` on of run r's row: whole vectors, or the first num_last numbers of one.
 * kind, format, vectors and has_mask are constants. */
PH_INLINE void step_columns(const struct sweep *sweep, enum ph_optimizer_kind kind, enum ph_row_format format,
    size_t r, size_t end, size_t column, size_t vectors, int has_mask, size_t num_last,
    const uint16_t *random)
{
    const struct ph__embedding_update_args *args = sweep->args;
    const size_t place = args->unique[r] * args->source->dim + column;
    const struct numbers weights = numbers_at(args->table, format, place);
    const vmask mask = vf_first(num_last);
    float *m = has_momentum(kind) ? args->m + place : NULL, *s = has_sum(kind) ? args->s + place : NULL;
    vf sum[VECTORS];
    sum_entries(args->source, args->starts[r], end, column, vectors, has_mask, mask, sum);
    PH_UNROLL
    for (size_t v = 0; v < vectors; v++) {
        const size_t i = v * VF_WIDTH;
        vf mi = has_momentum(kind) ? load(m + i, has_mask, mask) : vf_zero();
        vf si = has_sum(kind) ? load(s + i, has_mask, mask) : vf_zero();
        const vf wi = has_mask ? load_first(format, &weights, i, num_last) : load_all(format, &weights, i);
        const vf stepped =
            step_vector(&sweep->constants, kind, args->step->is_nesterov, sum[v], wi, &mi, &si);
        const uint16_t *words = is_by_chance(format) ? random + i : NULL;
        if (has_mask)
            store_first(format, &weights, i, num_last, stepped, words);
        else
            store_all(format, &weights, i, stepped, words);
        if (has_momentum(kind))
            store(m + i, has_mask, mask, mi);
        if (has_sum(kind))
            store(s + i, has_mask, mask, si);
    }
}

/* Returns the random words that round run r's row, or NULL for a wide row or a format that needs none. Draws
 * them, together with those of the next runs before `last`, when r is the first run without words. */
PH_INLINE const uint16_t *words_of_run(struct sweep *sweep, enum ph_row_format format, size_t r, size_t last)
{
    struct chance *chance = &sweep->chance;
    if (!is_by_chance(format) || chance->together == 0)
        return NULL;
    if (r == sweep->next) {
        sweep->drawn = r;
        sweep->next = r + draw_rows(chance, sweep->args->unique + r, last - r);
    }
    return chance->words + (r - sweep->drawn) * chance->row_words;
}

/* Returns the words from `column` on of run r's row; draws them for a wide row at multiples of DRAWN_WORDS.
 * `random` comes from words_of_run. */
PH_INLINE const uint16_t *words_at(
    struct sweep *sweep, enum ph_row_format format, size_t r, size_t column, const uint16_t *random)
{
    if (!is_by_chance(format))
        return NULL;
    if (random != NULL)
        return random + column;
    if (column % DRAWN_WORDS == 0)
        draw_columns(&sweep->chance, sweep->args->unique[r], column);
    return sweep->chance.words + column % DRAWN_WORDS;
}

/* Updates run r by an elementwise optimizer; kind and format are constants. */
PH_INLINE void update_run(struct sweep *sweep, enum ph_optimizer_kind kind, enum ph_row_format format,
    size_t r, const uint16_t *random)
{
    const size_t dim = sweep->args->source->dim, block = VECTORS * VF_WIDTH, end = end_of_run(sweep->args, r);
    size_t column = 0;
    for (; column + block <= dim; column += block)
        step_columns(
            sweep, kind, format, r, end, column, VECTORS, 0, 0, words_at(sweep, format, r, column, random));
    for (; column + VF_WIDTH <= dim; column += VF_WIDTH)
        step_columns(
            sweep, kind, format, r, end, column, 1, 0, 0, words_at(sweep, format, r, column, random));
    if (column < dim)
        step_columns(sweep, kind, format, r, end, column, 1, 1, dim - column,
            words_at(sweep, format, r, column, random));
}

/* Updates runs [first, last) by an elementwise optimizer; kind and format are constants. */
PH_INLINE void update_runs(const struct ph__embedding_update_args *args, enum ph_optimizer_kind kind,
    enum ph_row_format format, size_t first, size_t last)
{
    struct sweep sweep = {.args = args, .constants = broadcast(args->step), .next = first};
    if (is_by_chance(format))
        start(&sweep.chance, args->table);
    for (size_t r = first; r < last; r++) {
        prefetch_run(args, format, r + RUNS_AHEAD);
        update_run(&sweep, kind, format, r, words_of_run(&sweep, format, r, last));
    }
}

/* Returns the sum of squares of a row of `vectors` whole vectors: 1, 2, 4 or 8, a constant. */
PH_INLINE float sum_squares(const vf *g, size_t vectors)
{
    const size_t fours = vectors >= GROUP_VECTORS ? FOURS : vectors > FOUR_BLOCKS ? vectors / FOUR_BLOCKS : 1;
    const vf padded[FOUR_BLOCKS] = {g[0]};
    vf sums[FOUR_BLOCKS], more[FOUR_BLOCKS];
    square_blocks(vectors < FOUR_BLOCKS ? padded : g, fours, sums);
    PH_UNROLL
    for (size_t v = GROUP_VECTORS; v < vectors; v += GROUP_VECTORS) {
        square_blocks(g + v, FOURS, more);
        PH_UNROLL
        for (size_t p = 0; p < FOUR_BLOCKS; p++)
            sums[p] = vf_add(sums[p], more[p]);
    }
    return vf_sum_of_lanes(sums, fours);
}

/* g = gradient scale + l2 w, in place of the gradient; vectors is a constant. */
PH_INLINE void penalize(const struct sweep *sweep, size_t vectors, const vf *w, vf *g)
{
    const struct constants *c = &sweep->constants;
    if (sweep->is_scaled) {
        PH_UNROLL
        for (size_t v = 0; v < vectors; v++)
            g[v] = vf_mul(g[v], c->gradient_scale);
    }
    if (sweep->has_penalty) {
        PH_UNROLL
        for (size_t v = 0; v < vectors; v++)
            g[v] = vf_fma(c->l2, w[v], g[v]);
    }
}

/* Updates run r by row-wise Adagrad where a row is `vectors` whole vectors. format and vectors are
 * constants. */
PH_INLINE void step_row(
    struct sweep *sweep, enum ph_row_format format, size_t vectors, size_t r, const uint16_t *random)
{
    const struct ph__embedding_update_args *args = sweep->args;
    const size_t slot = args->unique[r], dim = vectors * VF_WIDTH;
    const struct numbers weights = numbers_at(args->table, format, slot * dim);
    vf g[ROW_VECTORS], w[ROW_VECTORS];
    sum_entries(args->source, args->starts[r], end_of_run(args, r), 0, vectors, 0, vf_first(0), g);
    PH_UNROLL
    for (size_t v = 0; v < vectors; v++)
        w[v] = load_all(format, &weights, v * VF_WIDTH);
    penalize(sweep, vectors, w, g);
    const float mean_square =
        args->square_sums != NULL ? ph__mean_square(args, r) : sum_squares(g, vectors) / (float)dim;
    const vf rate = rowwise_rate(args->step, mean_square, args->s + slot);
    PH_UNROLL
    for (size_t v = 0; v < vectors; v++)
        store_all(format, &weights, v * VF_WIDTH, vf_fnma(rate, g[v], w[v]),
            words_at(sweep, format, r, v * VF_WIDTH, random));
}

/* Updates runs whose rows are `vectors` whole vectors; format and vectors are constants. */
PH_INLINE void update_rows(const struct ph__embedding_update_args *args, enum ph_row_format format,
    size_t vectors, size_t first, size_t last)
{
    struct sweep sweep = {.args = args,
        .constants = broadcast(args->step),
        .is_scaled = args->step->gradient_scale != 1,
        .has_penalty = args->step->l2 != 0,
        .next = first};
    if (is_by_chance(format))
        start(&sweep.chance, args->table);
    for (size_t r = first; r < last; r++) {
        prefetch_run(args, format, r + RUNS_AHEAD);
        step_row(&sweep, format, vectors, r, words_of_run(&sweep, format, r, last));
    }
}

/* Steps run r's numbers, which lie in memory as its gradient does. */
PH_INLINE void step_in_memory(
    const struct ph__embedding_update_args *args, size_t r, const float *gradient, float *weights)
{
    const size_t dim = args->source->dim;
    float *s = args->s + args->unique[r];
    if (args->square_sums == NULL) {
        PH_SIMD(rowwise_adagrad_update)(args->step, dim, gradient, weights, s);
        return;
    }
    PH_SIMD(rowwise_adagrad_step)(args->step, ph__mean_square(args, r), dim, gradient, weights, s);
}

/* Updates rows of any size. The step reads the row's numbers twice, so formats of fewer bytes are first
 * widened to floats beside the gradient. */
PH_INLINE void update_rows_in_scratch(const struct ph__embedding_update_args *args, enum ph_row_format format,
    size_t first, size_t last, float *row_scratch)
{
    const size_t dim = args->source->dim;
    struct sweep sweep = {.args = args, .next = first};
    if (is_by_chance(format))
        start(&sweep.chance, args->table);
    for (size_t r = first; r < last; r++) {
        const size_t slot = args->unique[r];
        const uint16_t *words = words_of_run(&sweep, format, r, last);
        float *weights =
            format == PH_ROWS_FP32 ? (float *)args->table->memory + slot * dim : row_scratch + dim;
        prefetch_run(args, format, r + RUNS_AHEAD);
        gather_run(args->source, args->starts[r], end_of_run(args, r), row_scratch);
        if (format != PH_ROWS_FP32)
            load_numbers(args->table, format, slot * dim, dim, weights);
        step_in_memory(args, r, row_scratch, weights);
        if (is_by_chance(format))
            store_row(&sweep.chance, format, slot, weights, words);
        else if (format == PH_ROWS_BF16_SPLIT)
            store_split(args->table, slot * dim, dim, weights);
    }
}

/* Updates runs by row-wise Adagrad; format is a constant. */
PH_INLINE void update_rowwise(const struct ph__embedding_update_args *args, enum ph_row_format format,
    size_t first, size_t last, float *row_scratch)
{
    switch (args->source->dim) {
    case VF_WIDTH:
        update_rows(args, format, 1, first, last);
        break;
    case 2 * VF_WIDTH:
        update_rows(args, format, 2, first, last);
        break;
    case 4 * VF_WIDTH:
        update_rows(args, format, 4, first, last);
        break;
    case ROW_VECTORS *VF_WIDTH:
        update_rows(args, format, ROW_VECTORS, first, last);
        break;
    default:
        update_rows_in_scratch(args, format, first, last, row_scratch);
    }
}

/* Updates runs by the step's optimizer; format is a constant. */
PH_INLINE void update_format(const struct ph__embedding_update_args *args, enum ph_row_format format,
    size_t first, size_t last, float *row_scratch)
{
    switch (args->step->kind) {
    case PH_SGD:
        update_runs(args, PH_SGD, format, first, last);
        break;
    case PH_MOMENTUM:
        update_runs(args, PH_MOMENTUM, format, first, last);
        break;
    case PH_ADAGRAD:
        update_runs(args, PH_ADAGRAD, format, first, last);
        break;
    case PH_ADAM:
        update_runs(args, PH_ADAM, format, first, last);
        break;
    case PH_ADAMW:
        update_runs(args, PH_ADAMW, format, first, last);
        break;
    default:
        update_rowwise(args, format, first, last, row_scratch);
    }
}

static void update_fp32(
    const struct ph__embedding_update_args *args, size_t first, size_t last, float *row_scratch)
{
    update_format(args, PH_ROWS_FP32, first, last, row_scratch);
}

static void update_fp16(
    const struct ph__embedding_update_args *args, size_t first, size_t last, float *row_scratch)
{
    update_format(args, PH_ROWS_FP16, first, last, row_scratch);
}

static void update_bf16(
    const struct ph__embedding_update_args *args, size_t first, size_t last, float *row_scratch)
{
    update_format(args, PH_ROWS_BF16, first, last, row_scratch);
}

static void update_split(
    const struct ph__embedding_update_args *args, size_t first, size_t last, float *row_scratch)
{
    update_format(args, PH_ROWS_BF16_SPLIT, first, last, row_scratch);
}

void PH_SIMD(embedding_update)(
    const struct ph__embedding_update_args *args, size_t first, size_t last, float *row_scratch)
{
    assert(last <= args->num_unique);
    if (args->table->format == PH_ROWS_FP32)
        update_fp32(args, first, last, row_scratch);
    else if (args->table->format == PH_ROWS_FP16)
        update_fp16(args, first, last, row_scratch);
    else if (args->table->format == PH_ROWS_BF16)
        update_bf16(args, first, last, row_scratch);
    else
        update_split(args, first, last, row_scratch);
}
