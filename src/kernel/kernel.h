/* The kernel table: pure arithmetic on pointers, one implementation per ISA, chosen once at start.
 *
 * Conventions
 * - ref/ is the specification: plain C, built for float and (tests) for double. simd/ holds the variants that
 *   beat the next lower ISA's; an entry without its own variant points at that one.
 * - No allocation, no threads, no errors: callers cut work into blocks (by shape only) and call one kernel
 *   per block. Counts may be zero. Pointers need no alignment. Outputs do not overlap inputs unless said so.
 * - Compiled with -ffp-contract=off; explicit fma in SIMD variants. Sums run in a fixed order for each ISA,
 *   so the same call always gives the same bits; between ISAs results agree within rounding.
 * - `ph_real` is float except in the finite-difference build. */
#ifndef PH_KERNEL_KERNEL_H
#define PH_KERNEL_KERNEL_H

#include <math.h>
#include <stddef.h>
#include <stdint.h>

#include "base/rng.h"
#include "base/thread/cpu.h"
#include "phloem/kernel.h"
#include "phloem/tensor.h"

/* ---- embedding ---- */

/* Pooled lookup of the bags of some samples and features, sample after sample. The bag of sample s and
 * feature f, both counted from 0, has slots[offsets[i] .. offsets[i+1]), i = f * feature_stride + s (offsets
 * index `slots` absolutely). Its D = dim output reals, at out + s * out_stride + f * dim, are
 *
 *     scale * sum_j w_j * table[slot_j]
 *
 * where scale is 1, or 1/length when is_mean, and w_j = weights[j] (absolute index like slots), or 1 when
 * weights is NULL. An empty bag is 0. Rows are read as tensor/row_format.h says; for levels, scale * level +
 * offset, the sums are of w_j scale_j * level and w_j offset_j. */
struct ph__embedding_bag_args {
    const void *table; /* (rows, ph__row_bytes(format, dim)) */
    enum ph_row_format format;
    const uint16_t *low; /* (rows, dim) of bf16_split; NULL: rows are read without their low words */
    size_t dim;
    const uint32_t *slots;
    const ph_real *weights;
    const uint32_t *offsets;
    size_t num_samples, num_features;
    size_t feature_stride; /* bags from one feature of a sample to the next */
    size_t out_stride;     /* reals between the outputs of consecutive samples, >= num_features * dim */
    int is_mean;
    /* For one feature: */
    const ph_real *scales; /* (num_samples) each sample's scale; NULL: as above */
    const void *coming;    /* bytes that the caller reads next: prefetched meanwhile */
    size_t coming_bytes;
    ph_real *out;
};

/* Rows of a table as optimizers see them: numbers that are read, stepped in fp32 and written back. fp16 and
 * bf16 round stochastically (tensor/float16.h), so that steps too small for a row's last bit count on
 * average; bf16_split loses nothing. The random bits of element d of row r of slice k are a pure function of
 * seed, step, k's name, r and d, and depend on no ISA and no thread: bits 16 (d % 2) .. of word d % 8 / 2 of
 * the block (r, d / 8) of base/rng.h. r and d count in the whole logical slice; a table may hold a shard. */
struct ph__row_slice {
    uint64_t stream;     /* random stream, of the slice's logical name */
    size_t end_row;      /* end of its rows in this table */
    size_t first_row;    /* number of its first row here in the whole slice, below 2^32 */
    size_t first_column; /* number of element 0 of its rows here, a multiple of 4 */
};
struct ph__table_rows {
    enum ph_row_format format; /* a trainable format */
    size_t dim;
    void *memory;  /* (rows, ph__row_bytes(format, dim)) */
    uint16_t *low; /* (rows, dim) low words, bf16_split only */
    /* fp16 and bf16 only: */
    uint64_t seed, step;
    const struct ph__row_slice *slices; /* (num_slices), ascending, up to the table's last row */
    size_t num_slices;
};

/* Gradients of merged slots: the gradient of a slot is the sum over its entries e, in order, of
 * coefficients[e] * grad[rows[e]]. Entries are grouped by slot. */
struct ph__embedding_gradient_source {
    size_t num_entries;   /* N: bound of the prefetching beyond a slot's own entries; 0: no prefetching */
    const uint32_t *rows; /* (N) */
    const ph_real *coefficients; /* (N), or NULL: all are one */
    const ph_real *grad;         /* (rows, D) */
    size_t dim;
};

