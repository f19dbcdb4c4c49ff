#include "kernel/gemm_context.h"
#include "support/test_support.h"

/* Pieces follow one another without a gap, and a kind has one size. */
static void check(size_t length, size_t full)
{
    const struct ph__cut cut = ph__cut_length(length, full);
    size_t sizes[PH_MAX_TAIL + 2] = {0}, next = 0;
    for (size_t i = 0; i < ph__cut_pieces(&cut); i++) {
        const struct ph__piece piece = ph__cut_piece(&cut, i);
        assert_int_equal(piece.first, next);
        assert_true(piece.count > 0 && piece.kind < PH_MAX_TAIL + 2);
        assert_true(sizes[piece.kind] == 0 || sizes[piece.kind] == piece.count);
        sizes[piece.kind] = piece.count;
        next += piece.count;
    }
    assert_int_equal(next, length);
    assert_true(sizes[0] == 0 || sizes[0] == full);
}

static void pieces_cover_a_length_once(void **state)
{
    (void)state;
    for (size_t full = PH_MIN_PIECE; full <= 1024; full *= 2)
        for (size_t length = 0; length < 2300; length += length < 70 ? 1 : 37)
            check(length, full);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(pieces_cover_a_length_once),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
