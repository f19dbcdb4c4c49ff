/* Both libraries of matrix products against sums in double, and the same bits whatever the number of threads.
 */
#include "support/test_support.h"
#include "unit/kernel/strided_sum.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/memory/memory.h"
#include "base/thread/parallel_team.h"
#include "kernel/gemm.h"

struct shape {
    size_t rows, out_features, in_features;
};

/* Odd sizes, tails of slices, single rows and columns, narrow layers, the layers of DLRM and Frappe's DNN,
 * and more columns than the most tiles of a weight gradient are to have. */
static const struct shape shapes[] = {
    {1, 1, 1},
    {1, 17, 5},
    {2, 3, 1},
    {5, 1, 400},
    {7, 4, 33},
    {16, 5, 16},
    {31, 64, 13},
    {33, 100, 1},
    {64, 2, 70},
    {100, 13, 100},
    {128, 128, 128},
    {129, 40, 257},
    {255, 16, 300},
    {500, 48, 31},
    {700, 1, 256},
    {1025, 20, 10},
    {1600, 65, 8},
    {1111, 37, 53},
    {2048, 512, 13},
    {2048, 64, 256},
    {2047, 512, 415},
    {4096, 400, 100},
    {4095, 400, 400},
    {4096, 1, 400},
    {600, 512, 3456},
    {1536, 1030, 24},
    {3, 2, 80000},
};
#define NUM_SHAPES (sizeof shapes / sizeof *shapes)

/* The plain loops, under a sanitizer, are too slow for the large ones. */
static bool is_left_out(const struct shape *shape)
{
    const bool is_slow = strcmp(ph__gemm_library(), "reference") == 0;
    const double most_products = is_slow ? 5e6 : test_is_brief() ? 50e6 : INFINITY;
    return (double)shape->rows * (double)shape->out_features * (double)shape->in_features > most_products;
}

static uint64_t random_state;

static ph_real random_real(void)
{
    random_state = random_state * 6364136223846793005u + 1442695040888963407u;
    return (ph_real)((double)(random_state >> 40) / (double)(1 << 24) - 0.5);
}

static ph_real *random_reals(size_t count)
{
    ph_real *reals = malloc((count + 1) * sizeof *reals);
    assert_non_null(reals);
    for (size_t i = 0; i < count; i++)
        reals[i] = random_real();
    return reals;
}

/* One layer with its operands and everything that is computed of it. */
struct layer {
    struct shape shape;
    ph_real *x, *weight, *bias, *dy; /* (M,K), (N,K), (N), (M,N) */
    ph_real *y, *dx, *dw, *db;       /* (M,N), (M,K), (N,K), (N) */
    void *packed, *packed_transposed, *scratch;
    size_t packed_size, packed_transposed_size, scratch_size;
};

static void layer_init(struct layer *layer, const struct shape *shape)
{
    const size_t m = shape->rows, n = shape->out_features, k = shape->in_features;
    *layer = (struct layer){.shape = *shape};
    random_state = test_seed() + m * 1000003 + n * 1009 + k;
    layer->x = random_reals(m * k);
    layer->weight = random_reals(n * k);
    layer->bias = random_reals(n);
    layer->dy = random_reals(m * n);
    layer->y = random_reals(m * n);
    layer->dx = random_reals(m * k);
    layer->dw = random_reals(n * k);
    layer->db = random_reals(n);
}

static void layer_fini(struct layer *layer)
{
    ph_real *reals[] = {
        layer->x, layer->weight, layer->bias, layer->dy, layer->y, layer->dx, layer->dw, layer->db};
    for (size_t i = 0; i < sizeof reals / sizeof *reals; i++)
        free(reals[i]);
    ph__memory_free(layer->packed, layer->packed_size);
    ph__memory_free(layer->packed_transposed, layer->packed_transposed_size);
    ph__memory_free(layer->scratch, layer->scratch_size);
}

static void pack(struct ph__gemm *gemm, struct layer *layer)
{
    struct ph__gemm_weight_shape shape = {
        .out_features = layer->shape.out_features, .in_features = layer->shape.in_features};
    if (layer->packed == NULL) {
        assert_ok(ph__gemm_packed_bytes(gemm, &shape, &layer->packed_size));
        assert_ok(ph__memory_alloc(layer->packed_size, "packed", &layer->packed));
    }
    assert_ok(ph__gemm_pack(gemm, &shape, layer->weight, layer->packed));
    shape.is_transposed = true;
    if (layer->packed_transposed == NULL) {
        assert_ok(ph__gemm_packed_bytes(gemm, &shape, &layer->packed_transposed_size));
        assert_ok(ph__memory_alloc(layer->packed_transposed_size, "packed", &layer->packed_transposed));
    }
    assert_ok(ph__gemm_pack(gemm, &shape, layer->weight, layer->packed_transposed));
}