/* Backward and update of merged slots in one sweep: for each run r of [first, last), computes the gradient
 * row of its entries, then the optimizer's step on row unique[r]. The bits are those of
 * embedding_gradient_row and the optimizer's own kernel. m and s are the optimizer's slots as for
 * optimizer_update, (rows, dim) each; for ROWWISE_ADAGRAD s is (rows). Several calls may update different
 * runs concurrently; row_scratch (2 dim) belongs to one call. */
struct ph__optimizer_step;
struct ph__embedding_update_args {
    const struct ph__embedding_gradient_source *source; /* num_entries must be set: it ends the last run */
    const struct ph__optimizer_step *step;
    const uint32_t *unique; /* (num_unique) row of each run */
    const uint32_t *starts; /* (num_unique) first entry of each run */
    size_t num_unique;
    const struct ph__table_rows *table;
    ph_real *m, *s; /* NULL where the optimizer has none */
    /* ROWWISE_ADAGRAD of a shard of the columns: */
    const ph_real *square_sums; /* (num_unique), of each run's whole row; NULL: rows are whole, summed here */
    size_t whole_dim;           /* columns of a whole row; 0: dim */
};

/* ---- products whose rows do not depend on each other ---- */

/* Outputs whose weights lie side by side: (N / 32, K, 32), zeros beyond N. In bf16, numbers j and 16 + j are
 * the low and the high half of a word. */
#define PH_ROW_PRODUCT_PANEL 32

/* y (rows, N) = x (rows, K) W^T + bias (NULL: none), row-major without gaps; W (N,K) packed by
 * ph__row_product_pack. Each output is one sum over k in ascending order, so a row's bits do not depend on
 * the rows beside it. A library, which chooses its loops by the number of rows, does not promise that. */
struct ph__row_product_args {
    size_t rows, in_features, out_features; /* rows, K, N */
    const ph_real *x;
    const void *packed;
    const ph_real *bias;
    ph_real *y;
    bool is_rectified; /* y = relu(...), with the bits of the relu kernel */
    bool is_bf16;      /* the weights are bf16; products and sums are of reals */
};

/* ---- products of numbers of a byte each ---- */

#define PH_INT8_PANEL 32         /* outputs whose weights lie side by side */
#define PH_INT8_TOGETHER 4       /* terms of a sum that lie side by side */
#define PH_INT8_MOST_TERMS 66000 /* of a sum, so that it stays within 32 bits */

/* y (rows, N) = scale_r scale_n sum_k x_rk w_nk + bias_n (NULL: none), row-major without gaps. x are levels
 * of int8_narrow, with a scale a row; W (N,K) is packed by ph__int8_pack, with a scale an output. Sums are
 * exact, and what follows is one product and one fma, so an output's bits depend on its row and its weights
 * alone: not on other rows, on how calls are cut, or on the ISA. A row whose scale is NaN gives NaN. */
struct ph__int8_product_args {
    size_t rows, in_features, out_features; /* rows, K, N */
    const int8_t *x;                        /* (rows, ph__int8_stride(K)) */
    const float *x_scales;                  /* (rows) */
    const void *packed;
    const ph_real *bias;
    ph_real *y;
    bool is_rectified;
    bool has_dot; /* use instructions that ph__cpu_has_int8_dot tells of */
};

/* Returns the bytes of a row of x: K, and a rest that is never used but must be there. */
static inline size_t ph__int8_stride(size_t in_features)
{
    return (in_features + PH_INT8_TOGETHER - 1) / PH_INT8_TOGETHER * PH_INT8_TOGETHER;
}

/* Packs a weight W (N,K), or (K,N) where is_transposed: its levels are those of int8_narrow, with a scale an
 * output. */
struct ph__int8_pack_args {
    size_t out_features, in_features;
    const ph_real *weight;
    bool is_transposed;
    void *packed; /* ph__int8_packed_bytes() */
};

/* Parts of a packed weight: (N / 32, K / 4, 32, 4) levels, then a scale and 128 times the sum of the levels
 * of each output; zeros beyond N and K. */
struct ph__int8_weight {
    int8_t *levels;
    float *scales;
    int32_t *offsets;
};

static inline size_t ph__int8_outputs(size_t out_features)
{
    return (out_features + PH_INT8_PANEL - 1) / PH_INT8_PANEL * PH_INT8_PANEL;
}

static inline size_t ph__int8_packed_bytes(size_t out_features, size_t in_features)
{
    return ph__int8_outputs(out_features) * (ph__int8_stride(in_features) + sizeof(float) + sizeof(int32_t));
}

