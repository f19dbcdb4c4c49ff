/* Kernels against products of rounded operands: sound ones differ by the rounding of sums, and one wrong
 * scale of one output is caught. */
#include <string.h>

#include "base/rng.h"
#include "kernel/gemm_context.h"
#include "support/test_support.h"
#include "train/probe/product_run.h"
#include "train/probe/sites.h"

enum { ROWS = 48, OUT = 70, IN = 133, WRONG_OUTPUT = 41 };

static ph_real rows[ROWS * IN], weight[OUT * IN];
static struct ph_backend *backend;

static int open_backend(void **state)
{
    (void)state;
    struct ph__rng_sequence random = {.key = {.seed = test_seed()}};
    for (size_t i = 0; i < ROWS * IN; i++)
        rows[i] = (ph_real)(ph__rng_next_normal(&random) * (double)(1 + i % 9));
    for (size_t i = 0; i < OUT * IN; i++)
        weight[i] = (ph_real)ph__rng_next_normal(&random);
    return ph_backend_create(
               &(struct ph_backend_options){.size = sizeof(struct ph_backend_options), .num_threads = 1},
               &backend) == PH_OK
               ? 0
               : -1;
}

static int close_backend(void **state)
{
    (void)state;
    ph_backend_destroy(backend);
    return 0;
}

static double check(enum ph_recipe recipe, bool is_backward)
{
    double off;
    assert_ok(ph__product_check(
        backend, ROWS, &(struct ph__recipe_product){OUT, IN, is_backward, recipe}, rows, weight, &off));
    print_message("%s %s: %.1e\n", ph_recipe_name(recipe), is_backward ? "backward" : "forward", off);
    return off;
}

static void sound_kernels_round_sums_alone(void **state)
{
    (void)state;
    for (enum ph_recipe recipe = PH_RECIPE_BF16; recipe < PH_RECIPE_COUNT; recipe++)
        for (int is_backward = 0; is_backward < 2; is_backward++)
            assert_true(check(recipe, is_backward != 0) < 1e-4);
}

static const struct ph__kernels *sound;

/* Packs a weight, and then gives one output another scale. */
static void pack_wrongly(const struct ph__int8_pack_args *args)
{
    sound->int8_pack(args);
    ph__int8_weight(args->out_features, args->in_features, args->packed).scales[WRONG_OUTPUT] *= 1.03F;
}

static void one_wrong_scale_is_caught(void **state)
{
    (void)state;
    struct ph__kernels wrong = *backend->gemm->kernels;
    sound = backend->gemm->kernels;
    wrong.int8_pack = pack_wrongly;
    backend->gemm->kernels = &wrong;
    const double off[] = {check(PH_RECIPE_INT8, false), check(PH_RECIPE_INT8, true)};
    backend->gemm->kernels = sound;
    assert_true(off[0] > PH_SITE_FAULT && off[1] > PH_SITE_FAULT);
    struct ph__site site = {
        .seconds = {[PH_RECIPE_FP32] = 2, [PH_RECIPE_INT8] = 1}, .off = {[PH_RECIPE_INT8] = off[0]}};
    const struct ph__site_wish wish = {.threshold = 1, .speed_up = 1};
    ph__site_choose(&site, wish.threshold, &wish);
    assert_int_equal(site.recipe, PH_RECIPE_FP32);
    site.off[PH_RECIPE_INT8] = 0;
    ph__site_choose(&site, wish.threshold, &wish);
    assert_int_equal(site.recipe, PH_RECIPE_INT8);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(sound_kernels_round_sums_alone),
        cmocka_unit_test(one_wrong_scale_is_caught),
    };
    return cmocka_run_group_tests(tests, open_backend, close_backend);
}
