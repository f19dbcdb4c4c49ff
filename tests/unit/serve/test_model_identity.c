/* Weights say what they were trained with, and folders whose config says otherwise are not opened. */
#include "serve/model_identity.h"

#include "base/option/option.h"
#include "model/model_options.h"
#include "support/test_support.h"

#include <string.h>

/* The text of a model section that these "key=value" give. */
static const char *identity_of(
    const char *const *sets, size_t num_sets, double negative_rate, struct ph__arena *arena)
{
    static struct ph__model_section section;
    const char *text = NULL;
    struct ph__section sections[PH_NUM_MODEL_SECTIONS];
    const size_t count = ph__model_sections(&section, sections);
    assert_ok(ph__config_read(NULL, sets, num_sets, sections, count, arena));
    assert_ok(ph__model_section_finish(&section, NULL, arena));
    assert_ok(ph__model_identity(&section.settings, negative_rate, arena, &text));
    return text;
}

static void defaults_are_left_out(void **state)
{
    (void)state;
    struct ph__arena arena = {0};
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
        "w: was trained with model.embedding_dim=8, but its config says otherwise");
    assert_fails(ph__model_identity_check("w", fm, "model.kind=fm\nmodel.embedding_dim=80\n"),
        PH_ERROR_CHECKPOINT, "w: was trained with model.embedding_dim=8, but");
    assert_fails(ph__model_identity_check("w", "model.kind=fm\n", fm), PH_ERROR_CHECKPOINT,
        "w: was not trained with model.embedding_dim=8, but its config says so");
    assert_fails(ph__model_identity_check("w", "", "data.negative_rate=0.1\n"), PH_ERROR_CHECKPOINT,
        "not trained with data.negative_rate=0.1");
}

static void sets_are_the_lines_again(void **state)
{
    (void)state;
    struct ph__arena arena = {0};
    const char *const *sets = NULL;
    size_t count = 1;
    assert_ok(ph__model_identity_sets("w", "", &arena, &sets, &count));
    assert_int_equal(count, 0);
    const char *const given[] = {"model.kind=deepfm", "model.hidden_units=7, 5", "model.top_units="};
    const char *text = identity_of(given, 3, 0.1, &arena);
    assert_ok(ph__model_identity_sets("w", text, &arena, &sets, &count));
    assert_int_equal(count, 3);
    assert_string_equal(sets[1], "model.hidden_units=7, 5");
    assert_string_equal(sets[2], "data.negative_rate=0.1");
    assert_string_equal(identity_of(sets, 2, 0.1, &arena), text);
    const char *const named[] = {
        "model.kind=din", "model.din.targets=\"it,em\", \"c\\nd\"", "model.din.histories=a, b"};
    text = identity_of(named, 3, 1, &arena);
    assert_ok(ph__model_identity_sets("w", text, &arena, &sets, &count));
    assert_int_equal(count, 3);
    assert_string_equal(identity_of(sets, 3, 1, &arena), text);
    assert_non_null(strstr(text, "model.din.targets=\"it,em\", \"c\\nd\"\n"));
    ph__arena_fini(&arena);
}

static void texts_of_others_are_refused(void **state)
{
    (void)state;
    static const struct {
        const char *text, *part;
    } cases[] = {
        {"model.kind=none\n",
            "w: the model's settings are not valid: --set model.kind=none: model.kind: must be one of"},
        {"model.layers=3\n", "unknown key 'model.layers'"},
        {"model.embedding_dim=0", "must be an integer from 1"},
        {"model.hidden_units[9]=5\n", "the list has only 3 items"},
        {"model.\n", "must be key=value"},
        {"data.negative_rate=2\n", "data.negative_rate: must be a number"},
        {"model.kind=fm\n\n", "w: '' is not a setting of a model"},
        {"data.train=/etc/passwd\n", "w: 'data.train=/etc/passwd' is not a setting of a model"},
        {"seed=1\n", "w: 'seed=1' is not a setting of a model"},
    };
    struct ph__arena arena = {0};
    const char *const *sets = NULL;
    size_t count = 0;
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++)
        assert_fails(ph__model_identity_sets("w", cases[i].text, &arena, &sets, &count), PH_ERROR_CHECKPOINT,
            cases[i].part);
    char *text = ph__arena_alloc(&arena, 20000);
    memset(text, '\n', 19999);
    assert_fails(ph__model_identity_sets("w", text, &arena, &sets, &count), PH_ERROR_CHECKPOINT, "too long");
    assert_null(sets);
    ph__arena_fini(&arena);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(defaults_are_left_out),
        cmocka_unit_test(what_differs_is_named),
        cmocka_unit_test(sets_are_the_lines_again),
        cmocka_unit_test(texts_of_others_are_refused),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
