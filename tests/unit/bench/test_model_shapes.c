#include "support/test_support.h"

#include "model_shapes.h"

/* Totals as torchvision's pages state them; of the DLRMs the tables' rows, times the dimension, and the
 * layers' numbers added up by hand. */
static void totals_are_the_published_ones(void **state)
{
    (void)state;
    static const struct {
        size_t tensors, elements;
    } totals[NUM_MODELS] = {[MODEL_ALEXNET] = {16, 61100840},
        [MODEL_VGG19] = {38, 143667240},
        [MODEL_RESNET50] = {161, 25557032},
        [MODEL_DLRM_MLPERF] = {16, 171392 + 2197505},
        [MODEL_DLRM_KAGGLE] = {40, 33762577ul * 16 + 155984 + 320001}};
    for (int model = 0; model < NUM_MODELS; model++) {
        struct model_shapes shapes;
        model_shapes_init(&shapes, (enum model)model);
        assert_int_equal(shapes.num_tensors, totals[model].tensors);
        assert_int_equal(model_shapes_total(&shapes), totals[model].elements);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(totals_are_the_published_ones),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
