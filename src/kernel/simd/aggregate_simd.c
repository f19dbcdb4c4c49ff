/* Sums of copies and the optimizer's step. A block of numbers stays in registers from the first copy to the
 * last result, so each array is read or written once. The copies' type and the optimizer are looked up once
 * per block, in branches that always go the same way: they cost nothing beside the block's loads, and one
 * body serves every combination. */
#include <assert.h>
#include <string.h>

#include "kernel/simd/optimizer_step.h"
#include "kernel/simd/simd.h"

enum { BLOCK = 64, VECTORS = BLOCK / VF_WIDTH, STREAM_ALIGNMENT = 64 };

struct pass {
    const struct ph__aggregate_args *args;
    struct constants constants;
    vf sum_scale;
    bool is_weight_streamed;
};

/* The numbers of a block: `vectors` whole vectors from `at` on, or, where num_last > 0, the first num_last of
 * one. `vectors` is a constant; so is whether num_last is 0. */
struct block {
    size_t at, vectors, num_last;
};

PH_INLINE vf load_reals(const float *p, size_t num_last)
{
    return num_last > 0 ? vf_load_mask(p, vf_first(num_last)) : vf_load(p);
}

PH_INLINE void store_reals(float *p, size_t num_last, bool is_streamed, vf x)
{
    if (num_last > 0)
        vf_store_mask(p, vf_first(num_last), x);
    else if (is_streamed)
        vf_stream(p, x);
    else
        vf_store(p, x);
}

PH_INLINE void store_words(uint16_t *p, size_t num_last, bool is_streamed, vw x)
{
    uint16_t words[VF_WIDTH];
    if (num_last > 0) {
        vw_store(words, x);
        memcpy(p, words, num_last * sizeof *words);
    } else if (is_streamed) {
        vw_stream(p, x);
    } else {
        vw_store(p, x);
    }
}

/* ---- copies ---- */

PH_INLINE vf load_copy(enum ph_dtype dtype, const void *copy, size_t at, size_t num_last)
{
    const unsigned char *words = (const unsigned char *)copy + at * sizeof(uint16_t);
    switch (dtype) {
    case PH_F16:
        return num_last > 0 ? vf_load_first_halves(words, num_last) : vf_load_halves(words);
    case PH_BF16:
        return num_last > 0 ? vf_load_first_bfloats(words, num_last) : vf_load_bfloats(words);
    default:
        return load_reals((const float *)copy + at, num_last);
    }
}

/* sum_v = (c_0 + c_1) + c_2 ...; dtype is a constant. */
PH_INLINE void sum_copies(
    const struct ph__aggregate_args *args, enum ph_dtype dtype, struct block block, vf *sum)
{
    const float *so_far = args->sum_so_far;
    PH_UNROLL
    for (size_t v = 0; v < block.vectors; v++) {
        const size_t at = block.at + v * VF_WIDTH;
        sum[v] = so_far != NULL ? load_reals(so_far + at, block.num_last)
                                : load_copy(dtype, args->copies[0], at, block.num_last);
    }
    for (size_t c = so_far == NULL; c < args->num_copies; c++) {
        const void *copy = args->copies[c];
        PH_UNROLL
        for (size_t v = 0; v < block.vectors; v++)
            sum[v] = vf_add(sum[v], load_copy(dtype, copy, block.at + v * VF_WIDTH, block.num_last));
    }
}

PH_INLINE void sum_block(const struct pass *pass, struct block block, vf *sum)
{
    if (pass->args->dtype == PH_F32)
        sum_copies(pass->args, PH_F32, block, sum);
    else if (pass->args->dtype == PH_F16)
        sum_copies(pass->args, PH_F16, block, sum);
    else
        sum_copies(pass->args, PH_BF16, block, sum);
    PH_UNROLL
    for (size_t v = 0; v < block.vectors; v++)
        sum[v] = vf_mul(sum[v], pass->sum_scale);
}

/* ---- the step ---- */

