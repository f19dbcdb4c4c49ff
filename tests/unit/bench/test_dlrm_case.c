/* What ranks have of a batch is the batch, cut where a global batch is. */
#include "support/test_support.h"

#include <string.h>

#include "dlrm_case.h"

static const struct dlrm_case tiny = {"tiny", 3, 50, 4, 2, 7, true};

/* The share's samples stand in the whole batch from first_sample on, feature by feature. */
static void compare_batch(const struct ph_batch *share, const struct ph_batch *whole)
{
    const size_t first = share->first_sample, count = share->num_samples;
    assert_int_equal(share->num_global_samples, whole->num_samples);
    assert_memory_equal(
        share->dense, whole->dense + first * DLRM_NUM_DENSE, count * DLRM_NUM_DENSE * sizeof *share->dense);
    assert_memory_equal(share->labels, whole->labels + first, count * sizeof *share->labels);
    for (size_t table = 0; table < tiny.tables; table++)
        for (size_t b = 0; b < count; b++) {
            const uint32_t *bag = share->offsets + table * count + b;
            const uint32_t *whole_bag = whole->offsets + table * whole->num_samples + first + b;
            assert_int_equal(bag[1] - bag[0], tiny.pooling);
            assert_memory_equal(
                share->ids + bag[0], whole->ids + whole_bag[0], tiny.pooling * sizeof *share->ids);
        }
}

static void shares_of_ranks_are_the_batch(void **state)
{
    (void)state;
    static struct dlrm_data whole, share;
    dlrm_data_init(&whole, &tiny);
    for (size_t world_size = 1; world_size <= 8; world_size++)
        for (size_t rank = 0; rank < world_size; rank++) {
            dlrm_data_share(&whole, rank, world_size, &share);
            assert_int_equal(share.of.batch, tiny.batch);
            for (size_t i = 0; i < DLRM_NUM_BATCHES; i++) {
                assert_int_equal(share.batches[i].first_sample, tiny.batch * rank / world_size);
                compare_batch(&share.batches[i], &whole.batches[i]);
            }
            dlrm_data_fini(&share);
        }
    dlrm_data_fini(&whole);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(shares_of_ranks_are_the_batch),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
