/* Pooled embedding lookup. A bag's sum stays in registers while its rows pass, and coming rows are
 * prefetched. For one feature, the distance is LINES_AHEAD lines, into the first cache; for several, one bag
 * of the same feature, into the second cache (each measured to be the better there). Wider rows are pooled in
 * blocks of columns.
 *
 * One body serves all formats of rows: it is inlined for each, the format a constant. A row of levels
 * multiplies its scale into its weight, and its offset is added to one number for the whole bag, so a level
 * costs one multiply-add, too. */

#include "kernel/simd/simd.h"
#include "tensor/float16.h"
#include "tensor/row_format.h"

enum { MAX_VECTORS = 8, LINES_AHEAD = 64, OUTPUTS_AHEAD = 8, LINE_BYTES = 64 };
enum { NEAR = 3, FAR = 2 /* hints: into the first cache, into the second */ };

/* A block of columns of all rows. */
struct columns {
    const unsigned char *table; /* first row's numbers in these columns */
    size_t row_bytes;
    const uint16_t *low; /* bf16_split: the first row's low words; rows are dim apart */
    size_t dim;
    size_t range_at; /* levels: distance from the block's first number to scale and offset */
    size_t num_last; /* numbers in the vector that is not full */
    vmask last;      /* and their lanes */
};

struct range {
    float scale, offset;
};

PH_INLINE int has_levels(enum ph_row_format format)
{
    return format == PH_ROWS_INT8 || format == PH_ROWS_INT4;
}

/* Returns the bytes of `count` numbers, without scale and offset. */
PH_INLINE size_t number_bytes(enum ph_row_format format, size_t count)
{
    switch (format) {
    case PH_ROWS_FP16:
    case PH_ROWS_BF16:
    case PH_ROWS_BF16_SPLIT:
        return 2 * count;
    case PH_ROWS_INT8:
        return count;
    case PH_ROWS_INT4:
        return (count + 1) / 2;
    default:
        return count * sizeof(float);
    }
}

PH_INLINE const uint16_t *low_at(enum ph_row_format format, const uint16_t *low, size_t i)
{
    return format == PH_ROWS_BF16_SPLIT ? low + i : NULL;
}

/* Loads a vector of numbers; low: the numbers' low words, of split rows. */
PH_INLINE vf load_numbers(enum ph_row_format format, const unsigned char *p, const uint16_t *low)
{
    switch (format) {
    case PH_ROWS_BF16_SPLIT:
        return vf_of_bits(vu_add(vu_bits(vf_load_bfloats(p)), vu_load_signed_words(low)));
    case PH_ROWS_FP16:
        return vf_load_halves(p);
    case PH_ROWS_BF16:
        return vf_load_bfloats(p);
    case PH_ROWS_INT8:
        return vf_load_bytes(p);
    case PH_ROWS_INT4:
        return vf_load_nibbles(p);
    default:
        return vf_load((const float *)(const void *)p);
    }
}

PH_INLINE vf load_last_numbers(
    enum ph_row_format format, const unsigned char *p, const uint16_t *low, const struct columns *columns)
{
    switch (format) {
    case PH_ROWS_BF16_SPLIT:
        return vf_of_bits(vu_add(vu_bits(vf_load_first_bfloats(p, columns->num_last)),
            vu_load_first_signed_words(low, columns->num_last)));
    case PH_ROWS_FP16:
        return vf_load_first_halves(p, columns->num_last);
    case PH_ROWS_BF16:
        return vf_load_first_bfloats(p, columns->num_last);
    case PH_ROWS_INT8:
        return vf_load_first_bytes(p, columns->num_last);
    case PH_ROWS_INT4:
        return vf_load_first_nibbles(p, columns->num_last);
    default:
        return vf_load_mask((const float *)(const void *)p, columns->last);
    }
}

PH_INLINE struct range load_range(enum ph_row_format format, const unsigned char *p)
{
    struct range range;
    if (format == PH_ROWS_INT8) {
        memcpy(&range, p, sizeof range);
    } else {
        int halves;
        memcpy(&halves, p, sizeof halves);
        const __m128 both = _mm_cvtph_ps(_mm_cvtsi32_si128(halves));
        range.scale = _mm_cvtss_f32(both);
        range.offset = _mm_cvtss_f32(_mm_movehdup_ps(both));
    }
    return range;
}

