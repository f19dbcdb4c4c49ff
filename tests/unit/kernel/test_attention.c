#include "unit/kernel/kernel_test.h"

struct shape {
    size_t queries, keys, heads, key_dim, value_dim;
};

static struct ph__attention_args random_args(const struct shape *shape, double range)
{
    const size_t key_row = shape->heads * shape->key_dim, value_row = shape->heads * shape->value_dim;
    return (struct ph__attention_args){.num_queries = shape->queries,
        .num_keys = shape->keys,
        .num_heads = shape->heads,
        .key_dim = shape->key_dim,
        .value_dim = shape->value_dim,
        .scale = 0.7f,
        .q = random_floats(shape->queries * key_row, -range, range),
        .k = random_floats(shape->keys * key_row, -range, range),
        .v = random_floats(shape->keys * value_row, -1, 1),
        .log_sum = filled_floats(shape->queries * shape->heads, NAN),
        .y = filled_floats(shape->queries * value_row, NAN),
        .dy = random_floats(shape->queries * value_row, -1, 1),
        .dq = filled_floats(shape->queries * key_row, NAN),
        .dk = filled_floats(shape->keys * key_row, NAN),
        .dv = filled_floats(shape->keys * value_row, NAN)};
}

/* Number d of row i of head h. */
static double at(
    const struct ph__attention_args *args, const float *x, size_t dim, size_t h, size_t i, size_t d)
{
    return (double)x[(i * args->num_heads + h) * dim + d];
}

static double product(const struct ph__attention_args *args, const float *a, const float *b, size_t dim,
    size_t h, size_t i, size_t j)
{
    double sum = 0;
    for (size_t d = 0; d < dim; d++)
        sum += at(args, a, dim, h, i, d) * at(args, b, dim, h, j, d);
    return sum;
}

/* What softmax is, without the maximum: p (n,m) of head h; returns by query the log of the sum. */
static double *softmax(const struct ph__attention_args *args, size_t h, double *p)
{
    double *log_sum = zero_doubles(args->num_queries);
    for (size_t i = 0; i < args->num_queries; i++) {
        double *row = p + i * args->num_keys, sum = 0;
        for (size_t j = 0; j < args->num_keys; j++) {
            row[j] = exp((double)args->scale * product(args, args->q, args->k, args->key_dim, h, i, j));
            sum += row[j];
        }
        for (size_t j = 0; j < args->num_keys; j++)
            row[j] /= sum;
        log_sum[i] = log(sum);
    }
    return log_sum;
}

static void check_head(
    const struct ph__attention_args *args, size_t h, const double *p, const double *log_sum)
{
    for (size_t i = 0; i < args->num_queries; i++) {
        if (args->num_keys > 0)
            assert_near((double)args->log_sum[h * args->num_queries + i], log_sum[i], 3e-6, 1e-6);
        for (size_t d = 0; d < args->value_dim; d++) {
            double wanted = 0;
            for (size_t j = 0; j < args->num_keys; j++)
                wanted += p[i * args->num_keys + j] * at(args, args->v, args->value_dim, h, j, d);
            assert_near(at(args, args->y, args->value_dim, h, i, d), wanted, 3e-6, 0);
        }
    }
}

/* The Jacobian of softmax, written out: ds_ij = sum_j' p_ij (delta_jj' - p_ij') dp_ij'. */
static double *score_gradients(const struct ph__attention_args *args, size_t h, const double *p)
{
    const size_t m = args->num_keys;
    double *dp = zero_doubles(m), *ds = zero_doubles(args->num_queries * m);
    for (size_t i = 0; i < args->num_queries; i++) {
        for (size_t j = 0; j < m; j++)
            dp[j] = product(args, args->dy, args->v, args->value_dim, h, i, j);
        for (size_t j = 0; j < m; j++)
            for (size_t other = 0; other < m; other++)
                ds[i * m + j] += p[i * m + j] * ((j == other ? 1 : 0) - p[i * m + other]) * dp[other];
    }
    return ds;
}