/* Turns sums into new weights; kind is a constant. */
PH_INLINE void step_sums(const struct pass *pass, enum ph_optimizer_kind kind, struct block block, vf *sum)
{
    const struct ph__aggregate_args *args = pass->args;
    const int has_m = has_momentum(kind), has_s = has_sum(kind);
    PH_UNROLL
    for (size_t v = 0; v < block.vectors; v++) {
        const size_t at = block.at + v * VF_WIDTH;
        vf m = has_m ? load_reals(args->m + at, block.num_last) : vf_zero();
        vf s = has_s ? load_reals(args->s + at, block.num_last) : vf_zero();
        const vf w = load_reals(args->weight + at, block.num_last);
        sum[v] = step_vector(&pass->constants, kind, args->step->is_nesterov, sum[v], w, &m, &s);
        if (has_m)
            store_reals(args->m + at, block.num_last, false, m);
        if (has_s)
            store_reals(args->s + at, block.num_last, false, s);
    }
}

PH_INLINE void step_block(const struct pass *pass, struct block block, vf *sum)
{
    switch (pass->args->step->kind) {
    case PH_SGD:
        step_sums(pass, PH_SGD, block, sum);
        break;
    case PH_MOMENTUM:
        step_sums(pass, PH_MOMENTUM, block, sum);
        break;
    case PH_ADAGRAD:
        step_sums(pass, PH_ADAGRAD, block, sum);
        break;
    case PH_ADAM:
        step_sums(pass, PH_ADAM, block, sum);
        break;
    case PH_ADAMW:
        step_sums(pass, PH_ADAMW, block, sum);
        break;
    default:
        assert(0 && "an elementwise optimizer");
    }
}

/* ---- results ---- */

PH_INLINE void store_result(
    enum ph_dtype dtype, void *result, bool is_streamed, struct block block, const vf *weight)
{
    PH_UNROLL
    for (size_t v = 0; v < block.vectors; v++) {
        const size_t at = block.at + v * VF_WIDTH;
        if (dtype == PH_F32)
            store_reals((float *)result + at, block.num_last, is_streamed, weight[v]);
        else
            store_words((uint16_t *)result + at, block.num_last, is_streamed,
                dtype == PH_F16 ? vw_halves(weight[v]) : vw_bfloats(weight[v]));
    }
}

static bool is_streamed(const struct ph__aggregate_args *args, const void *array)
{
    return args->is_non_temporal && (uintptr_t)array % STREAM_ALIGNMENT == 0;
}

/* Stores the new weights in all results; dtype is a constant. */
PH_INLINE void store_results(
    const struct ph__aggregate_args *args, enum ph_dtype dtype, struct block block, const vf *weight)
{
    for (size_t r = 0; r < args->num_results; r++) {
        if (is_streamed(args, args->results[r]))
            store_result(dtype, args->results[r], true, block, weight);
        else
            store_result(dtype, args->results[r], false, block, weight);
    }
}

PH_INLINE void store_block(const struct pass *pass, struct block block, const vf *weight)
{
    const struct ph__aggregate_args *args = pass->args;
    if (args->new_weight != NULL && pass->is_weight_streamed)
        store_result(PH_F32, args->new_weight, true, block, weight);
    else if (args->new_weight != NULL)
        store_result(PH_F32, args->new_weight, false, block, weight);
    if (args->dtype == PH_F32)
        store_results(args, PH_F32, block, weight);
    else if (args->dtype == PH_F16)
        store_results(args, PH_F16, block, weight);
    else
        store_results(args, PH_BF16, block, weight);
}

/* ---- the pass ---- */

PH_INLINE void aggregate_block(const struct pass *pass, struct block block)
{
    vf numbers[VECTORS];
    sum_block(pass, block, numbers);
    if (pass->args->step != NULL)
        step_block(pass, block, numbers);
    store_block(pass, block, numbers);
}

void PH_SIMD(aggregate)(const struct ph__aggregate_args *args)
{
    struct pass pass = {.args = args, .sum_scale = vf_set1(args->sum_scale)};
    pass.is_weight_streamed = is_streamed(args, args->new_weight) && args->new_weight != args->weight &&
                              args->new_weight != args->sum_so_far;
    if (args->step != NULL)
        pass.constants = broadcast(args->step);
    size_t i = 0;
    for (; i + BLOCK <= args->n; i += BLOCK)
        aggregate_block(&pass, (struct block){i, VECTORS, 0});
    for (; i + VF_WIDTH <= args->n; i += VF_WIDTH)
        aggregate_block(&pass, (struct block){i, 1, 0});
    if (i < args->n)
        aggregate_block(&pass, (struct block){i, 1, args->n - i});
    if (args->is_non_temporal)
        end_streams();
}