/* Prefetches a line; hint is a constant. */
PH_INLINE void prefetch(const unsigned char *line, int hint)
{
    if (hint == NEAR)
        __builtin_prefetch(line, 0, NEAR);
    else
        __builtin_prefetch(line, 0, FAR);
}

PH_INLINE void prefetch_row(const unsigned char *row, size_t bytes, int hint)
{
    PH_UNROLL
    for (size_t i = 0; i < bytes; i += LINE_BYTES)
        prefetch(row + i, hint);
    if (bytes % LINE_BYTES != 0)
        prefetch(row + bytes - 1, hint);
}

/* Prefetches the lines of a coming output for writing; the output may lie behind the last one. */
PH_INLINE void fetch_output(const float *out, size_t width)
{
    PH_UNROLL
    for (size_t i = 0; i < width; i += LINE_BYTES / sizeof *out)
        __builtin_prefetch(out + i, 1, 3);
}

/* Returns the lines of what the caller reads next that one sample prefetches. */
PH_INLINE size_t coming_lines_of(const struct ph__embedding_bag_args *args)
{
    const size_t lines = args->coming_bytes / LINE_BYTES;
    return args->num_samples > 0 ? (lines + args->num_samples - 1) / args->num_samples : 0;
}

/* Prefetches sample s's share of what the caller reads next into the second cache. */
PH_INLINE void fetch_coming(const struct ph__embedding_bag_args *args, size_t s, size_t lines)
{
    const unsigned char *coming = (const unsigned char *)args->coming + s * lines * LINE_BYTES;
    for (size_t i = 0; i < lines; i++)
        prefetch(coming + i * LINE_BYTES, FAR);
}

/* Returns the bytes of a row's block. */
PH_INLINE size_t block_bytes(enum ph_row_format format, size_t vectors, int has_tail)
{
    return number_bytes(format, vectors * VF_WIDTH + (has_tail ? 1 : 0));
}

/* Returns the factor of a sample's sum. */
PH_INLINE float scale_of(const struct ph__embedding_bag_args *args, size_t sample, size_t length)
{
    if (args->scales != NULL)
        return args->scales[sample];
    return args->is_mean && length > 0 ? 1.0F / (float)length : 1.0F;
}

/* Pools the bag [first, last) of a sample into the block's whole vectors and, if has_tail, the rest of the
 * columns. format, hint, vectors and has_tail are constants. Prefetches the rows of the slots `ahead` further
 * on, up to slot end - 1. */
PH_INLINE void pool_bag(const struct ph__embedding_bag_args *args, const struct columns *columns,
    size_t sample, size_t first, size_t last, size_t ahead, size_t end, enum ph_row_format format, int hint,
    size_t vectors, int has_tail, float *out)
{
    vf sum[MAX_VECTORS + 1];
    float offset = 0;
    PH_UNROLL
    for (size_t v = 0; v <= vectors; v++)
        sum[v] = vf_zero();
    for (size_t j = first; j < last; j++) {
        const size_t coming = j + ahead < end ? j + ahead : end - 1;
        const unsigned char *fetched = columns->table + args->slots[coming] * columns->row_bytes;
        prefetch_row(fetched, block_bytes(format, vectors, has_tail), hint);
        const unsigned char *row = columns->table + args->slots[j] * columns->row_bytes;
        const uint16_t *low = NULL;
        if (format == PH_ROWS_BF16_SPLIT) {
            const uint16_t *low_fetched = columns->low + args->slots[coming] * columns->dim;
            prefetch_row((const unsigned char *)low_fetched, block_bytes(format, vectors, has_tail), hint);
            low = columns->low + args->slots[j] * columns->dim;
        }
        float factor = args->weights != NULL ? args->weights[j] : 1.0F;
        if (has_levels(format)) {
            prefetch(fetched + columns->range_at, hint);
            const struct range range = load_range(format, row + columns->range_at);
            offset = fmaf(factor, range.offset, offset);
            factor *= range.scale;
        }
        const vf weight = vf_set1(factor);
        PH_UNROLL
        for (size_t v = 0; v < vectors; v++)
            sum[v] = vf_fma(weight,
                load_numbers(
                    format, row + number_bytes(format, v * VF_WIDTH), low_at(format, low, v * VF_WIDTH)),
                sum[v]);
        if (has_tail)
            sum[vectors] = vf_fma(weight,
                load_last_numbers(format, row + number_bytes(format, vectors * VF_WIDTH),
                    low_at(format, low, vectors * VF_WIDTH), columns),
                sum[vectors]);
    }
    const vf scale = vf_set1(scale_of(args, sample, last - first));
    if (has_levels(format)) {
        PH_UNROLL
        for (size_t v = 0; v <= vectors; v++)
            sum[v] = vf_add(sum[v], vf_set1(offset));
    }
    PH_UNROLL
    for (size_t v = 0; v < vectors; v++)
        vf_store(out + v * VF_WIDTH, vf_mul(scale, sum[v]));
    if (has_tail)
        vf_store_mask(out + vectors * VF_WIDTH, columns->last, vf_mul(scale, sum[vectors]));
}