static void forward(struct ph__gemm *gemm, struct layer *layer, bool has_bias, enum ph_activation activation)
{
    const struct ph__gemm_weight_shape shape = {
        .out_features = layer->shape.out_features, .in_features = layer->shape.in_features};
    const struct ph__gemm_args args = {.rows = layer->shape.rows,
        .x = layer->x,
        .packed = layer->packed,
        .bias = has_bias ? layer->bias : NULL,
        .activation = activation,
        .y = layer->y};
    assert_ok(ph__gemm_forward(gemm, &shape, &args));
}

static void backward_data(struct ph__gemm *gemm, struct layer *layer)
{
    const struct ph__gemm_weight_shape shape = {.out_features = layer->shape.out_features,
        .in_features = layer->shape.in_features,
        .is_transposed = true};
    const struct ph__gemm_args args = {
        .rows = layer->shape.rows, .x = layer->dy, .packed = layer->packed_transposed, .y = layer->dx};
    assert_ok(ph__gemm_backward_data(gemm, &shape, &args));
}

static void backward_weight(struct ph__gemm *gemm, struct layer *layer)
{
    const struct shape *s = &layer->shape;
    const struct ph__gemm_weight_shape shape = {
        .out_features = s->out_features, .in_features = s->in_features};
    if (layer->scratch == NULL) {
        layer->scratch_size = ph__gemm_weight_scratch_bytes(gemm, &shape);
        assert_ok(ph__memory_alloc(layer->scratch_size + 1, "scratch", &layer->scratch));
    }
    assert_ok(ph__gemm_backward_weight(
        gemm, &shape, s->rows, layer->x, layer->dy, layer->dw, layer->db, layer->scratch));
}

static void run_all(struct ph__gemm *gemm, struct layer *layer)
{
    pack(gemm, layer);
    forward(gemm, layer, true, PH_RELU);
    backward_data(gemm, layer);
    backward_weight(gemm, layer);
}

/* ---- the oracle: element (i,j) of a product, by strides, in double ---- */

static double activated(enum ph_activation activation, double z)
{
    if (activation == PH_RELU)
        return z > 0 ? z : 0;
    return activation == PH_SIGMOID ? 1 / (1 + exp(-z)) : z;
}

/* The largest difference that rounding explains, for terms of total size `size`. */
static double tolerance(double size)
{
    return (sizeof(ph_real) == 4 ? 1e-6 : 1e-14) * (size + 1);
}

/* c (rows, columns) = a b + bias; of large products every `step`th element, so that the oracle stays
 * affordable. */
static void assert_product(const ph_real *c, size_t rows, size_t columns, size_t n, struct strided a,
    struct strided b, const ph_real *bias, enum ph_activation activation)
{
    const size_t step = 1 + (size_t)((double)rows * (double)columns * (double)n / 2e6);
    for (size_t i = 0; i < rows * columns; i += step) {
        double size;
        double z = sum_of_products(a, i / columns, b, i % columns, n, &size);
        if (bias != NULL)
            z += (double)bias[i % columns];
        assert_near((double)c[i], activated(activation, z), tolerance(size), 0);
    }
}

static void assert_forward(const struct layer *l, bool has_bias, enum ph_activation activation)
{
    const size_t m = l->shape.rows, n = l->shape.out_features, k = l->shape.in_features;
    assert_product(l->y, m, n, k, (struct strided){l->x, k, 1}, (struct strided){l->weight, k, 1},
        has_bias ? l->bias : NULL, activation);
}

static void assert_backward(const struct layer *l)
{
    const size_t m = l->shape.rows, n = l->shape.out_features, k = l->shape.in_features;
    const ph_real one = 1;
    assert_product(
        l->dx, m, k, n, (struct strided){l->dy, n, 1}, (struct strided){l->weight, 1, k}, NULL, PH_IDENTITY);
    assert_product(
        l->dw, n, k, m, (struct strided){l->dy, 1, n}, (struct strided){l->x, 1, k}, NULL, PH_IDENTITY);
    assert_product(
        l->db, n, 1, m, (struct strided){l->dy, 1, n}, (struct strided){&one, 0, 0}, NULL, PH_IDENTITY);
}

/* ---- a context on a team ---- */

struct context {
    struct ph__team *team;
    struct ph__gemm *gemm;
};

