/* Weight gradients have the bits of one block over all samples, however samples and C are cut, and stay in
 * their scratch. */
#include "unit/kernel/kernel_test.h"

#include "base/thread/cpu.h"
#include "kernel/gemm.h"

enum { MAX_SAMPLES = 385, MAX_OUT = 400, MAX_IN = 448, GUARD = 64, GUARD_BYTE = 0x5a };

static const size_t thread_counts[] = {1, 2, 3};
enum { NUM_CONTEXTS = sizeof thread_counts / sizeof *thread_counts };

/* x (samples, in), dy (samples, out) and their products, which every shape uses from the start. */
struct trial {
    float *x, *dy, *dw, *db, *whole_dw, *whole_db;
    uint16_t *x_bf16, *dy_bf16; /* the same numbers */
    const struct ph__kernels *kernels;
    struct ph__team *teams[NUM_CONTEXTS];
    struct ph__gemm *gemms[NUM_CONTEXTS];
};

/* Numbers that bf16 has. */
static float *rounded_floats(const struct ph__kernels *kernels, size_t n, uint16_t **bf16_out)
{
    float *x = random_floats(n, -1, 1);
    *bf16_out = new_array(n, sizeof **bf16_out);
    kernels->bf16_narrow(n, x, *bf16_out);
    kernels->bf16_widen(n, *bf16_out, x);
    return x;
}

static struct trial trial_create(void)
{
    struct trial a = {.dw = filled_floats(MAX_OUT * MAX_IN, 0),
        .db = filled_floats(MAX_OUT, 0),
        .whole_dw = filled_floats(MAX_OUT * MAX_IN, 0),
        .whole_db = filled_floats(MAX_OUT, 0)};
    enum ph__isa isa;
    assert_ok(ph__cpu_isa(&isa));
    a.kernels = ph__kernels_for(isa);
    a.x = rounded_floats(a.kernels, MAX_SAMPLES * MAX_IN, &a.x_bf16);
    a.dy = rounded_floats(a.kernels, MAX_SAMPLES * MAX_OUT, &a.dy_bf16);
    for (size_t i = 0; i < NUM_CONTEXTS; i++) {
        assert_ok(ph__team_create(thread_counts[i], &a.teams[i]));
        assert_ok(ph__gemm_create(a.teams[i], false, &a.gemms[i]));
    }
    return a;
}

static void trial_destroy(struct trial *a)
{
    for (size_t i = 0; i < NUM_CONTEXTS; i++) {
        ph__gemm_destroy(a->gemms[i]);
        ph__team_destroy(a->teams[i]);
    }
}

static void sum_at_once(struct trial *a, size_t samples, size_t out, size_t in)
{
    const struct ph__weight_product_args args = {.inner = samples,
        .rows = out,
        .columns = in,
        .a = a->dy,
        .a_stride = out,
        .b = a->x,
        .b_stride = in,
        .c = a->whole_dw,
        .c_stride = in};
    a->kernels->weight_product(&args);
    memset(a->whole_db, 0, out * sizeof *a->whole_db);
    a->kernels->add_rows(samples, out, a->dy, a->whole_db);
}

/* In scratch that is as large as is asked for; what lies behind it stays. */
static void sum_in_scratch(
    struct trial *a, struct ph__gemm *gemm, size_t samples, size_t out, size_t in, bool is_bf16)
{
    const struct ph__gemm_weight_shape shape = {.out_features = out, .in_features = in, .is_bf16 = is_bf16};
    const size_t bytes = ph__gemm_weight_scratch_bytes(gemm, &shape);
    unsigned char *scratch = malloc(bytes + GUARD);
    assert_non_null(scratch);
    memset(scratch, GUARD_BYTE, bytes + GUARD);
    const void *x = is_bf16 ? (const void *)a->x_bf16 : a->x,
               *dy = is_bf16 ? (const void *)a->dy_bf16 : a->dy;
    assert_ok(ph__gemm_backward_weight(gemm, &shape, samples, x, dy, a->dw, a->db, scratch));
    for (size_t i = 0; i < GUARD; i++)
        assert_int_equal(scratch[bytes + i], GUARD_BYTE);
    free(scratch);
}

static void check_shape(struct trial *a, size_t samples, size_t out, size_t in, bool is_bf16)
{
    if (is_bf16 && ph__cpu_has_bf16() && out > PH_WEIGHT_MOST_ROWS)
        return; /* may be the library's, which sums in an order of its own */
    sum_at_once(a, samples, out, in);
    for (size_t i = 0; i < NUM_CONTEXTS; i++) {
        sum_in_scratch(a, a->gemms[i], samples, out, in, is_bf16);
        assert_memory_equal(a->dw, a->whole_dw, out * in * sizeof *a->dw);
        assert_memory_equal(a->db, a->whole_db, out * sizeof *a->db);
    }
}

static void check_shapes(bool is_bf16)
{
    static const size_t samples[] = {191, 192, 193, MAX_SAMPLES};
    static const size_t large[][2] = {{300, 415}, {203, 448}, {MAX_OUT, 205}, {213, 400}};
    struct trial a = trial_create();
    for (size_t i = 0; i < sizeof samples / sizeof *samples; i++) {
        for (size_t out = 1; out <= 30; out++)
            for (size_t in = 1; in <= 70; in += test_is_brief() ? 17 : 3)
                check_shape(&a, samples[i], out, in, is_bf16);
        for (size_t l = 0; l < sizeof large / sizeof *large; l++)
            check_shape(&a, samples[i], large[l][0], large[l][1], is_bf16);
    }
    trial_destroy(&a);
}

static void gradients_have_the_bits_of_sums_that_are_not_cut(void **state)
{
    (void)state;
    check_shapes(false);
}

static void gradients_of_bf16_have_the_bits_of_those_of_the_same_reals(void **state)
{
    (void)state;
    check_shapes(true);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(
            gradients_have_the_bits_of_sums_that_are_not_cut, reset_arrays, reset_arrays),
        cmocka_unit_test_setup_teardown(
            gradients_of_bf16_have_the_bits_of_those_of_the_same_reals, reset_arrays, reset_arrays),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
