/* Attention of one sample, head after head. Blocks of queries meet blocks of keys, and the numbers between
 * the products stay in the first cache. Up to KEYS keys, the usual case, are one block, whose scores are
 * computed once. For more keys the exponentials are summed as Milakov and Gimelshein (arXiv:1805.02867) do:
 * earlier sums shrink when a larger score comes.
 *
 * Scores are vectors over keys, so keys are transposed first. Lanes beyond the last key repeat it: they
 * change no maximum, and are cut off where exponentials are summed. */
#include "kernel/simd/simd.h"

enum {
    QUERIES = 64, /* per block */
    KEYS = 64,
    WIDTH = 64, /* numbers of a head transposed at a time */
    GROUPS = VF_WIDTH / 4,
    CACHE_LINE = 16 /* numbers */
};

/* One head of a sample. */
struct head {
    const struct ph__attention_args *args;
    size_t key_row, value_row; /* numbers from a row to the next: H key_dim, H value_dim */
    size_t index;              /* h */
    size_t key, value;         /* first column of the head: h key_dim, h value_dim */
    float *log_sum;            /* (n); NULL: not wanted */
};

/* Some of a head's queries and keys. */
struct block {
    size_t query, num_queries, key, num_keys;
    size_t row; /* numbers from a row of scores to the next: num_keys in whole vectors */
};

/* Scratch of a block of queries. */
struct scratch {
    _Alignas(64) float turned[WIDTH * KEYS];
    _Alignas(64) float scores[QUERIES * KEYS], gradients[QUERIES * KEYS];
    _Alignas(64) float largest[QUERIES], sum[QUERIES]; /* by query */
};

static struct head head_at(const struct ph__attention_args *args, size_t h)
{
    return (struct head){.args = args,
        .index = h,
        .key_row = args->num_heads * args->key_dim,
        .value_row = args->num_heads * args->value_dim,
        .key = h * args->key_dim,
        .value = h * args->value_dim,
        .log_sum = args->log_sum != NULL ? args->log_sum + h * args->num_queries : NULL};
}

static struct block block_at(const struct head *x, size_t query, size_t key)
{
    const size_t queries = x->args->num_queries - query, keys = x->args->num_keys - key;
    struct block block = {.query = query, .key = key};
    block.num_queries = queries < QUERIES ? queries : QUERIES;
    block.num_keys = keys < KEYS ? keys : KEYS;
    block.row = (block.num_keys + VF_WIDTH - 1) / VF_WIDTH * VF_WIDTH;
    return block;
}

/* ---- scores ---- */

/* Turns VF_WIDTH numbers, or those of `mask`, of VF_WIDTH rows of x into columns; row `last` is repeated. */
PH_INLINE void turn_block(
    const float *x, size_t x_row, size_t last, vmask mask, float *turned, size_t turned_row)
{
    vf lanes[4][GROUPS];
    PH_UNROLL
    for (size_t g = 0; g < GROUPS; g++) {
        vf four[4];
        PH_UNROLL
        for (size_t r = 0; r < 4; r++) {
            const size_t row = 4 * g + r;
            four[r] = vf_load_mask(x + (row < last ? row : last) * x_row, mask);
        }
        vf_interleave(four);
        PH_UNROLL
        for (size_t r = 0; r < 4; r++)
            lanes[r][g] = four[r];
    }
    PH_UNROLL
    for (size_t r = 0; r < 4; r++) {
        vf_transpose_fours(lanes[r]);
        PH_UNROLL
        for (size_t g = 0; g < GROUPS; g++)
            vf_store(turned + (4 * g + r) * turned_row, lanes[r][g]);
    }
}

/* Transposes x (count, width) into turned (width, turned_row). */
static void turn(const float *x, size_t count, size_t x_row, size_t width, float *turned, size_t turned_row)
{
    for (size_t d = 0; d < width; d += VF_WIDTH) {
        const vmask mask = vf_first(width - d < VF_WIDTH ? width - d : VF_WIDTH);
        for (size_t j = 0; j < count; j += VF_WIDTH)
            turn_block(
                x + j * x_row + d, x_row, count - 1 - j, mask, turned + d * turned_row + j, turned_row);
    }
}

/* out (num_queries, row) = a b^T over `width` numbers of a head's rows; a has num_queries rows, b
 * num_keys. */
