/* Rows that several threads pack and unpack have the bits that one call for all of them gives. */
#include "support/test_support.h"

#include <stdlib.h>
#include <string.h>

#include "base/rng.h"
#include "graph/executor.h"
#include "phloem/graph.h"
#include "shard/exchange_nodes.h"

enum { MOST_ROWS = 1500, COLUMNS = 13 };

static void check(
    const struct ph_backend *backend, enum ph_wire_format wire, size_t rows, const ph_real *numbers)
{
    static ph_real back[MOST_ROWS * COLUMNS], wanted[MOST_ROWS * COLUMNS];
    const size_t bytes = ph__wire_bytes(wire, rows, COLUMNS);
    unsigned char *packed = malloc(bytes + 1), *whole = malloc(bytes + 1);
    assert_true(packed != NULL && whole != NULL);
    packed[bytes] = whole[bytes] = 0xA5;
    ph__pack_rows(backend, wire, rows, COLUMNS, numbers, packed);
    ph__wire_pack(backend->kernels, wire, rows, COLUMNS, numbers, COLUMNS, whole);
    assert_memory_equal(packed, whole, bytes + 1);
    ph__unpack_rows(backend, wire, rows, COLUMNS, packed, back);
    ph__wire_unpack(backend->kernels, wire, rows, COLUMNS, whole, wanted, COLUMNS);
    assert_memory_equal(back, wanted, rows * COLUMNS * sizeof *back);
    free(packed);
    free(whole);
}

static void any_number_of_threads_gives_the_same_bits(void **state)
{
    (void)state;
    static const size_t rows[] = {0, 1, 511, 512, 513, MOST_ROWS};
    static ph_real numbers[MOST_ROWS * COLUMNS];
    struct ph__rng_sequence random = {.key = {.seed = test_seed()}};
    for (size_t i = 0; i < MOST_ROWS * COLUMNS; i++)
        numbers[i] = (ph_real)(ph__rng_next_uniform(&random) - .5);
    for (size_t threads = 1; threads <= 3; threads++) {
        struct ph_backend *backend;
        assert_ok(ph_backend_create(
            &(struct ph_backend_options){.size = sizeof(struct ph_backend_options), .num_threads = threads},
            &backend));
        for (int wire = 0; wire < PH_WIRE_COUNT; wire++)
            for (size_t i = 0; i < sizeof rows / sizeof *rows; i++)
                check(backend, (enum ph_wire_format)wire, rows[i], numbers);
        ph_backend_destroy(backend);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(any_number_of_threads_gives_the_same_bits),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