static struct context context_create(size_t num_threads, bool is_fast)
{
    struct context context;
    const enum ph_team_kind kind = is_fast && ph__team_openmp != NULL ? PH_TEAM_OPENMP : PH_TEAM_PTHREAD;
    assert_ok(ph__team_create_kind(kind, num_threads, &context.team));
    assert_ok(ph__gemm_create(context.team, is_fast, &context.gemm));
    return context;
}

static void context_destroy(struct context *context)
{
    ph__gemm_destroy(context->gemm);
    ph__team_destroy(context->team);
}

static void check_values(bool is_fast)
{
    struct context context = context_create(2, is_fast);
    for (size_t i = 0; i < NUM_SHAPES; i++) {
        if (is_left_out(&shapes[i]))
            continue;
        struct layer layer;
        layer_init(&layer, &shapes[i]);
        run_all(context.gemm, &layer);
        assert_forward(&layer, true, PH_RELU);
        assert_backward(&layer);
        for (int has_bias = 0; has_bias < 2; has_bias++) {
            for (int activation = PH_IDENTITY; activation <= PH_SIGMOID; activation++) {
                forward(context.gemm, &layer, has_bias, (enum ph_activation)activation);
                assert_forward(&layer, has_bias, (enum ph_activation)activation);
            }
        }
        layer_fini(&layer);
    }
    context_destroy(&context);
}

static void products_agree_with_sums_in_double(void **state)
{
    (void)state;
    check_values(false);
}

static void fast_products_agree_with_sums_in_double(void **state)
{
    (void)state;
    check_values(true);
}

static void assert_same_bits(const struct layer *a, const struct layer *b)
{
    const size_t m = a->shape.rows, n = a->shape.out_features, k = a->shape.in_features;
    assert_memory_equal(a->y, b->y, m * n * sizeof(ph_real));
    assert_memory_equal(a->dx, b->dx, m * k * sizeof(ph_real));
    assert_memory_equal(a->dw, b->dw, n * k * sizeof(ph_real));
    assert_memory_equal(a->db, b->db, n * sizeof(ph_real));
}

static void bits_do_not_depend_on_the_number_of_threads(void **state)
{
    (void)state;
    static const size_t threads[] = {1, 3, 2, 7};
    const size_t num_contexts = test_is_brief() ? 2 : 4;
    struct context contexts[4];
    for (size_t i = 0; i < num_contexts; i++)
        contexts[i] = context_create(threads[i], false);
    for (size_t s = 0; s < NUM_SHAPES; s++) {
        if (is_left_out(&shapes[s]))
            continue;
        struct layer first;
        layer_init(&first, &shapes[s]);
        run_all(contexts[0].gemm, &first);
        for (size_t i = 1; i < num_contexts; i++) {
            struct layer other;
            layer_init(&other, &shapes[s]);
            run_all(contexts[i].gemm, &other);
            assert_same_bits(&first, &other);
            layer_fini(&other);
        }
        layer_fini(&first);
    }
    for (size_t i = 0; i < num_contexts; i++)
        context_destroy(&contexts[i]);
}

static void running_again_gives_the_same_bits_and_makes_nothing(void **state)
{
    (void)state;
    struct context context = context_create(2, false);
    struct layer first, again;
    layer_init(&first, &shapes[17]);
    layer_init(&again, &shapes[17]);
    run_all(context.gemm, &first);
    const uint64_t creations = ph__gemm_creations(context.gemm);
    run_all(context.gemm, &again);
    run_all(context.gemm, &first);
    assert_same_bits(&first, &again);
    assert_int_equal(ph__gemm_creations(context.gemm), creations);
    layer_fini(&first);
    layer_fini(&again);
    context_destroy(&context);
}

static void any_number_of_rows_needs_few_primitives(void **state)
{
    (void)state;
    struct context context = context_create(1, false);
    struct layer layer;
    layer_init(&layer, &(struct shape){3000, 24, 20});
    for (size_t rows = 1; rows <= 3000; rows += 61) {
        layer.shape.rows = rows;
        ph__memory_free(layer.scratch, layer.scratch_size);
        layer.scratch = NULL;
        run_all(context.gemm, &layer);
    }
    /* forward and backward-data: 2^4 .. 2^9 and 1 .. 15 rows each; dW: 2^4 .. 2^9 and 1 .. 15, added and not
     */
    assert_in_range(ph__gemm_creations(context.gemm), 0, 2 + 2 * (6 + 15) + 2 * (6 + 15));
    layer_fini(&layer);
    context_destroy(&context);
}