/* Returns the parts; those of a weight that is only read are not written. */
static inline struct ph__int8_weight ph__int8_weight(
    size_t out_features, size_t in_features, const void *packed)
{
    const size_t outputs = ph__int8_outputs(out_features);
    int8_t *levels = (int8_t *)(uintptr_t)packed;
    float *scales = (float *)(void *)(levels + outputs * ph__int8_stride(in_features));
    return (struct ph__int8_weight){levels, scales, (int32_t *)(void *)(scales + outputs)};
}

/* Returns the place of the first four terms of an output; the next four lie PH_INT8_GROUP further. */
#define PH_INT8_GROUP (PH_INT8_PANEL * PH_INT8_TOGETHER)
static inline size_t ph__int8_place(size_t in_features, size_t output)
{
    const size_t within = output % PH_INT8_PANEL;
    return (output - within) * ph__int8_stride(in_features) + within * PH_INT8_TOGETHER;
}

/* Sets the offsets from the levels. */
static inline void ph__int8_sum_levels(
    size_t out_features, size_t in_features, const struct ph__int8_weight *weight)
{
    for (size_t n = 0; n < ph__int8_outputs(out_features); n++) {
        const int8_t *levels = weight->levels + ph__int8_place(in_features, n);
        int32_t sum = 0;
        for (size_t k = 0; k < ph__int8_stride(in_features); k += PH_INT8_TOGETHER)
            for (size_t t = 0; t < PH_INT8_TOGETHER; t++)
                sum += levels[k * PH_INT8_PANEL + t];
        weight->offsets[n] = 128 * sum;
    }
}

/* ---- weight gradients ---- */

/* A block of C = A^T B over `inner` samples: c[n][k] = sum_m a[m][n] b[m][k], added to c where is_added. Each
 * number is one sum over ascending samples, so its bits do not depend on how C and the samples are cut into
 * calls. Fastest (with AVX-512) are blocks of PH_WEIGHT_PANEL_ROWS x PH_WEIGHT_PANEL_COLUMNS where A and B
 * lie in panels, and of PH_WEIGHT_FEW_ROWS x PH_WEIGHT_WIDE_COLUMNS where they do not; up to
 * PH_WEIGHT_MOST_ROWS rows, of any number of columns, read each number of B once. */
#define PH_WEIGHT_PANEL_ROWS 12
#define PH_WEIGHT_PANEL_COLUMNS 32
#define PH_WEIGHT_FEW_ROWS 6
#define PH_WEIGHT_WIDE_COLUMNS 64
#define PH_WEIGHT_MOST_ROWS 14
struct ph__weight_product_args {
    size_t inner, rows, columns;
    const ph_real *a, *b;
    size_t a_stride, b_stride; /* reals from one sample to the next */
    size_t fetched_samples;    /* prefetch distance of b when it comes from memory; 0: no prefetching */
    ph_real *c;
    size_t c_stride; /* reals from one row of C to the next */
    int is_added;
};

/* ---- small products: of a sample's vectors, among themselves or with a weight ---- */

/* C = A B + bias for `count` pairs of matrices, added to C where is_added. A (rows, inner) may lie any
 * way: its number (r, k) is a[r * a_row_stride + k * a_inner_stride], so a transposed A costs nothing. The
 * columns of B (inner, columns) and C (rows, columns) lie side by side. Each number is one sum over
 * ascending k that begins with bias[r] (NULL: 0) or with C's number, so cutting C and k into calls does
 * not change its bits. */
struct ph__small_product_args {
    size_t count, rows, inner, columns;
    const ph_real *a, *b;
    size_t a_row_stride, a_inner_stride, b_stride;
    const ph_real *bias; /* (rows), not where is_added */
    ph_real *c;
    size_t c_stride;
    size_t a_step, b_step, c_step; /* reals from a pair's matrix to the next pair's; 0: shared (not of C) */
    bool is_added;
};

/* Products of `rows` rows of n numbers each: y_r = a_r b_r, or += where is_added. A stride of 0 reuses the
 * same row. With a y_stride of 0 and is_added, y sums the products in the order of the rows. */
struct ph__multiply_rows_args {
    size_t rows, n;
    const ph_real *a, *b;
    ph_real *y;
    size_t a_stride, b_stride, y_stride;
    bool is_added;
};

/* ---- optimizers ---- */

