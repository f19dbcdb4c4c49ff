/* Weights say what they were trained with, and folders whose config says otherwise are not opened. */
#include "serve/model_identity.h"

#include "base/option.h"
#include "model/model_options.h"
#include "support/test_support.h"

/* The text of a model section that these "key=value" give. */
static const char *identity_of(
    const char *const *sets, size_t num_sets, double negative_rate, struct ph_arena *arena)
{
    static struct ph_model_section section;
    const char *text = NULL;
    assert_ok(
        ph__config_read(NULL, sets, num_sets, &(struct ph_section){&ph__model_options, &section}, 1, arena));
    ph__model_section_finish(&section);
    assert_ok(ph__model_identity(&section.settings, negative_rate, arena, &text));
    return text;
}

static void defaults_are_left_out(void **state)
{
    (void)state;
    struct ph_arena arena = {0};
    const char *const sets[] = {"model.kind=fm", "model.embedding_dim=16", "model.hidden_units=64,32",
        "model.embedding_init_std=0.0001"};
    assert_string_equal(identity_of(NULL, 0, 1, &arena), "");
    assert_string_equal(identity_of(NULL, 0, 0, &arena), "");
    assert_string_equal(identity_of(sets, 4, 1, &arena), "model.kind=fm\nmodel.hidden_units=64, 32\n");
    assert_string_equal(identity_of(sets, 1, 0.25, &arena), "model.kind=fm\ndata.negative_rate=0.25\n");
    ph__arena_fini(&arena);
}

static void what_differs_is_named(void **state)
{
    (void)state;
    const char *const fm = "model.kind=fm\nmodel.embedding_dim=8\n";
    assert_ok(ph__model_identity_check("w", "", ""));
    assert_ok(ph__model_identity_check("w", fm, fm));
    assert_fails(ph__model_identity_check("w", fm, "model.kind=fm\n"), PH_ERROR_CHECKPOINT,
        "w: was trained with model.embedding_dim=8, and its config says something else");
    assert_fails(ph__model_identity_check("w", fm, "model.kind=fm\nmodel.embedding_dim=80\n"),
        PH_ERROR_CHECKPOINT, "w: was trained with model.embedding_dim=8, and");
    assert_fails(ph__model_identity_check("w", "model.kind=fm\n", fm), PH_ERROR_CHECKPOINT,
        "w: was not trained with model.embedding_dim=8, which its config says");
    assert_fails(ph__model_identity_check("w", "", "data.negative_rate=0.1\n"), PH_ERROR_CHECKPOINT,
        "not trained with data.negative_rate=0.1");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(defaults_are_left_out),
        cmocka_unit_test(what_differs_is_named),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