/* Pools these columns of every bag. With one feature the slots lie in the order of use; with several, the
 * next sample's bag of the same feature comes after one bag of each. */
PH_INLINE void pool_bags(const struct ph__embedding_bag_args *given, const struct columns *columns,
    float *out, enum ph_row_format format, size_t vectors, int has_tail)
{
    const struct ph__embedding_bag_args copy = *given, *args = &copy; /* no store to `out` can change it */
    const uint32_t *offsets = args->offsets;
    const size_t num_samples = args->num_samples;
    if (args->num_features == 1) {
        const size_t end = offsets[num_samples];
        const size_t ahead =
            LINES_AHEAD * LINE_BYTES / (block_bytes(format, vectors, has_tail) + LINE_BYTES - 1);
        const size_t coming_lines = coming_lines_of(args);
        for (size_t s = 0; s < num_samples; s++) {
            fetch_coming(args, s, coming_lines);
            pool_bag(args, columns, s, offsets[s], offsets[s + 1], ahead, end, format, NEAR, vectors,
                has_tail, out + s * args->out_stride);
        }
        return;
    }
    for (size_t s = 0; s < num_samples; s++) {
        for (size_t f = 0; f < args->num_features; f++) {
            const uint32_t *feature = offsets + f * args->feature_stride;
            const size_t first = feature[s], last = feature[s + 1];
            fetch_output(out + s * args->out_stride + (f + OUTPUTS_AHEAD) * args->dim,
                vectors * VF_WIDTH + (has_tail ? 1 : 0));
            pool_bag(args, columns, s, first, last, last - first, feature[num_samples], format, FAR, vectors,
                has_tail, out + s * args->out_stride + f * args->dim);
        }
    }
}

#define POOL(vectors, has_tail)                                    \
    case 2 * (vectors) + (has_tail):                               \
        pool_bags(args, &columns, out, format, vectors, has_tail); \
        break

PH_INLINE void pool_columns(
    const struct ph__embedding_bag_args *args, enum ph_row_format format, size_t column, size_t width)
{
    const size_t begin = number_bytes(format, column), num_last = width % VF_WIDTH;
    const struct columns columns = {
        .table = (const unsigned char *)args->table + begin,
        .row_bytes = ph__row_bytes(format, args->dim),
        .low = format == PH_ROWS_BF16_SPLIT ? args->low + column : NULL,
        .dim = args->dim,
        .range_at = number_bytes(format, args->dim) - begin,
        .num_last = num_last,
        .last = vf_first(num_last),
    };
    float *out = args->out + column;
    switch (2 * (width / VF_WIDTH) + (width % VF_WIDTH != 0)) {
        POOL(0, 1);
        POOL(1, 0);
        POOL(1, 1);
        POOL(2, 0);
        POOL(2, 1);
        POOL(3, 0);
        POOL(3, 1);
        POOL(4, 0);
        POOL(4, 1);
        POOL(5, 0);
        POOL(5, 1);
        POOL(6, 0);
        POOL(6, 1);
        POOL(7, 0);
        POOL(7, 1);
        POOL(8, 0);
    }
}