static void check_query_gradients(const struct ph__attention_args *args, size_t h, const double *ds)
{
    for (size_t i = 0; i < args->num_queries; i++)
        for (size_t d = 0; d < args->key_dim; d++) {
            double wanted = 0;
            for (size_t j = 0; j < args->num_keys; j++)
                wanted += (double)args->scale * ds[i * args->num_keys + j] *
                          at(args, args->k, args->key_dim, h, j, d);
            assert_near(at(args, args->dq, args->key_dim, h, i, d), wanted, 2e-5, 1e-5);
        }
}

static void check_key_gradients(
    const struct ph__attention_args *args, size_t h, const double *p, const double *ds)
{
    const size_t m = args->num_keys;
    for (size_t j = 0; j < m; j++) {
        for (size_t d = 0; d < args->key_dim; d++) {
            double wanted = 0;
            for (size_t i = 0; i < args->num_queries; i++)
                wanted += (double)args->scale * ds[i * m + j] * at(args, args->q, args->key_dim, h, i, d);
            assert_near(at(args, args->dk, args->key_dim, h, j, d), wanted, 2e-5, 1e-5);
        }
        for (size_t d = 0; d < args->value_dim; d++) {
            double wanted = 0;
            for (size_t i = 0; i < args->num_queries; i++)
                wanted += p[i * m + j] * at(args, args->dy, args->value_dim, h, i, d);
            assert_near(at(args, args->dv, args->value_dim, h, j, d), wanted, 2e-5, 1e-5);
        }
    }
}

static void check_shape(const struct ph__kernels *kernels, struct shape shape)
{
    reset_arrays(NULL);
    struct ph__attention_args args = random_args(&shape, 1);
    double *p = zero_doubles(shape.queries * shape.keys);
    kernels->attention_forward(&args);
    kernels->attention_backward(&args);
    for (size_t h = 0; h < shape.heads; h++) {
        const double *log_sum = softmax(&args, h, p);
        const double *ds = score_gradients(&args, h, p);
        check_head(&args, h, p, log_sum);
        check_query_gradients(&args, h, ds);
        check_key_gradients(&args, h, p, ds);
    }
    float *y = copied_floats(shape.queries * shape.heads * shape.value_dim, args.y);
    args.log_sum = NULL;
    kernels->attention_forward(&args);
    assert_memory_equal(args.y, y, shape.queries * shape.heads * shape.value_dim * sizeof *y);
}

static void check_shapes(const struct ph__kernels *kernels)
{
    for (size_t n = 1; n <= 34; n++)
        check_shape(kernels, (struct shape){n, n, 1 + n % 3, 1 + n % 20, 1 + n % 18});
    const size_t dims[] = {1, 7, 8, 15, 16, 17, 32, 33, 64, 65, 80, 130};
    for (size_t i = 0; i < sizeof dims / sizeof *dims; i++) {
        check_shape(kernels, (struct shape){5, 10, 2, dims[i], 8});
        check_shape(kernels, (struct shape){10, 5, 2, 8, dims[i]});
        check_shape(kernels, (struct shape){1, 50, 2, dims[i], dims[i]});
    }
}

static void attention_and_its_gradients_follow_the_definition(void **state)
{
    (void)state;
    on_every_isa(check_shapes);
}

/* Around the sizes of a block, and several blocks of each. */
static void check_many_rows(const struct ph__kernels *kernels)
{
    const size_t sizes[] = {1, 63, 64, 65, 129, 200};
    for (size_t i = 0; i < sizeof sizes / sizeof *sizes; i++)
        for (size_t j = 0; j < sizeof sizes / sizeof *sizes; j++)
            check_shape(kernels, (struct shape){sizes[i], sizes[j], 1, 6, 9});
}

static void any_number_of_queries_and_keys_is_taken(void **state)
{
    (void)state;
    on_every_isa(check_many_rows);
}

static void check_nothing(const struct ph__kernels *kernels)
{
    check_shape(kernels, (struct shape){3, 0, 2, 5, 20});
    check_shape(kernels, (struct shape){0, 3, 2, 5, 20});
    check_shape(kernels, (struct shape){0, 0, 2, 5, 20});
}