/* Formulas, g = gradient * gradient_scale + l2 * w:
 *   SGD       w -= lr * g
 *   MOMENTUM  m = momentum * m + g;  w -= lr * m   (nesterov: w -= lr * (g + momentum * m))
 *   ADAGRAD   s += g^2;  w -= lr * g / (sqrt(s) + eps)
 *   ROWWISE_ADAGRAD   one s a row:  s += mean over the row of g^2;  w -= lr * g / (sqrt(s) + eps)
 *   ADAM      m = b1 m + (1-b1) g;  v = b2 v + (1-b2) g^2;  w -= lr * (m / c1) / (sqrt(v / c2) + eps)
 *             with c1 = 1 - b1^t, c2 = 1 - b2^t  (t counts from 1)
 *   ADAMW     first w -= lr * weight_decay * w, then as ADAM */
struct ph__optimizer_step {
    enum ph_optimizer_kind kind;
    int is_nesterov;
    ph_real learning_rate;
    ph_real gradient_scale; /* from clipping; 1 otherwise */
    ph_real l2;             /* lambda of lambda/2 * |w|^2 */
    ph_real weight_decay;   /* decoupled, ADAMW */
    ph_real momentum, beta1, beta2, epsilon;
    ph_real bias_correction1, bias_correction2; /* c1, c2 */
};

/* c = 1 - b^t */
static inline ph_real ph__bias_correction(double beta, double step)
{
    return (ph_real)(1 - pow(beta, step));
}

/* Returns step number `step` (from 1) by a rule, without its learning rate and l2. */
static inline struct ph__optimizer_step ph__optimizer_step(const struct ph_update_rule *rule, double step)
{
    const bool has_moments = rule->kind == PH_ADAM || rule->kind == PH_ADAMW;
    return (struct ph__optimizer_step){
        .kind = rule->kind,
        .is_nesterov = rule->is_nesterov,
        .gradient_scale = 1,
        .weight_decay = (ph_real)rule->weight_decay,
        .momentum = (ph_real)rule->momentum,
        .beta1 = (ph_real)rule->beta1,
        .beta2 = (ph_real)rule->beta2,
        .epsilon = (ph_real)rule->epsilon,
        .bias_correction1 = has_moments ? ph__bias_correction(rule->beta1, step) : 1,
        .bias_correction2 = has_moments ? ph__bias_correction(rule->beta2, step) : 1,
    };
}

/* Row-wise Adagrad's sum of a row's squares depends neither on how its columns are cut nor on the ISA.
 * - Columns are taken in blocks of PH_SQUARES_COLUMNS. Block k's sum is b_k = (g_0^2 + g_1^2) + (g_2^2 +
 *   g_3^2); columns that a last block lacks count 0.
 * - There are PH_SQUARES_SUMS running sums, from 0: a_j = b_j + b_(j+16) + b_(j+32) ...
 *   Of these, c_i = (a_(4i) + a_(4i+2)) + (a_(4i+1) + a_(4i+3)); the row's sum is (c_0 + c_2) + (c_1 + c_3).
 * - g = fma(l2, w, gradient * gradient_scale), where l2 is 0 without w; the step is fma(-rate, g, w); all
 *   else is rounded by itself.
 * So the block sums of shards that begin at multiples of PH_SQUARES_COLUMNS (row_squares, embedding_squares),
 * one after the other, make the sum of the whole row (ph__square_sums). Steps of the shards by its mean over
 * all columns (rowwise_adagrad_step, embedding_update with square_sums) have the bits of the whole row's: the
 * weights, and the s that each shard keeps for itself. */
#define PH_SQUARES_COLUMNS 4
#define PH_SQUARES_SUMS 16
static inline size_t ph__square_blocks(size_t dim)
{
    return dim / PH_SQUARES_COLUMNS + (dim % PH_SQUARES_COLUMNS != 0);
}

/* ---- the hub ---- */

/* One pass over a chunk of n numbers: sums its copies in their order, steps the optimizer with the sum and
 * writes the new weights ("tall" aggregation: Luo et al., Parameter Hub, arXiv:1805.07891). The sum is of
 * ph_real and has the bits of ((c_0 + c_1) + c_2) ... on every ISA; the step has the bits of this ISA's
 * optimizer_update. An output may be an input, the same array of the same type, else overlaps none. */