PH_INLINE void pool_rows(const struct ph__embedding_bag_args *args, enum ph_row_format format)
{
    const size_t block = MAX_VECTORS * VF_WIDTH;
    for (size_t column = 0; column < args->dim; column += block)
        pool_columns(args, format, column, args->dim - column < block ? args->dim - column : block);
}

PH_INLINE float number_of(
    enum ph_row_format format, const unsigned char *table, const uint16_t *low, uint32_t slot)
{
    uint16_t word;
    if (format == PH_ROWS_FP32)
        return ((const float *)(const void *)table)[slot];
    memcpy(&word, table + slot * sizeof word, sizeof word);
    if (format == PH_ROWS_BF16_SPLIT)
        return ph__join_float(word, low[slot]);
    return format == PH_ROWS_FP16 ? _cvtsh_ss(word) : ph__float_from_bfloat(word);
}

/* Pools a bag of rows of one number: the weights of a linear model. */
PH_INLINE float pool_numbers_of(const struct ph__embedding_bag_args *args, enum ph_row_format format,
    size_t sample, size_t first, size_t last)
{
    const float *weights = args->weights;
    const uint32_t *slots = args->slots;
    float sum = 0;
    for (size_t j = first; j < last; j++)
        sum += (weights != NULL ? weights[j] : 1.0F) * number_of(format, args->table, args->low, slots[j]);
    return sum * scale_of(args, sample, last - first);
}

PH_INLINE void pool_numbers(const struct ph__embedding_bag_args *given, enum ph_row_format format)
{
    const struct ph__embedding_bag_args copy = *given, *args = &copy;
    for (size_t f = 0; f < args->num_features; f++) {
        const uint32_t *offsets = args->offsets + f * args->feature_stride;
        for (size_t s = 0; s < args->num_samples; s++)
            args->out[s * args->out_stride + f] =
                pool_numbers_of(args, format, s, offsets[s], offsets[s + 1]);
    }
}

static void pool_fp32(const struct ph__embedding_bag_args *args)
{
    if (args->dim == 1)
        pool_numbers(args, PH_ROWS_FP32);
    else
        pool_rows(args, PH_ROWS_FP32);
}

static void pool_fp16(const struct ph__embedding_bag_args *args)
{
    if (args->dim == 1)
        pool_numbers(args, PH_ROWS_FP16);
    else
        pool_rows(args, PH_ROWS_FP16);
}

static void pool_bf16(const struct ph__embedding_bag_args *args)
{
    if (args->dim == 1)
        pool_numbers(args, PH_ROWS_BF16);
    else
        pool_rows(args, PH_ROWS_BF16);
}

/* Pools split rows; without their low words they are rows of bf16. */
static void pool_split(const struct ph__embedding_bag_args *args)
{
    if (args->low == NULL)
        pool_bf16(args);
    else if (args->dim == 1)
        pool_numbers(args, PH_ROWS_BF16_SPLIT);
    else
        pool_rows(args, PH_ROWS_BF16_SPLIT);
}

static void pool_int8(const struct ph__embedding_bag_args *args)
{
    pool_rows(args, PH_ROWS_INT8);
}

static void pool_int4(const struct ph__embedding_bag_args *args)
{
    pool_rows(args, PH_ROWS_INT4);
}

/* out_i = scale_i sum_j w_j table[slot_j] */
void PH_SIMD(embedding_bag)(const struct ph__embedding_bag_args *args)
{
    static void (*const pools[PH_ROW_FORMAT_COUNT])(const struct ph__embedding_bag_args *args) = {
        [PH_ROWS_FP32] = pool_fp32,
        [PH_ROWS_FP16] = pool_fp16,
        [PH_ROWS_BF16] = pool_bf16,
        [PH_ROWS_BF16_SPLIT] = pool_split,
        [PH_ROWS_INT8] = pool_int8,
        [PH_ROWS_INT4] = pool_int4,
    };
    pools[args->format](args);
}