static void no_keys_give_zeros_and_no_queries_no_gradients(void **state)
{
    (void)state;
    on_every_isa(check_nothing);
}

/* Scores up to some 10000, far beyond what exp takes, in each order of keys: all weight is with the largest.
 */
static void check_large_scores(const struct ph__kernels *kernels)
{
    const struct shape shape = {70, 150, 1, 4, 3};
    struct ph__attention_args args = random_args(&shape, 100);
    kernels->attention_forward(&args);
    kernels->attention_backward(&args);
    for (size_t i = 0; i < shape.queries; i++) {
        size_t best = 0;
        double largest = -INFINITY, sum = 0;
        for (size_t j = 0; j < shape.keys; j++) {
            const double score = (double)args.scale * product(&args, args.q, args.k, 4, 0, i, j);
            best = score > largest ? j : best;
            largest = fmax(largest, score);
        }
        for (size_t j = 0; j < shape.keys; j++)
            sum += exp((double)args.scale * product(&args, args.q, args.k, 4, 0, i, j) - largest);
        assert_near((double)args.log_sum[i], largest + log(sum), 0, 1e-5);
        for (size_t d = 0; d < 3 && sum < 1.0001; d++)
            assert_near(at(&args, args.y, 3, 0, i, d), at(&args, args.v, 3, 0, best, d), 1e-3, 0);
        for (size_t d = 0; d < 4; d++)
            assert_true(isfinite(args.dq[i * 4 + d]));
    }
}

static void large_scores_do_not_overflow(void **state)
{
    (void)state;
    on_every_isa(check_large_scores);
}

enum { BAD_ROW = 3 };

/* A number of row BAD_ROW of head 0 of the queries or keys is `bad`: its query's results are not finite, or
 * all, and no other is touched. */
static void check_bad_number(const struct ph__kernels *kernels, float bad, int is_query)
{
    const struct shape shape = {12, 21, 2, 10, 6};
    reset_arrays(NULL);
    struct ph__attention_args args = random_args(&shape, 1);
    float *q = copied_floats(12 * 20, args.q), *k = copied_floats(21 * 20, args.k);
    (is_query ? q : k)[BAD_ROW * 20 + 4] = bad;
    args.q = q;
    args.k = k;
    kernels->attention_forward(&args);
    kernels->attention_backward(&args);
    for (size_t i = 0; i < 12; i++) {
        const int is_bad = !is_query || i == BAD_ROW;
        assert_int_equal(isfinite(at(&args, args.y, 6, 0, i, 0)) == 0, is_bad);
        assert_int_equal(isfinite(at(&args, args.dq, 10, 0, i, 0)) == 0, is_bad);
        assert_int_equal(isfinite(at(&args, args.y, 6, 1, i, 0)) == 0, 0);
        assert_int_equal(isfinite(at(&args, args.dq, 10, 1, i, 0)) == 0, 0);
    }
    assert_int_equal(isfinite(at(&args, args.dk, 10, 0, 0, 0)) == 0, 1);
    assert_int_equal(isfinite(at(&args, args.dk, 10, 1, 0, 0)) == 0, 0);
}

static void check_bad_numbers(const struct ph__kernels *kernels)
{
    check_bad_number(kernels, NAN, 1);
    check_bad_number(kernels, INFINITY, 1);
    check_bad_number(kernels, NAN, 0);
}

static void what_is_not_finite_stays_so(void **state)
{
    (void)state;
    on_every_isa(check_bad_numbers);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(
            attention_and_its_gradients_follow_the_definition, reset_arrays, reset_arrays),
        cmocka_unit_test_setup_teardown(any_number_of_queries_and_keys_is_taken, reset_arrays, reset_arrays),
        cmocka_unit_test_setup_teardown(
            no_keys_give_zeros_and_no_queries_no_gradients, reset_arrays, reset_arrays),
        cmocka_unit_test_setup_teardown(large_scores_do_not_overflow, reset_arrays, reset_arrays),
        cmocka_unit_test_setup_teardown(what_is_not_finite_stays_so, reset_arrays, reset_arrays),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