static void products_of_rows(const struct block *block, const float *a, const float *b, size_t stride,
    size_t width, float *turned, float *out)
{
    for (size_t d = 0; d < width; d += WIDTH) {
        const size_t inner = width - d < WIDTH ? width - d : WIDTH;
        turn(b + d, block->num_keys, stride, inner, turned, block->row);
        PH_SIMD(small_product)
        (&(struct ph__small_product_args){.count = 1,
            .rows = block->num_queries,
            .inner = inner,
            .columns = block->row,
            .a = a + d,
            .a_row_stride = stride,
            .a_inner_stride = 1,
            .b = turned,
            .b_stride = block->row,
            .c = out,
            .c_stride = block->row,
            .is_added = d > 0});
    }
}

/* <q_i, k_j> */
static void make_scores(const struct head *x, const struct block *block, struct scratch *scratch)
{
    const struct ph__attention_args *args = x->args;
    products_of_rows(block, args->q + block->query * x->key_row + x->key,
        args->k + block->key * x->key_row + x->key, x->key_row, args->key_dim, scratch->turned,
        scratch->scores);
}

/* out (num_queries, width) = weights (num_queries, num_keys) times rows of values of a head */
static void weigh_rows(const struct block *block, const float *weights, const float *rows, size_t stride,
    size_t width, float *out, int is_added)
{
    PH_SIMD(small_product)
    (&(struct ph__small_product_args){.count = 1,
        .rows = block->num_queries,
        .inner = block->num_keys,
        .columns = width,
        .a = weights,
        .a_row_stride = block->row,
        .a_inner_stride = 1,
        .b = rows,
        .b_stride = stride,
        .c = out,
        .c_stride = stride,
        .is_added = is_added});
}

/* out (num_keys, width) = weights^T times rows of queries of a head */
static void weigh_columns(const struct block *block, const float *weights, const float *rows, size_t stride,
    size_t width, float *out, int is_added)
{
    PH_SIMD(small_product)
    (&(struct ph__small_product_args){.count = 1,
        .rows = block->num_keys,
        .inner = block->num_queries,
        .columns = width,
        .a = weights,
        .a_row_stride = 1,
        .a_inner_stride = block->row,
        .b = rows,
        .b_stride = stride,
        .c = out,
        .c_stride = stride,
        .is_added = is_added});
}

/* Turns a row of scores into exp(scale s - shift), 0 beyond num_keys; returns the sum. */
PH_INLINE vf exponentials(float *row, size_t num_keys, vf scale, vf shift)
{
    vf sum = vf_zero();
    for (size_t j = 0; j < num_keys; j += VF_WIDTH) {
        const vmask mask = vf_first(num_keys - j < VF_WIDTH ? num_keys - j : VF_WIDTH);
        const vf e = vf_exp_nonpositive(vf_sub(vf_mul(scale, vf_load(row + j)), shift));
        const vf kept = vf_keep_lanes(mask, e);
        vf_store(row + j, kept);
        sum = vf_add(sum, kept);
    }
    return sum;
}

/* ---- the sample ---- */

/* Prefetches the head's share of the next sample's rows: as many as this sample has, KEYS at most. */
PH_INLINE void fetch_share(const struct head *x, const float *rows, size_t num_rows, size_t row)
{
    const float *next = rows + num_rows * row;
    const size_t count = (num_rows < KEYS ? num_rows : KEYS) * row, heads = x->args->num_heads;
    for (size_t i = count * x->index / heads; i < count * (x->index + 1) / heads; i += CACHE_LINE)
        __builtin_prefetch(next + i);
}

/* Prefetches the next sample, which follows this one in memory and is seldom in a cache: each head fetches
 * its share, inputs and outputs alike. Inline, because gcc drops calls of a function that only prefetches. */
PH_INLINE void fetch_ahead(const struct head *x, int is_backward)
{
    const struct ph__attention_args *args = x->args;
    fetch_share(x, args->q, args->num_queries, x->key_row);
    fetch_share(x, args->k, args->num_keys, x->key_row);
    fetch_share(x, args->v, args->num_keys, x->value_row);
    fetch_share(x, is_backward ? args->dy : args->y, args->num_queries, x->value_row);
    if (!is_backward)
        return;
    fetch_share(x, args->dq, args->num_queries, x->key_row);
    fetch_share(x, args->dk, args->num_keys, x->key_row);
    fetch_share(x, args->dv, args->num_keys, x->value_row);
}

static void clear_rows(float *x, size_t rows, size_t row)
{
    for (size_t i = 0; i < rows * row; i++)
        x[i] = 0;
}

/* ---- forward ---- */