static void packed_weights_are_plain_bytes(void **state)
{
    (void)state;
    struct context context = context_create(2, false), other = context_create(3, false);
    struct layer layer, moved;
    layer_init(&layer, &(struct shape){150, 30, 13});
    layer_init(&moved, &layer.shape);
    run_all(context.gemm, &layer);
    moved.packed_size = layer.packed_size;
    assert_ok(ph__memory_alloc(moved.packed_size, "packed", &moved.packed));
    memcpy(moved.packed, layer.packed, layer.packed_size);
    memset(layer.packed, 0xff, layer.packed_size);
    forward(other.gemm, &moved, true, PH_RELU);
    assert_memory_equal(layer.y, moved.y, 150 * 30 * sizeof(ph_real));
    layer_fini(&layer);
    layer_fini(&moved);
    context_destroy(&context);
    context_destroy(&other);
}

static void two_layers_of_one_shape_do_not_mix(void **state)
{
    (void)state;
    struct context context = context_create(2, false);
    struct layer a, b;
    layer_init(&a, &(struct shape){300, 30, 30});
    layer_init(&b, &a.shape);
    for (size_t i = 0; i < 900; i++)
        b.weight[i] = 2 * a.weight[i];
    pack(context.gemm, &a);
    pack(context.gemm, &b);
    forward(context.gemm, &a, true, PH_IDENTITY);
    forward(context.gemm, &b, true, PH_IDENTITY);
    assert_forward(&a, true, PH_IDENTITY);
    assert_forward(&b, true, PH_IDENTITY);
    forward(context.gemm, &a, false, PH_SIGMOID);
    assert_forward(&a, false, PH_SIGMOID);
    layer_fini(&a);
    layer_fini(&b);
    context_destroy(&context);
}

/* Rows of a row-wise product, taken out in pieces of any size, have the bits that they have in the whole. */
static void check_row_wise(struct ph__gemm *gemm, const struct shape *shape, size_t piece)
{
    const size_t n = shape->out_features, k = shape->in_features;
    const struct ph__gemm_weight_shape weight = {.out_features = n, .in_features = k, .is_row_wise = true};
    struct layer layer;
    layer_init(&layer, shape);
    assert_ok(ph__gemm_packed_bytes(gemm, &weight, &layer.packed_size));
    assert_ok(ph__memory_alloc(layer.packed_size, "packed", &layer.packed));
    assert_ok(ph__gemm_pack(gemm, &weight, layer.weight, layer.packed));
    struct ph__gemm_args args = {.rows = shape->rows,
        .x = layer.x,
        .packed = layer.packed,
        .bias = layer.bias,
        .activation = PH_SIGMOID,
        .y = layer.y};
    assert_ok(ph__gemm_forward(gemm, &weight, &args));
    assert_forward(&layer, true, PH_SIGMOID);
    ph_real *part = random_reals(piece * n);
    for (size_t first = 0; first < shape->rows; first += piece) {
        args.rows = shape->rows - first < piece ? shape->rows - first : piece;
        args.x = layer.x + first * k;
        args.y = part;
        assert_ok(ph__gemm_forward(gemm, &weight, &args));
        assert_memory_equal(part, layer.y + first * n, args.rows * n * sizeof *part);
    }
    free(part);
    layer_fini(&layer);
}

static void row_wise_rows_do_not_depend_on_each_other(void **state)
{
    (void)state;
    static const size_t pieces[] = {7, 1, 64, 250};
    const size_t num_pieces = test_is_brief() ? 1 : sizeof pieces / sizeof *pieces;
    for (int is_fast = 0; is_fast < 2; is_fast++) {
        struct context context = context_create(2, is_fast);
        for (size_t i = 0; i < NUM_SHAPES; i++) {
            for (size_t p = 0; p < num_pieces; p++)
                if (shapes[i].rows <= 1111 && !is_left_out(&shapes[i]))
                    check_row_wise(context.gemm, &shapes[i], pieces[p]);
        }
        context_destroy(&context);
    }
}

static void no_rows_give_zero_gradients(void **state)
{
    (void)state;
    for (int is_fast = 0; is_fast < 2; is_fast++) {
        struct context context = context_create(2, is_fast);
        struct layer layer;
        layer_init(&layer, &(struct shape){0, 9, 21});
        run_all(context.gemm, &layer);
        for (size_t i = 0; i < 9 * 21; i++)
            assert_true(layer.dw[i] == 0);
        for (size_t i = 0; i < 9; i++)
            assert_true(layer.db[i] == 0);
        layer_fini(&layer);
        context_destroy(&context);
    }
}

