/* Scaled dot-product attention of one sample (Vaswani et al. 2017; kernel.h has the formulas), the
 * specification. exp and log are libm's, in double. A query's scores are computed again wherever they are
 * needed; none are stored. */
#include "kernel/kernel_list.h"

#include <math.h>
#include <string.h>

static double product(size_t n, const ph_real *a, const ph_real *b)
{
    double sum = 0;
    for (size_t d = 0; d < n; d++)
        sum += (double)a[d] * (double)b[d];
    return sum;
}

/* y += factor x */
static void add_scaled(size_t n, double factor, const ph_real *x, ph_real *y)
{
    for (size_t d = 0; d < n; d++)
        y[d] += (ph_real)(factor * (double)x[d]);
}

/* Returns the place of head h's first number in row i of q, k, dq, dk; value_place: of v, y, dy, dv. */
static size_t key_place(const struct ph__attention_args *args, size_t h, size_t i)
{
    return (i * args->num_heads + h) * args->key_dim;
}

static size_t value_place(const struct ph__attention_args *args, size_t h, size_t i)
{
    return (i * args->num_heads + h) * args->value_dim;
}

/* s_ij */
static double score(const struct ph__attention_args *args, size_t h, size_t i, size_t j)
{
    return (double)args->scale *
           product(args->key_dim, args->q + key_place(args, h, i), args->k + key_place(args, h, j));
}

static double log_sum(const struct ph__attention_args *args, size_t h, size_t i)
{
    double largest = -INFINITY, sum = 0;
    for (size_t j = 0; j < args->num_keys; j++)
        largest = fmax(largest, score(args, h, i, j));
    for (size_t j = 0; j < args->num_keys; j++)
        sum += exp(score(args, h, i, j) - largest);
    return largest + log(sum);
}

void ph__attention_forward_ref(const struct ph__attention_args *args)
{
    const size_t num_rows = args->num_queries * args->num_heads;
    memset(args->y, 0, num_rows * args->value_dim * sizeof *args->y);
    for (size_t row = 0; row < num_rows && args->num_keys > 0; row++) {
        const size_t h = row / args->num_queries, i = row % args->num_queries;
        const double total = log_sum(args, h, i);
        for (size_t j = 0; j < args->num_keys; j++)
            add_scaled(args->value_dim, exp(score(args, h, i, j) - total), args->v + value_place(args, h, j),
                args->y + value_place(args, h, i));
        if (args->log_sum != NULL)
            args->log_sum[row] = (ph_real)total;
    }
}

/* Returns p_ij; its gradient, <dy_i, v_j>, goes to gradient_out. */
static double probability(
    const struct ph__attention_args *args, size_t h, size_t i, size_t j, double *gradient_out)
{
    *gradient_out =
        product(args->value_dim, args->dy + value_place(args, h, i), args->v + value_place(args, h, j));
    return exp(score(args, h, i, j) - (double)args->log_sum[h * args->num_queries + i]);
}

/* Adds the contribution of query i of head h to the gradients. */
static void add_query(const struct ph__attention_args *args, size_t h, size_t i)
{
    const size_t query = key_place(args, h, i);
    double mean = 0, gradient;
    for (size_t j = 0; j < args->num_keys; j++)
        mean += probability(args, h, i, j, &gradient) * gradient;
    for (size_t j = 0; j < args->num_keys; j++) {
        const size_t key = key_place(args, h, j);
        const double p = probability(args, h, i, j, &gradient);
        const double ds = (double)args->scale * p * (gradient - mean);
        add_scaled(args->key_dim, ds, args->k + key, args->dq + query);
        add_scaled(args->key_dim, ds, args->q + query, args->dk + key);
        add_scaled(
            args->value_dim, p, args->dy + value_place(args, h, i), args->dv + value_place(args, h, j));
    }
}

void ph__attention_backward_ref(const struct ph__attention_args *args)
{
    const size_t key_width = args->num_heads * args->key_dim, value_width = args->num_heads * args->value_dim;
    memset(args->dq, 0, args->num_queries * key_width * sizeof *args->dq);
    memset(args->dk, 0, args->num_keys * key_width * sizeof *args->dk);
    memset(args->dv, 0, args->num_keys * value_width * sizeof *args->dv);
    for (size_t h = 0; h < args->num_heads; h++)
        for (size_t i = 0; i < args->num_queries; i++)
            add_query(args, h, i);
}