/* Returns the largest scaled score of a row. */
PH_INLINE float largest_of(const float *row, size_t length, vf scale)
{
    vf largest = vf_mul(scale, vf_load(row));
    for (size_t j = VF_WIDTH; j < length; j += VF_WIDTH)
        largest = vf_max(largest, vf_mul(scale, vf_load(row + j)));
    return vf_largest(largest);
}

/* y_i *= factors_i, for the queries of a block */
static void scale_rows(const struct head *x, const struct block *block, const float *factors)
{
    float *y = x->args->y + block->query * x->value_row + x->value;
    for (size_t i = 0; i < block->num_queries; i++, y += x->value_row) {
        const vf factor = vf_set1(factors[i]);
        for (size_t d = 0; d < x->args->value_dim; d += VF_WIDTH) {
            const size_t left = x->args->value_dim - d;
            const vmask mask = vf_first(left < VF_WIDTH ? left : VF_WIDTH);
            vf_store_mask(y + d, mask, vf_mul(factor, vf_load_mask(y + d, mask)));
        }
    }
}

/* Returns the mask of VF_WIDTH queries from `query` on, as far as the block has them. */
PH_INLINE vmask first_queries(const struct block *block, size_t query)
{
    const size_t left = block->num_queries - query;
    return vf_first(left < VF_WIDTH ? left : VF_WIDTH);
}

/* Rescales sums and outputs taken relative to the former largest scores to the new largest scores; `factors`
 * holds former - new on entry. */
static void shrink_sums(const struct head *x, const struct block *block, struct scratch *scratch)
{
    float *factors = scratch->gradients;
    for (size_t i = 0; i < block->num_queries; i += VF_WIDTH) {
        const vmask mask = first_queries(block, i);
        const vf factor = vf_exp_nonpositive(vf_load_mask(factors + i, mask));
        vf_store(factors + i, factor);
        vf_store(scratch->sum + i, vf_mul(factor, vf_load_mask(scratch->sum + i, mask)));
    }
    scale_rows(x, block, factors);
}

/* Turns scores into exponentials relative to their query's largest score so far, and sums them. */
static void sum_exponentials(const struct head *x, const struct block *block, struct scratch *scratch)
{
    const vf scale = vf_set1(x->args->scale);
    float *factors = scratch->gradients;
    for (size_t i = 0; i < block->num_queries; i++) {
        const float largest = largest_of(scratch->scores + i * block->row, block->row, scale);
        const float former = block->key > 0 ? scratch->largest[i] : largest;
        scratch->largest[i] = former > largest ? former : largest;
        factors[i] = former - scratch->largest[i];
    }
    if (block->key > 0)
        shrink_sums(x, block, scratch);
    for (size_t i = 0; i < block->num_queries; i++) {
        const float sum = vf_sum(exponentials(
            scratch->scores + i * block->row, block->num_keys, scale, vf_set1(scratch->largest[i])));
        scratch->sum[i] = block->key > 0 ? scratch->sum[i] + sum : sum;
    }
}

/* y_i /= sum_i,  L_i = largest_i + log sum_i */
static void finish_queries(const struct head *x, const struct block *block, struct scratch *scratch)
{
    float *factors = scratch->gradients;
    for (size_t i = 0; i < block->num_queries; i += VF_WIDTH) {
        const vmask mask = first_queries(block, i);
        const vf sum = vf_load_mask(scratch->sum + i, mask);
        vf_store(factors + i, vf_div(vf_set1(1), sum));
        if (x->log_sum != NULL)
            vf_store_mask(x->log_sum + block->query + i, mask,
                vf_add(vf_load_mask(scratch->largest + i, mask), vf_log_from_one(sum)));
    }
    scale_rows(x, block, factors);
}

static void forward_queries(const struct head *x, size_t query)
{
    const struct ph__attention_args *args = x->args;
    struct scratch scratch;
    struct block block;
    for (size_t key = 0; key < args->num_keys; key += KEYS) {
        block = block_at(x, query, key);
        make_scores(x, &block, &scratch);
        sum_exponentials(x, &block, &scratch);
        weigh_rows(&block, scratch.scores, args->v + key * x->value_row + x->value, x->value_row,
            args->value_dim, args->y + query * x->value_row + x->value, key > 0);
    }
    finish_queries(x, &block, &scratch);
}

void PH_SIMD(attention_forward)(const struct ph__attention_args *args)
{
    if (args->num_keys == 0)
        clear_rows(args->y, args->num_queries, args->num_heads * args->value_dim);
    for (size_t h = 0; h < args->num_heads && args->num_keys > 0; h++) {
        const struct head head = head_at(args, h);
        fetch_ahead(&head, 0);
        for (size_t query = 0; query < args->num_queries; query += QUERIES)
            forward_queries(&head, query);
    }
}