static void check_nan(struct ph__gemm *gemm, const struct shape *shape)
{
    struct layer layer;
    layer_init(&layer, shape);
    const size_t n = shape->out_features, k = shape->in_features, row = shape->rows / 2;
    layer.x[row * k + k / 2] = (ph_real)NAN;
    layer.dy[row * n + n / 2] = (ph_real)NAN;
    pack(gemm, &layer);
    for (int activation = PH_IDENTITY; activation <= PH_SIGMOID; activation++) {
        forward(gemm, &layer, true, (enum ph_activation)activation);
        for (size_t i = 0; i < shape->rows * n; i++)
            assert_int_equal(isnan(layer.y[i]) != 0, i / n == row);
    }
    backward_data(gemm, &layer);
    backward_weight(gemm, &layer);
    for (size_t i = 0; i < shape->rows * k; i++)
        assert_int_equal(isnan(layer.dx[i]) != 0, i / k == row);
    for (size_t i = 0; i < n * k; i++)
        assert_int_equal(isnan(layer.dw[i]) != 0, i / k == n / 2 || i % k == k / 2);
    for (size_t i = 0; i < n; i++)
        assert_int_equal(isnan(layer.db[i]) != 0, i == n / 2);
    layer_fini(&layer);
}

static void a_nan_reaches_everything_that_depends_on_it(void **state)
{
    (void)state;
    for (int is_fast = 0; is_fast < 2; is_fast++) {
        struct context context = context_create(2, is_fast);
        check_nan(context.gemm, &(struct shape){70, 33, 19});
        check_nan(context.gemm, &(struct shape){600, 40, 12});
        check_nan(context.gemm, &(struct shape){70, 1, 19});
        context_destroy(&context);
    }
}

/* dx times what is left of an activation that made x: by the plain dx and the formula. */
static void check_derivative(struct ph__gemm *gemm, const struct shape *shape, enum ph_activation activation)
{
    const struct ph__gemm_weight_shape weight = {
        .out_features = shape->out_features, .in_features = shape->in_features, .is_transposed = true};
    const size_t count = shape->rows * shape->in_features;
    struct layer layer;
    layer_init(&layer, shape);
    pack(gemm, &layer);
    backward_data(gemm, &layer);
    ph_real *dx = random_reals(count);
    const struct ph__gemm_args args = {.rows = shape->rows,
        .x = layer.dy,
        .packed = layer.packed_transposed,
        .activation = activation,
        .activated = layer.x,
        .y = dx};
    assert_ok(ph__gemm_backward_data(gemm, &weight, &args));
    for (size_t i = 0; i < count; i++) {
        const double x = (double)layer.x[i], plain = (double)layer.dx[i];
        const double wanted = activation == PH_RELU ? (x > 0 ? plain : 0) : plain * x * (1 - x);
        assert_true(fabs((double)dx[i] - wanted) <= 1e-6 * (1 + fabs(wanted)));
    }
    free(dx);
    layer_fini(&layer);
}

static void backward_data_goes_on_through_the_activation(void **state)
{
    (void)state;
    for (int is_fast = 0; is_fast < 2; is_fast++) {
        struct context context = context_create(2, is_fast);
        check_derivative(context.gemm, &(struct shape){70, 33, 19}, PH_RELU);
        check_derivative(context.gemm, &(struct shape){600, 40, 12}, PH_SIGMOID);
        check_derivative(context.gemm, &(struct shape){70, 1, 19}, PH_RELU);
        context_destroy(&context);
    }
}

static void the_bias_gradient_may_be_left_out(void **state)
{
    (void)state;
    struct context context = context_create(2, false);
    struct layer layer;
    layer_init(&layer, &shapes[10]);
    ph_real *db = layer.db, before = db[0];
    layer.db = NULL;
    backward_weight(context.gemm, &layer);
    layer.db = db;
    assert_true(db[0] == before);
    layer_fini(&layer);
    context_destroy(&context);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(products_agree_with_sums_in_double),
        cmocka_unit_test(fast_products_agree_with_sums_in_double),
        cmocka_unit_test(bits_do_not_depend_on_the_number_of_threads),
        cmocka_unit_test(running_again_gives_the_same_bits_and_makes_nothing),
        cmocka_unit_test(any_number_of_rows_needs_few_primitives),
        cmocka_unit_test(packed_weights_are_plain_bytes),
        cmocka_unit_test(two_layers_of_one_shape_do_not_mix),
        cmocka_unit_test(row_wise_rows_do_not_depend_on_each_other),
        cmocka_unit_test(no_rows_give_zero_gradients),
        cmocka_unit_test(a_nan_reaches_everything_that_depends_on_it),
        cmocka_unit_test(backward_data_goes_on_through_the_activation),
        cmocka_unit_test(the_bias_gradient_may_be_left_out),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