struct ph__aggregate_args {
    size_t n;
    const ph_real *sum_so_far; /* (n) start of the sum; NULL: the first copy */
    size_t num_copies;         /* >= 1, or 0 with sum_so_far */
    const void *const *copies; /* (num_copies) each (n) of `dtype` */
    enum ph_dtype dtype;       /* of copies and results: PH_F32 (ph_real in every build), PH_F16 or PH_BF16 */
    const struct ph__optimizer_step *step; /* NULL: none; "new weights" are then the sum times sum_scale */
    ph_real sum_scale;                     /* factor of the sum (1 / workers for a mean), applied first */
    const ph_real *weight;                 /* (n) with a step: the old weights */
    ph_real *new_weight;  /* (n) may be `weight`; NULL without a step: only results are wanted */
    ph_real *m, *s;       /* (n) as for optimizer_update */
    size_t num_results;   /* further places for the new weights */
    void *const *results; /* (num_results) each (n) of `dtype`, rounded to nearest even */
    /* Set: arrays that were not read before are stored past the caches, where the ISA and the array's
     * alignment (64 bytes) allow; other threads see the stores once the call has returned. The same bits. */
    bool is_non_temporal;
};

/* ---- block norm ---- */

#define PH_NORM_BLOCK 256
#define PH_NORM_EPSILON 1e-6

/* ---- attention ---- */

/* Scaled dot-product attention of one sample: n queries over m keys, in each of H heads. Head h has the
 * columns [h key_dim, (h + 1) key_dim) of q and k, and [h value_dim, (h + 1) value_dim) of v and y:
 *
 *     s_ij = scale <q_i, k_j>,  L_i = log sum_j exp(s_ij),  p_ij = exp(s_ij - L_i),  y_i = sum_j p_ij v_j
 *
 * Nothing overflows for finite scores. Backward makes p from L, so that nothing of n m numbers is kept
 * between the two (FlashAttention, Dao et al., arXiv:2205.14135, section 3.1):
 *
 *     ds_ij = p_ij (<dy_i, v_j> - sum_j' p_ij' <dy_i, v_j'>)
 *     dq_i = scale sum_j ds_ij k_j,  dk_j = scale sum_i ds_ij q_i,  dv_j = sum_i p_ij dy_i
 *
 * Without keys y and dq are 0; without queries dk and dv are 0. */
struct ph__attention_args {
    size_t num_queries, num_keys; /* n, m */
    size_t num_heads;             /* H */
    size_t key_dim, value_dim;    /* of a head */
    ph_real scale;
    const ph_real *q, *k, *v; /* (n, H key_dim), (m, H key_dim), (m, H value_dim) */
    ph_real *log_sum;         /* (H, n) L: forward writes it unless NULL or m is 0; backward reads it */
    ph_real *y;               /* forward: (n, H value_dim) */
    const ph_real *dy;        /* backward: as y */
    ph_real *dq, *dk, *dv;    /* backward: as q, k and v */
};

/* ---- the table ---- */

struct ph__neighbours;
struct ph__neighbour_list;

struct ph__kernels {
    enum ph__isa isa;

    void (*embedding_bag)(const struct ph__embedding_bag_args *args);
    /* Lists the chosen neighbours of nodes [first, last) (kernel/neighbour_list.h). Returns false when a
     * chosen id is not a node's: the list is then not to be read. */
    bool (*list_neighbours)(const struct ph__neighbours *neighbours, size_t first, size_t last,
        const struct ph__neighbour_list *list);
    /* row_out (dim) = the merged gradient of entries [first, last); no entries: zeros. */
    void (*embedding_gradient_row)(
        const struct ph__embedding_gradient_source *source, size_t first, size_t last, ph_real *row_out);

    void (*embedding_update)(
        const struct ph__embedding_update_args *args, size_t first, size_t last, ph_real *row_scratch);

    /* Writes the block sums of the squares of runs [first, last)'s gradient rows, as ROWWISE_ADAGRAD sums
     * them; run r's go to blocks_out + r * ph__square_blocks(dim). Reads neither m, s nor square_sums, and
     * the table only where l2 is not 0. */
    void (*embedding_squares)(const struct ph__embedding_update_args *args, size_t first, size_t last,
        ph_real *row_scratch, ph_real *blocks_out);

    /* Loads rows [first, first + count) of a table as numbers (count, dim); stores numbers as rows. */
    void (*table_rows_load)(
        const struct ph__table_rows *table, size_t first, size_t count, ph_real *numbers_out);
    void (*table_rows_store)(
        const struct ph__table_rows *table, size_t first, size_t count, const ph_real *numbers);

    void (*row_product)(const struct ph__row_product_args *args);
    /* y (rows, N) = x (rows, K) W^T + bias (NULL: none) for few outputs; W (N,K) is not packed. Each output
     * is one sum in an order that depends on K alone. */
    void (*narrow_product)(size_t rows, size_t in_features, size_t out_features, const ph_real *x,
        const ph_real *weight, const ph_real *bias, ph_real *y);
    void (*weight_product)(const struct ph__weight_product_args *args);
    void (*int8_pack)(const struct ph__int8_pack_args *args);
    void (*int8_product)(const struct ph__int8_product_args *args);