/* ---- backward ---- */

/* Turns scores into p, and computes the gradients <dy_i, v_j>. The scores have the bits that they had in
 * forward, so none is above its L. */
static void make_probabilities(const struct head *x, const struct block *block, struct scratch *scratch)
{
    const struct ph__attention_args *args = x->args;
    const vf scale = vf_set1(args->scale);
    make_scores(x, block, scratch);
    for (size_t i = 0; i < block->num_queries; i++)
        (void)exponentials(
            scratch->scores + i * block->row, block->num_keys, scale, vf_set1(x->log_sum[block->query + i]));
    products_of_rows(block, args->dy + block->query * x->value_row + x->value,
        args->v + block->key * x->value_row + x->value, x->value_row, args->value_dim, scratch->turned,
        scratch->gradients);
}

/* sum_i += sum_j p_ij g_ij. Lanes beyond the last key have p 0 and repeat the last key's gradient, which is
 * finite unless that key's is not. */
static void add_means(const struct block *block, struct scratch *scratch)
{
    for (size_t i = 0; i < block->num_queries; i++) {
        const float *p = scratch->scores + i * block->row, *g = scratch->gradients + i * block->row;
        vf sum = vf_zero();
        for (size_t j = 0; j < block->row; j += VF_WIDTH)
            sum = vf_fma(vf_load(p + j), vf_load(g + j), sum);
        const float mean = vf_sum(sum);
        scratch->sum[i] = block->key > 0 ? scratch->sum[i] + mean : mean;
    }
}

/* Turns gradients into scale ds_ij = scale p_ij (g_ij - sum_i). */
static void score_gradients(const struct head *x, const struct block *block, struct scratch *scratch)
{
    const vf scale = vf_set1(x->args->scale);
    for (size_t i = 0; i < block->num_queries; i++) {
        const float *p = scratch->scores + i * block->row;
        float *g = scratch->gradients + i * block->row;
        const vf mean = vf_set1(scratch->sum[i]);
        for (size_t j = 0; j < block->row; j += VF_WIDTH)
            vf_store(g + j, vf_mul(vf_mul(scale, vf_load(p + j)), vf_sub(vf_load(g + j), mean)));
    }
}

static void add_gradients(const struct head *x, const struct block *block, const struct scratch *scratch)
{
    const struct ph__attention_args *args = x->args;
    const size_t key = block->key * x->key_row + x->key, query = block->query * x->key_row + x->key;
    weigh_rows(block, scratch->gradients, args->k + key, x->key_row, args->key_dim, args->dq + query,
        block->key > 0);
    weigh_columns(block, scratch->gradients, args->q + query, x->key_row, args->key_dim, args->dk + key,
        block->query > 0);
    weigh_columns(block, scratch->scores, args->dy + block->query * x->value_row + x->value, x->value_row,
        args->value_dim, args->dv + block->key * x->value_row + x->value, block->query > 0);
}

static void backward_queries(const struct head *x, size_t query)
{
    const size_t num_keys = x->args->num_keys;
    struct scratch scratch;
    for (size_t key = 0; key < num_keys; key += KEYS) {
        const struct block block = block_at(x, query, key);
        make_probabilities(x, &block, &scratch);
        add_means(&block, &scratch);
    }
    for (size_t key = 0; key < num_keys; key += KEYS) {
        const struct block block = block_at(x, query, key);
        if (num_keys > KEYS)
            make_probabilities(x, &block, &scratch);
        score_gradients(x, &block, &scratch);
        add_gradients(x, &block, &scratch);
    }
}

void PH_SIMD(attention_backward)(const struct ph__attention_args *args)
{
    const size_t key_row = args->num_heads * args->key_dim, value_row = args->num_heads * args->value_dim;
    if (args->num_keys == 0)
        clear_rows(args->dq, args->num_queries, key_row);
    if (args->num_queries == 0) {
        clear_rows(args->dk, args->num_keys, key_row);
        clear_rows(args->dv, args->num_keys, value_row);
    }
    for (size_t h = 0; h < args->num_heads && args->num_keys > 0; h++) {
        const struct head head = head_at(args, h);
        fetch_ahead(&head, 1);
        for (size_t query = 0; query < args->num_queries; query += QUERIES)
            backward_queries(&head, query);
    }
}
