/* One pool of threads: whatever oneDNN is asked to do, the process has exactly the team's threads. A pthread
 * team's would not be alone if oneDNN were let to use OpenMP's; under clang an OpenMP team's would not be if
 * oneDNN's libgomp and clang's libomp were both at work. */
#include "support/test_support.h"

#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>

#include "base/memory/memory.h"
#include "kernel/gemm.h"

#define NUM_THREADS 3

static void count_task(void *argument, size_t task, size_t worker)
{
    (void)task;
    (void)worker;
    atomic_fetch_add((atomic_size_t *)argument, 1);
}

static void run_product(struct ph__team *team, bool is_fast)
{
    const size_t rows = 512, features = 128;
    const struct ph__gemm_weight_shape shape = {.out_features = features, .in_features = features};
    struct ph__gemm *gemm;
    assert_ok(ph__gemm_create(team, is_fast, &gemm));
    float *x = calloc(rows * features, sizeof *x), *y = calloc(rows * features, sizeof *y);
    size_t size;
    assert_ok(ph__gemm_packed_bytes(gemm, &shape, &size));
    void *packed;
    assert_ok(ph__memory_alloc(size, "packed", &packed));
    assert_ok(ph__gemm_pack(gemm, &shape, x, packed));
    const struct ph__gemm_args args = {.rows = rows, .x = x, .packed = packed, .y = y};
    assert_ok(ph__gemm_forward(gemm, &shape, &args));
    free(x);
    free(y);
    ph__memory_free(packed, size);
    ph__gemm_destroy(gemm);
}

static void check_one_pool(enum ph_team_kind kind, bool is_fast)
{
    const size_t before = test_count_threads();
    struct ph__team *team;
    assert_ok(ph__team_create_kind(kind, NUM_THREADS, &team));
    atomic_size_t count = 0;
    ph__parallel_for(team, 100, count_task, &count);
    assert_int_equal(atomic_load(&count), 100);
    assert_int_equal(test_count_threads(), before + NUM_THREADS - 1);
    run_product(team, false);
    assert_int_equal(test_count_threads(), before + NUM_THREADS - 1);
    run_product(team, is_fast);
    assert_int_equal(test_count_threads(), before + NUM_THREADS - 1);
    ph__parallel_for(team, 100, count_task, &count);
    assert_int_equal(test_count_threads(), before + NUM_THREADS - 1);
    ph__team_destroy(team);
}

static void beside_a_pthread_team_the_library_starts_no_threads(void **state)
{
    (void)state;
    check_one_pool(PH_TEAM_PTHREAD, false);
}

/* OpenMP keeps its threads: this is the last one. */
static void an_openmp_team_and_the_library_share_one_pool_of_threads(void **state)
{
    (void)state;
    check_one_pool(PH_TEAM_OPENMP, true);
}

int main(void)
{
    if (strcmp(ph__gemm_library(), "reference") == 0)
        test_skip("the reference GEMM has no threads of its own");
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(beside_a_pthread_team_the_library_starts_no_threads),
        cmocka_unit_test(an_openmp_team_and_the_library_share_one_pool_of_threads),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
