/* The keys under "model", and those of one's own that a kind may have. */
#include "model/model_options.h"

#include <string.h>

#include "support/test_support.h"

static ph_status read_section(
    struct ph_model_section *section, const char *const *sets, size_t num_sets, struct ph_arena *arena)
{
    struct ph_section sections[PH_NUM_MODEL_SECTIONS];
    const size_t count = ph__model_sections(section, sections);
    PH_TRY(ph__config_read(NULL, sets, num_sets, sections, count, arena));
    return ph__model_section_finish(section, arena);
}

static void a_kind_reads_the_keys_of_its_own(void **state)
{
    (void)state;
    static struct ph_model_section section;
    struct ph_arena arena = {0};
    const char *const sets[] = {"model.kind=dcn_v2", "model.dcn_v2.layers=2", "model.dcn_v2.rank=7"};
    const char *text = NULL;
    assert_ok(read_section(&section, sets, 3, &arena));
    assert_ptr_equal(section.settings.own, section.own[ph_model_find("dcn_v2")].bytes);
    assert_ok(ph__model_changes(&section.settings, &arena, &text));
    assert_string_equal(text, "model.kind=dcn_v2\nmodel.dcn_v2.layers=2\nmodel.dcn_v2.rank=7\n");
    struct ph_section used[PH_NUM_MODEL_SECTIONS];
    assert_int_equal(ph__model_used_sections(&section, used), 2);
    assert_string_equal(used[1].table->section, "model.dcn_v2");
    ph__arena_fini(&arena);
}

static void a_kind_without_keys_has_none(void **state)
{
    (void)state;
    static struct ph_model_section section;
    struct ph_arena arena = {0};
    const char *const sets[] = {"model.kind=lr"};
    struct ph_section used[PH_NUM_MODEL_SECTIONS];
    assert_ok(read_section(&section, sets, 1, &arena));
    assert_null(section.settings.own);
    assert_int_equal(ph__model_used_sections(&section, used), 1);
    ph__arena_fini(&arena);
}

static void a_key_of_another_kind_is_refused(void **state)
{
    (void)state;
    static struct ph_model_section section;
    struct ph_arena arena = {0};
    const char *const sets[] = {"model.kind=fm", "model.dcn.layers=5"};
    const char *const same[] = {"model.kind=fm", "model.dcn.layers=3"};
    assert_fails(read_section(&section, sets, 2, &arena), PH_ERROR_CONFIG,
        "model.dcn.layers=5: is a key of model 'dcn', but model.kind is 'fm'");
    assert_ok(read_section(&section, same, 2, &arena)); /* the default: nothing is set in vain */
    ph__arena_fini(&arena);
}

static void every_kind_keeps_its_keys_in_their_place(void **state)
{
    (void)state;
    for (int kind = 0; kind < PH_NUM_MODELS; kind++) {
        const struct ph_option_table *keys = ph__model(kind)->keys;
        if (keys == NULL)
            continue;
        assert_true(keys->settings_size <= PH_MODEL_KEYS_BYTES);
        assert_int_equal(strncmp(keys->section, "model.", 6), 0);
        assert_string_equal(keys->section + 6, ph_model_name(kind));
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_kind_reads_the_keys_of_its_own),
        cmocka_unit_test(a_kind_without_keys_has_none),
        cmocka_unit_test(a_key_of_another_kind_is_refused),
        cmocka_unit_test(every_kind_keeps_its_keys_in_their_place),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
