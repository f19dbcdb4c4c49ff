/* Products of bf16 against sums in double of the rounded numbers: widened, and by the library's own products
 * of bf16, which it also has (slow ones) where the processor has no instructions for them. */
#include "support/test_support.h"
#include "unit/kernel/strided_sum.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/memory/memory.h"
#include "kernel/gemm_context.h"
#include "tensor/float16.h"

struct shape {
    size_t rows, out_features, in_features;
};

/* Slices and their tails, narrow and short layers, transposed gradients, those of DLRM. */
static const struct shape shapes[] = {
    {1, 1, 1},
    {5, 1, 400},
    {31, 64, 13},
    {33, 100, 1},
    {129, 40, 257},
    {300, 70, 47},
    {600, 64, 256},
    {1100, 512, 100},
    {2048, 512, 13},
};
#define NUM_SHAPES (sizeof shapes / sizeof *shapes)

static uint64_t random_state;

/* Numbers, and what is left of them in bf16. */
struct numbers {
    uint16_t *words;
    ph_real *reals;
};

static struct numbers random_numbers(size_t count)
{
    struct numbers numbers = {malloc((count + 1) * sizeof(uint16_t)), malloc((count + 1) * sizeof(ph_real))};
    assert_non_null(numbers.words);
    assert_non_null(numbers.reals);
    for (size_t i = 0; i < count; i++) {
        random_state = random_state * 6364136223846793005u + 1442695040888963407u;
        numbers.words[i] =
            ph__bfloat_from_float((float)((double)(random_state >> 40) / (double)(1 << 24) - 0.5));
        numbers.reals[i] = (ph_real)ph__float_from_bfloat(numbers.words[i]);
    }
    return numbers;
}

static void free_numbers(struct numbers *numbers)
{
    free(numbers->words);
    free(numbers->reals);
}

/* C against A B^T + bias, each number times the derivative of ReLU where `activated` is given; bf16 keeps 8
 * bits. */
static void assert_product(const void *c, bool is_bf16, size_t rows, size_t columns, size_t n,
    struct strided a, struct strided b, const ph_real *bias, bool is_rectified, const ph_real *activated)
{
    const size_t step = 1 + (size_t)((double)rows * (double)columns * (double)n / 1e6);
    for (size_t i = 0; i < rows * columns; i += step) {
        double size;
        double wanted = sum_of_products(a, i / columns, b, i % columns, n, &size);
        wanted += bias != NULL ? (double)bias[i % columns] : 0;
        if ((is_rectified && wanted < 0) || (activated != NULL && activated[i] <= 0))
            wanted = 0;
        const double got = is_bf16 ? (double)ph__float_from_bfloat(((const uint16_t *)c)[i])
                                   : (double)((const ph_real *)c)[i];
        assert_near(got, wanted, 1e-6 * (size + 1) + (is_bf16 ? fabs(wanted) / 256 : 0), 0);
    }
}

/* ---- one layer, all of its products ---- */

struct layer {
    struct shape shape;
    struct numbers x, dy, weight, bias;
    struct ph__gemm *gemm;
    ph_real *dw, *db;
    void *y, *dx; /* reals or words */
    bool is_y_bf16;
};

static void *allocate(size_t bytes, size_t *bytes_out)
{
    void *memory;
    *bytes_out = bytes + PH_ALIGNMENT;
    assert_ok(ph__memory_alloc(*bytes_out, "test", &memory));
    return memory;
}

static void run_product(struct layer *l, bool is_transposed)
{
    const struct ph__gemm_weight_shape shape = {.out_features = l->shape.out_features,
        .in_features = l->shape.in_features,
        .is_transposed = is_transposed,
        .is_bf16 = true};
    size_t packed_bytes, scratch_bytes;
    assert_ok(ph__gemm_packed_bytes(l->gemm, &shape, &packed_bytes));
    void *packed = allocate(packed_bytes, &packed_bytes);
    void *scratch = allocate(ph__gemm_scratch_bytes(l->gemm, &shape), &scratch_bytes);
    assert_ok(ph__gemm_pack(l->gemm, &shape, l->weight.reals, packed));
    const struct ph__gemm_args forward = {.rows = l->shape.rows,
        .x = l->x.words,
        .packed = packed,
        .bias = l->bias.reals,
        .activation = PH_RELU,
        .y = l->y,
        .is_y_bf16 = l->is_y_bf16,
        .scratch = scratch};
    const struct ph__gemm_args backward = {.rows = l->shape.rows,
        .x = l->dy.words,
        .packed = packed,
        .activation = PH_RELU,
        .activated = l->is_y_bf16 ? (const void *)l->x.words : l->x.reals,
        .is_activated_bf16 = l->is_y_bf16,
        .y = l->dx,
        .is_y_bf16 = l->is_y_bf16,
        .scratch = scratch};
    assert_ok(is_transposed ? ph__gemm_backward_data(l->gemm, &shape, &backward)
                            : ph__gemm_forward(l->gemm, &shape, &forward));
    ph__memory_free(packed, packed_bytes);
    ph__memory_free(scratch, scratch_bytes);
}

static void run_gradient(struct layer *l)
{
    const struct ph__gemm_weight_shape shape = {
        .out_features = l->shape.out_features, .in_features = l->shape.in_features, .is_bf16 = true};
    size_t bytes;
    void *scratch = allocate(ph__gemm_weight_scratch_bytes(l->gemm, &shape), &bytes);
    assert_ok(ph__gemm_backward_weight(
        l->gemm, &shape, l->shape.rows, l->x.words, l->dy.words, l->dw, l->db, scratch));
    ph__memory_free(scratch, bytes);
}