    void (*small_product)(const struct ph__small_product_args *args);
    void (*multiply_rows)(const struct ph__multiply_rows_args *args);
    /* y (columns, rows) = x (rows, columns)^T of each of `count` matrices, one after the other. */
    void (*transpose)(size_t count, size_t rows, size_t columns, const ph_real *x, ph_real *y);
    /* y (b, a, n) = x (a, b, n) with its first two dimensions swapped. */
    void (*interchange)(size_t a, size_t b, size_t n, const ph_real *x, ph_real *y);

    /* Updates n weights elementwise; grad (n) NULL: zeros. m: momentum, Adam's m; s: Adagrad's sum, Adam's v;
     * NULL where the optimizer has none. Not for ROWWISE_ADAGRAD. */
    void (*optimizer_update)(const struct ph__optimizer_step *step, size_t n, const ph_real *grad,
        ph_real *weight, ph_real *m, ph_real *s);
    /* Updates one row of dim weights with a single accumulator *s. */
    void (*rowwise_adagrad_update)(
        const struct ph__optimizer_step *step, size_t dim, const ph_real *grad, ph_real *weight, ph_real *s);
    /* Writes the block sums of squares (ph__square_blocks(dim)) of a row's columns, or of a shard of them.
     * grad NULL: zeros. weight may be NULL where l2 is 0. */
    void (*row_squares)(const struct ph__optimizer_step *step, size_t dim, const ph_real *grad,
        const ph_real *weight, ph_real *blocks_out);
    /* Does the rest of rowwise_adagrad_update, of a shard of the columns too: mean_square is the whole row's
     * sum of squares divided by (ph_real) its columns. */
    void (*rowwise_adagrad_step)(const struct ph__optimizer_step *step, ph_real mean_square, size_t dim,
        const ph_real *grad, ph_real *weight, ph_real *s);

    void (*aggregate)(const struct ph__aggregate_args *args); /* not for ROWWISE_ADAGRAD */

    /* Returns the sum of (x_i + l2 * w_i)^2 in a fixed order, in double. w NULL: x alone; x NULL: zeros. */
    double (*sum_of_squares)(size_t n, const ph_real *x, const ph_real *w, ph_real l2);

    /* ---- interactions: `count` samples x (F,D), one behind the other ---- */

    /* Second-order FM: out[b] = 1/2 sum_d ((sum_f x_fd)^2 - sum_f x_fd^2). */
    void (*fm_forward)(size_t count, size_t num_fields, size_t dim, const ph_real *x, ph_real *out);
    /* dx_fd = g_b * (sum_f' x_f'd - x_fd). */
    void (*fm_backward)(
        size_t count, size_t num_fields, size_t dim, const ph_real *x, const ph_real *grad, ph_real *dx);

    /* Pairwise dot products over F = num_fields vectors. Field 0 of sample b is first + b*D when first is not
     * NULL, and rest (count, F - 1, D) holds the others; with first NULL, rest (count, F, D) holds all. Row b
     * of out, out_stride reals apart, is the strictly lower triangle in row order: <x1,x0>, <x2,x0>, <x2,x1>,
     * ...: F(F-1)/2 numbers. */
    void (*dot_forward)(size_t count, size_t num_fields, size_t dim, const ph_real *first,
        const ph_real *rest, ph_real *out, size_t out_stride);
    /* dx_i = sum_j g_ij x_j in d_first (count,D) (not touched when first is NULL) and d_rest; grad is laid
     * out as out above. add_to_first nonzero: adds to d_first instead of writing it. */
    void (*dot_backward)(size_t count, size_t num_fields, size_t dim, const ph_real *first,
        const ph_real *rest, const ph_real *grad, size_t grad_stride, int add_to_first, ph_real *d_first,
        ph_real *d_rest);

