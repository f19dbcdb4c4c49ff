/* Norm and activation behind products of every kind: the bits of the kernels behind a plain product. */
#include "support/test_support.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/memory/memory.h"
#include "kernel/gemm_context.h"

enum { ROWS = 333, OUT = 300, IN = 40, NARROW = 3 };

struct product {
    struct ph__gemm *gemm;
    struct ph__gemm_weight_shape shape;
    void *packed, *scratch;
    size_t packed_bytes, scratch_bytes;
    ph_real *x, *bias, *by;
};

static uint64_t random_state;

static ph_real *random_reals(size_t count)
{
    ph_real *reals = malloc(count * sizeof *reals);
    assert_non_null(reals);
    for (size_t i = 0; i < count; i++) {
        random_state = random_state * 6364136223846793005u + 1442695040888963407u;
        reals[i] = (ph_real)(4 * ((double)(random_state >> 40) / (double)(1 << 24)) - 2);
    }
    return reals;
}

static void *allocate(size_t bytes, size_t *bytes_out)
{
    void *memory;
    *bytes_out = bytes + PH_ALIGNMENT;
    assert_ok(ph__memory_alloc(*bytes_out, "test", &memory));
    return memory;
}

static size_t columns_of(const struct product *product)
{
    return product->shape.is_transposed ? product->shape.in_features : product->shape.out_features;
}

static struct product make_product(struct ph__gemm *gemm, const struct ph__gemm_weight_shape *shape)
{
    struct product product = {.gemm = gemm, .shape = *shape};
    random_state = test_seed();
    ph_real *weight = random_reals(shape->out_features * shape->in_features);
    product.x = random_reals(ROWS * (shape->out_features + shape->in_features));
    product.bias = random_reals(shape->out_features);
    product.by = random_reals(ROWS * columns_of(&product));
    assert_ok(ph__gemm_packed_bytes(gemm, shape, &product.packed_bytes));
    product.packed = allocate(product.packed_bytes, &product.packed_bytes);
    product.scratch = allocate(ph__gemm_scratch_bytes(gemm, shape), &product.scratch_bytes);
    assert_ok(ph__gemm_pack(gemm, shape, weight, product.packed));
    free(weight);
    return product;
}

static void destroy_product(struct product *product)
{
    ph__memory_free(product->packed, product->packed_bytes);
    ph__memory_free(product->scratch, product->scratch_bytes);
    free(product->x);
    free(product->bias);
    free(product->by);
}

/* raw NULL: not wanted */
static void run(
    const struct product *product, enum ph_activation activation, bool is_normed, ph_real *raw, ph_real *y)
{
    const bool is_backward = product->shape.is_transposed;
    const struct ph__gemm_args args = {.rows = ROWS,
        .x = product->x,
        .packed = product->packed,
        .bias = is_backward ? NULL : product->bias,
        .activation = activation,
        .is_block_normed = is_normed,
        .raw = raw,
        .activated = is_backward ? product->by : NULL,
        .y = y,
        .scratch = product->scratch};
    assert_ok(
        (is_backward ? ph__gemm_backward_data : ph__gemm_forward)(product->gemm, &product->shape, &args));
}

static void apply(const struct product *product, enum ph_activation activation, bool is_normed,
    const ph_real *x, ph_real *y)
{
    const struct ph__kernels *kernels = product->gemm->kernels;
    const size_t columns = columns_of(product), n = ROWS * columns;
    memcpy(y, x, n * sizeof *y);
    if (product->shape.is_transposed) {
        if (is_normed)
            kernels->block_norm_backward(ROWS, columns, activation == PH_HARD_SWISH, product->by, y, y);
        else
            kernels->hard_swish_backward(n, product->by, y, y);
        return;
    }
    if (is_normed)
        kernels->block_norm(ROWS, columns, false, y, y);
    if (activation == PH_HARD_SWISH)
        kernels->hard_swish(n, y, y);
    else if (activation == PH_RELU)
        kernels->relu(n, y, y);
    else if (activation == PH_SIGMOID)
        kernels->sigmoid(n, y, y);
}

static void check_epilogue(const struct product *product, enum ph_activation activation, bool is_normed)
{
    const size_t n = ROWS * columns_of(product), bytes = n * sizeof(ph_real);
    ph_real *plain = random_reals(n), *raw = random_reals(n), *y = random_reals(n), *wanted = random_reals(n);
    run(product, PH_IDENTITY, false, NULL, plain);
    apply(product, activation, is_normed, plain, wanted);
    run(product, activation, is_normed, NULL, y);
    assert_memory_equal(y, wanted, bytes);
    if (!product->shape.is_transposed && (is_normed || activation == PH_HARD_SWISH)) {
        memset(y, 0, bytes);
        run(product, activation, is_normed, raw, y);
        assert_memory_equal(raw, plain, bytes);
        assert_memory_equal(y, wanted, bytes);
    }
    free(plain);
    free(raw);
    free(y);
    free(wanted);
}

static const struct ph__gemm_weight_shape shapes[] = {
    {.out_features = OUT, .in_features = IN},
    {.out_features = OUT, .in_features = 8},
    {.out_features = NARROW, .in_features = IN},
    {.out_features = OUT, .in_features = IN, .is_row_wise = true},
    {.out_features = OUT, .in_features = IN, .is_row_wise = true, .is_bf16 = true},
    {.out_features = OUT, .in_features = IN, .is_int8 = true},
    {.out_features = IN, .in_features = OUT, .is_transposed = true},
    {.out_features = IN, .in_features = OUT, .is_transposed = true, .is_int8 = true},
};

static void check_shape(struct ph__gemm *gemm, const struct ph__gemm_weight_shape *shape)
{
    struct product product = make_product(gemm, shape);
    for (int is_normed = 0; is_normed < 2; is_normed++) {
        check_epilogue(&product, PH_HARD_SWISH, is_normed);
        if (is_normed)
            check_epilogue(&product, PH_IDENTITY, true);
        for (int activation = PH_RELU; activation <= PH_SIGMOID && !shape->is_transposed; activation++)
            check_epilogue(&product, (enum ph_activation)activation, is_normed);
    }
    destroy_product(&product);
}

static void norm_and_activation_have_the_bits_of_their_kernels(void **state)
{
    (void)state;
    for (int is_fast = 0; is_fast < 2; is_fast++) {
        struct ph__team *team;
        struct ph__gemm *gemm;
        assert_ok(ph__team_create(2, &team));
        assert_ok(ph__gemm_create(team, is_fast, &gemm));
        for (size_t i = 0; i < sizeof shapes / sizeof *shapes; i++)
            check_shape(gemm, &shapes[i]);
        ph__gemm_destroy(gemm);
        ph__team_destroy(team);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(norm_and_activation_have_the_bits_of_their_kernels),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