static void run_layer(struct layer *l)
{
    run_product(l, false);
    run_product(l, true);
    run_gradient(l);
}

static void assert_layer(const struct layer *l)
{
    const size_t m = l->shape.rows, n = l->shape.out_features, k = l->shape.in_features;
    const ph_real one = 1;
    const struct strided x = {l->x.reals, k, 1}, weight = {l->weight.reals, k, 1}, dy = {l->dy.reals, n, 1};
    const struct strided x_columns = {l->x.reals, 1, k}, weight_columns = {l->weight.reals, 1, k},
                         dy_columns = {l->dy.reals, 1, n};
    assert_product(l->y, l->is_y_bf16, m, n, k, x, weight, l->bias.reals, true, NULL);
    assert_product(l->dx, l->is_y_bf16, m, k, n, dy, weight_columns, NULL, false, l->x.reals);
    assert_product(l->dw, false, n, k, m, dy_columns, x_columns, NULL, false, NULL);
    assert_product(l->db, false, n, 1, m, dy_columns, (struct strided){&one, 0, 0}, NULL, false, NULL);
}

static void layer_init(struct layer *l, struct ph__gemm *gemm, const struct shape *shape, bool is_y_bf16)
{
    const size_t m = shape->rows, n = shape->out_features, k = shape->in_features;
    random_state = test_seed() + m * 1000003 + n * 1009 + k;
    *l = (struct layer){.shape = *shape, .gemm = gemm, .is_y_bf16 = is_y_bf16};
    l->x = random_numbers(m * k);
    l->dy = random_numbers(m * n);
    l->weight = random_numbers(n * k);
    l->bias = random_numbers(n);
    l->y = calloc(m * n, sizeof(ph_real));
    l->dx = calloc(m * k, sizeof(ph_real));
    l->dw = calloc(n * k, sizeof *l->dw);
    l->db = calloc(n, sizeof *l->db);
}

static void layer_fini(struct layer *l)
{
    struct numbers *all[] = {&l->x, &l->dy, &l->weight, &l->bias};
    for (size_t i = 0; i < sizeof all / sizeof *all; i++)
        free_numbers(all[i]);
    free(l->y);
    free(l->dx);
    free(l->dw);
    free(l->db);
}

/* The plain loops, under a sanitizer, are too slow for the large ones. */
static bool is_reference(void)
{
    return strcmp(ph__gemm_library(), "reference") == 0;
}

static void check_layers(bool has_bf16)
{
    struct ph__team *team;
    struct ph__gemm *gemm;
    assert_ok(ph__team_create(2, &team));
    assert_ok(ph__gemm_create(team, false, &gemm));
    gemm->has_bf16 = has_bf16;
    for (size_t i = 0; i < NUM_SHAPES; i++) {
        for (int is_y_bf16 = 0; is_y_bf16 < 2 && !(is_reference() && i > 5); is_y_bf16++) {
            struct layer layer;
            layer_init(&layer, gemm, &shapes[i], is_y_bf16);
            run_layer(&layer);
            assert_layer(&layer);
            layer_fini(&layer);
        }
    }
    ph__gemm_destroy(gemm);
    ph__team_destroy(team);
}

static void widened_products_are_those_of_rounded_numbers(void **state)
{
    (void)state;
    check_layers(false);
}

static void the_librarys_products_are_those_of_rounded_numbers(void **state)
{
    (void)state;
    enum ph__isa isa;
    assert_ok(ph__cpu_isa(&isa));
    if (is_reference() || isa != PH_ISA_AVX512)
        test_skip("no library with products of bf16");
    check_layers(true);
}

static void check_threads(bool has_bf16, const struct shape *shape)
{
    struct layer layers[2];
    for (size_t threads = 1; threads <= 2; threads++) {
        struct ph__team *team;
        struct ph__gemm *gemm;
        assert_ok(ph__team_create(threads, &team));
        assert_ok(ph__gemm_create(team, false, &gemm));
        gemm->has_bf16 = has_bf16;
        layer_init(&layers[threads - 1], gemm, shape, true);
        run_layer(&layers[threads - 1]);
        ph__gemm_destroy(gemm);
        ph__team_destroy(team);
    }
    const size_t m = shape->rows, n = shape->out_features, k = shape->in_features;
    assert_memory_equal(layers[0].y, layers[1].y, m * n * sizeof(uint16_t));
    assert_memory_equal(layers[0].dx, layers[1].dx, m * k * sizeof(uint16_t));
    assert_memory_equal(layers[0].dw, layers[1].dw, n * k * sizeof(ph_real));
    assert_memory_equal(layers[0].db, layers[1].db, n * sizeof(ph_real));
    layer_fini(&layers[0]);
    layer_fini(&layers[1]);
}

static void bits_do_not_follow_the_number_of_threads(void **state)
{
    (void)state;
    enum ph__isa isa;
    assert_ok(ph__cpu_isa(&isa));
    for (size_t i = 2; i < (is_reference() ? 6 : NUM_SHAPES); i++) {
        check_threads(false, &shapes[i]);
        if (!is_reference() && isa == PH_ISA_AVX512)
            check_threads(true, &shapes[i]);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(widened_products_are_those_of_rounded_numbers),
        cmocka_unit_test(the_librarys_products_are_those_of_rounded_numbers),
        cmocka_unit_test(bits_do_not_follow_the_number_of_threads),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