    /* ---- elementwise; in and out may be the same array ---- */
    void (*relu)(size_t n, const ph_real *x, ph_real *y);                              /* NaN stays NaN */
    void (*relu_backward)(size_t n, const ph_real *y, const ph_real *dy, ph_real *dx); /* dy where y > 0 */
    void (*sigmoid)(size_t n, const ph_real *x, ph_real *y);
    void (*sigmoid_backward)(size_t n, const ph_real *y, const ph_real *dy, ph_real *dx); /* dy y (1-y) */
    /* x clamp(x + 3, 0, 6) / 6 */
    void (*hard_swish)(size_t n, const ph_real *x, ph_real *y);
    void (*hard_swish_backward)(size_t n, const ph_real *x, const ph_real *dy, ph_real *dx);
    void (*add)(size_t n, const ph_real *a, const ph_real *b, ph_real *y);
    void (*multiply)(size_t n, const ph_real *a, const ph_real *b, ph_real *y);
    void (*multiply_add)(
        size_t n, const ph_real *a, const ph_real *b, const ph_real *c, ph_real *y); /* a b + c */
    void (*scale)(size_t n, ph_real factor, const ph_real *x, ph_real *y);
    /* y += sum over rows of x (rows, n), row after row: a bias gradient of one block */
    void (*add_rows)(size_t rows, size_t n, const ph_real *x, ph_real *y);

    /* ---- bf16 and back (tensor/float16.h), rounded to nearest even. Not in place ---- */
    void (*bf16_narrow)(size_t n, const ph_real *x, uint16_t *y);
    void (*bf16_widen)(size_t n, const uint16_t *x, ph_real *y);

    /* ---- numbers sent between ranks (comm/wire/wire_format.h): same bits on every ISA. Not in place ---- */
    void (*fp16_narrow)(size_t n, const ph_real *x, uint16_t *y); /* as ph__half_from_float */
    void (*fp16_widen)(size_t n, const uint16_t *x, ph_real *y);
    /* y = x / scale rounded to nearest even, with the returned scale = largest |x| / 127. Returns 0, y zeros,
     * where the scale is less than FLT_MIN; NaN, y zeros, where the scale or a number is not finite. */
    float (*int8_narrow)(size_t n, const ph_real *x, int8_t *y);
    void (*int8_widen)(size_t n, const int8_t *x, float scale, ph_real *y); /* y = x scale */

    /* Inverted dropout of `rows` samples of n elements; sample r has rng index first_sample + r. mask (rows,
     * n) gets 1 for kept elements, 0 for others; kept elements are multiplied by 1 / (1 - rate), rate < 1.
     * Bit-equal on every ISA: an element is kept when its ph__rng_word >= rate * 2^32 (rounded to uint64). */
    void (*dropout)(const struct ph__rng_key *key, uint64_t first_sample, size_t rows, size_t n, double rate,
        const ph_real *x, ph_real *y, uint8_t *mask);
    void (*dropout_backward)(size_t n, double rate, const uint8_t *mask, const ph_real *dy, ph_real *dx);

    /* ---- batch norm over (rows, n); statistics in double, so that blocks combine exactly in order ---- */
    void (*batch_norm_sums)(size_t rows, size_t n, const ph_real *x, const double *shift, double *sum,
        double *sum_of_squares); /* adds sum_r (x - shift_j), sum_r (x - shift_j)^2; shift may be NULL (0) */
    /* y = (x - mean) * inv_std * gamma + beta, each (n) */
    void (*batch_norm_apply)(size_t rows, size_t n, const ph_real *x, const ph_real *mean,
        const ph_real *inv_std, const ph_real *gamma, const ph_real *beta, ph_real *y);
    /* adds sum_r dy and sum_r dy * (x - mean) * inv_std */
    void (*batch_norm_gradient_sums)(size_t rows, size_t n, const ph_real *x, const ph_real *dy,
        const ph_real *mean, const ph_real *inv_std, double *sum_dy, double *sum_dy_xhat);
    /* dx = gamma inv_std (dy - mean_dy - xhat mean_dy_xhat) */
    void (*batch_norm_backward)(size_t rows, size_t n, const ph_real *x, const ph_real *dy,
        const ph_real *mean, const ph_real *inv_std, const ph_real *gamma, const ph_real *mean_dy,
        const ph_real *mean_dy_xhat, ph_real *dx);

    /* ---- layer norm over the n numbers of each row ----
     * y = (x - mean) inv_std gamma + beta with the row's mean and inv_std = 1 / sqrt(variance + epsilon);
     * statistics (rows, 2) gets mean and inv_std, unless it is NULL. y may be x. n > 0 */
    void (*layer_norm)(size_t rows, size_t n, const ph_real *x, const ph_real *gamma, const ph_real *beta,
        double epsilon, ph_real *y, ph_real *statistics);
    /* With xhat = (x - mean) inv_std and g = dy gamma: dx = inv_std (g - mean of g - xhat mean of g xhat),
     * means over the row. Adds sum_r dy xhat to d_gamma and sum_r dy to d_beta, (n) each. n > 0, and dx may
     * be dy. */
    void (*layer_norm_backward)(size_t rows, size_t n, const ph_real *x, const ph_real *dy,
        const ph_real *statistics, const ph_real *gamma, ph_real *dx, ph_real *d_gamma, ph_real *d_beta);

