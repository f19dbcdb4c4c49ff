#include "op/sequence/attention.h"

struct ph_attention_samples ph__attention_samples(
    const struct ph_operand *inputs, const struct ph_attention_options *options)
{
    const struct ph_operand *q = &inputs[PH_ATTENTION_Q], *k = &inputs[PH_ATTENTION_K];
    const struct ph_operand *v = &inputs[PH_ATTENTION_V], *bags = &inputs[PH_ATTENTION_BAGS];
    const bool has_bags = bags->type->kind == PH_JAGGED, is_self = q->shape.rank == 2;
    return (struct ph_attention_samples){.num_samples = ph__rows(has_bags ? bags : q),
        .bags = has_bags ? bags->index : NULL,
        .is_self = is_self,
        .args = {.num_queries = is_self ? 0 : q->shape.dims[1],
            .num_keys = has_bags ? 0 : k->shape.dims[1],
            .num_heads = options->num_heads,
            .key_dim = ph__row_width(q) / options->num_heads,
            .value_dim = ph__row_width(v) / options->num_heads,
            .scale = (ph_real)options->scale,
            .q = q->data,
            .k = k->data,
            .v = v->data}};
}

double ph__attention_pairs(const struct ph_operand *inputs, const struct ph_attention_options *options)
{
    const struct ph_operand *q = &inputs[PH_ATTENTION_Q], *k = &inputs[PH_ATTENTION_K];
    const struct ph_operand *bags = &inputs[PH_ATTENTION_BAGS];
    const double heads = (double)options->num_heads, rows = (double)ph__rows(k);
    if (q->shape.rank == 3)
        return heads * (double)q->shape.dims[1] * rows * (k->shape.rank == 3 ? (double)k->shape.dims[1] : 1);
    return ph__rows(bags) > 0 ? heads * rows * rows / (double)ph__rows(bags) : 0;
}

struct job {
    const struct ph_attention_samples *samples;
    void (*kernel)(const struct ph_attention_args *args);
};

/* The arrays from query `query` and key `key` on. The sums of a sample, (H,n), lie where its queries do. */
static void move(struct ph_attention_args *args, size_t query, size_t key)
{
    const size_t key_row = args->num_heads * args->key_dim, value_row = args->num_heads * args->value_dim;
    args->q += query * key_row;
    args->k += key * key_row;
    args->v += key * value_row;
    args->log_sum += args->log_sum != NULL ? query * args->num_heads : 0;
    args->y += args->y != NULL ? query * value_row : 0;
    if (args->dy != NULL) {
        args->dy += query * value_row;
        args->dq += query * key_row;
        args->dk += key * key_row;
        args->dv += key * value_row;
    }
}

static void run_samples(void *argument, size_t first, size_t last, size_t worker)
{
    (void)worker;
    const struct job *job = argument;
    const struct ph_attention_samples *samples = job->samples;
    for (size_t b = first; b < last; b++) {
        struct ph_attention_args args = samples->args;
        size_t key = b * args.num_keys, query = b * args.num_queries;
        if (samples->bags != NULL) {
            key = samples->bags[b];
            args.num_keys = samples->bags[b + 1] - key;
        }
        if (samples->is_self) {
            query = key;
            args.num_queries = args.num_keys;
        }
        move(&args, query, key);
        job->kernel(&args);
    }
}

void ph__attention_run(const struct ph_backend *backend, const struct ph_attention_samples *samples,
    void (*kernel)(const struct ph_attention_args *args))
{
    enum { BLOCK_SAMPLES = 8 };
    struct job job = {samples, kernel};
    ph__for_blocks(backend, samples->num_samples, BLOCK_SAMPLES, run_samples, &job);
}