    /* ---- block norm of rows of n numbers: RMS norm over each PH_NORM_BLOCK of a row, and a shorter last
     * block ----
     * y = f(x / sqrt(mean square of the block + PH_NORM_EPSILON)), f hard swish where is_swished, else the
     * identity. A row's bits do not depend on the rows beside it. y may be x, and dx may be dy. */
    void (*block_norm)(size_t rows, size_t n, bool is_swished, const ph_real *x, ph_real *y);
    void (*block_norm_backward)(
        size_t rows, size_t n, bool is_swished, const ph_real *x, const ph_real *dy, ph_real *dx);

    void (*attention_forward)(const struct ph__attention_args *args);
    void (*attention_backward)(const struct ph__attention_args *args);

    /* ---- loss: binary cross entropy with logits, elementwise over n ----
     * loss = w (max(z,0) - z y + log(1 + exp(-|z|))); weights NULL: 1 (callers multiply a mask into the
     * weights). Finite for every finite z. Returns the sum in double, in a fixed order. */
    double (*bce)(size_t n, const ph_real *logits, const ph_real *labels, const ph_real *weights);
    /* dz = scale * w (sigmoid(z) - y) */
    void (*bce_backward)(size_t n, const ph_real *logits, const ph_real *labels, const ph_real *weights,
        ph_real scale, ph_real *dz);

    /* ---- merging slots (see ph__slot_sort) ----
     * Turns the lengths of runs into their starts, up to the last run: for each slot of lengths (range, at
     * most 2^31) that is not 0, appends base + slot to unique and its start to starts. count: the sum of
     * lengths. Returns the number of runs. */
    size_t (*list_runs)(
        uint32_t range, size_t count, uint32_t base, uint32_t *lengths, uint32_t *unique, uint32_t *starts);
};

/* Returns the table of an ISA that this build has and this processor runs (see ph__cpu_isa). Static,
 * immutable. */
const struct ph__kernels *ph__kernels_for(enum ph__isa isa);

/* Returns the mean square of run r, whose sum is given. */
static inline ph_real ph__mean_square(const struct ph__embedding_update_args *args, size_t r)
{
    return args->square_sums[r] / (ph_real)(args->whole_dim != 0 ? args->whole_dim : args->source->dim);
}

/* Returns the total of the running sums of squares. */
static inline ph_real ph__add_square_sums(const ph_real sums[PH_SQUARES_SUMS])
{
    ph_real c[4];
    for (int i = 0; i < 4; i++)
        c[i] = (sums[4 * i] + sums[4 * i + 2]) + (sums[4 * i + 1] + sums[4 * i + 3]);
    return (c[0] + c[2]) + (c[1] + c[3]);
}

/* Sums rows' squares from their block sums: sums_out[r] for r in [first, last). Shards come in the order of
 * their columns, each but the last of a multiple of PH_SQUARES_COLUMNS. */
struct ph__square_shard {
    const ph_real *blocks; /* (rows, num_blocks) */
    size_t num_blocks;
};
void ph__square_sums(
    const struct ph__square_shard *shards, size_t num_shards, size_t first, size_t last, ph_real *sums_out);

/* Layout of row_product's weights, the same for every ISA. */
size_t ph__row_product_packed_bytes(size_t out_features, size_t in_features, bool is_bf16);
/* Packs weight (N,K), or (K,N) where is_transposed. */
void ph__row_product_pack(size_t out_features, size_t in_features, bool is_transposed, bool is_bf16,
    const ph_real *weight, void *packed);

/* Sorts one run of slots stably: the heart of merging duplicates.
 *
 * Sorts count slots in [base, base + range) ascending, ties by position: slots[i] has position first_position
 * + i. Writes the sorted positions to order (count) and, for each distinct slot, its value to unique and the
 * index in `order` where its run starts to starts (count each). Returns the number of runs. scratch holds
 * ph__slot_sort_scratch_bytes(count), aligned to 8. Sorts by just the bits that range - 1 needs. */
size_t ph__slot_sort(const struct ph__kernels *kernels, const uint32_t *slots, size_t count, uint32_t base,
    uint32_t range, uint32_t first_position, uint32_t *order, uint32_t *unique, uint32_t *starts,
    void *scratch);
size_t ph__slot_sort_scratch_bytes(size_t count);

#endif
