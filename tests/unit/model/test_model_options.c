/* The keys under "model", and those of one's own that a kind may have. */
#include "model/model_options.h"

#include <string.h>

#include "support/test_support.h"

static ph_status read_section(
    struct ph__model_section *section, const char *const *sets, size_t num_sets, struct ph__arena *arena)
{
    struct ph__section sections[PH_NUM_MODEL_SECTIONS];
    const size_t count = ph__model_sections(section, sections);
    PH_TRY(ph__config_read(NULL, sets, num_sets, sections, count, arena));
    return ph__model_section_finish(section, NULL, arena);
}

static void a_kind_reads_the_keys_of_its_own(void **state)
{
    (void)state;
    static struct ph__model_section section;
    struct ph__arena arena = {0};
    const char *const sets[] = {"model.kind=dcn_v2", "model.dcn_v2.layers=2", "model.dcn_v2.rank=7"};
    const char *text = NULL;
    assert_ok(read_section(&section, sets, 3, &arena));
    assert_ptr_equal(section.settings.own, section.own[ph_model_find("dcn_v2")].bytes);
    static struct ph__model_section again;
    struct ph__section used[PH_NUM_MODEL_SECTIONS];
    assert_ok(ph__model_section_take(&again, &section.settings, &arena));
    assert_int_equal(ph__model_used_sections(&again, used), 2);
    assert_ok(ph__config_changes(used, 2, (struct ph__key_filter){.with = PH_KEY_OF_MODEL}, &arena, &text));
    assert_string_equal(text, "model.kind=dcn_v2\nmodel.dcn_v2.layers=2\nmodel.dcn_v2.rank=7\n");
    assert_string_equal(used[1].table->section, "model.dcn_v2");
    ph__arena_fini(&arena);
}

static void a_kind_without_keys_has_none(void **state)
{
    (void)state;
    static struct ph__model_section section;
    struct ph__arena arena = {0};
    const char *const sets[] = {"model.kind=lr"};
    struct ph__section used[PH_NUM_MODEL_SECTIONS];
    assert_ok(read_section(&section, sets, 1, &arena));
    assert_null(section.settings.own);
    assert_int_equal(ph__model_used_sections(&section, used), 1);
    ph__arena_fini(&arena);
}

static void a_key_of_another_kind_is_refused(void **state)
{
    (void)state;
    static struct ph__model_section section;
    struct ph__arena arena = {0};
    const char *const sets[] = {"model.kind=fm", "model.dcn.layers=5"};
    const char *const same[] = {"model.kind=fm", "model.dcn.layers=3"};
    assert_fails(read_section(&section, sets, 2, &arena), PH_ERROR_CONFIG,
        "model.dcn.layers=5: a key of model 'dcn', but model.kind is 'fm'");
    assert_ok(read_section(&section, same, 2, &arena)); /* the default: nothing is set in vain */
    ph__arena_fini(&arena);
}

static void every_kind_keeps_its_keys_in_their_place(void **state)
{
    (void)state;
    for (int kind = 0; kind < PH_NUM_MODELS; kind++) {
        const struct ph__option_table *keys = ph__model(kind)->keys;
        if (keys == NULL)
            continue;
        assert_true(keys->settings_size <= PH_MODEL_KEYS_BYTES);
        assert_int_equal(strncmp(keys->section, "model.", 6), 0);
        assert_string_equal(keys->section + 6, ph_model_name(kind));
    }
}

/* A model of these keys reads well but cannot be built on two features; the program ends with 2. */
static void assert_not_built(const char *const *sets, size_t num_sets, const char *part)
{
    static struct ph__model_section section;
    static const struct ph_table_slice sparse[] = {{"user", 5}, {"item", 7}};
    const struct ph_model_features features = {
        .num_dense = 3, .num_sparse = 2, .num_tasks = 1, .sparse = sparse};
    struct ph__arena arena = {0};
    struct ph_builder *builder = NULL;
    assert_ok(read_section(&section, sets, num_sets, &arena));
    assert_ok(ph_builder_create(PH_TRAINING, &builder));
    assert_int_equal(ph_model_build(builder, &section.settings, &features), 0);
    assert_fails(ph_builder_status(builder), PH_ERROR_CONFIG, part);
    assert_int_equal(ph_status_exit_code(ph_builder_status(builder)), 2);
    ph_builder_destroy(builder);
    ph__arena_fini(&arena);
}

static void heads_that_do_not_divide_are_refused(void **state)
{
    (void)state;
    const char *const dhen[] = {"model.kind=dhen", "model.embedding_dim=10", "model.dhen.heads=4"};
    const char *const autoint[] = {
        "model.kind=autoint", "model.autoint.attention_dim=9", "model.autoint.heads=2"};
    const char *const finalmlp[] = {"model.kind=finalmlp", "model.finalmlp.first_units=9",
        "model.finalmlp.second_units=8", "model.finalmlp.heads=2"};
    assert_not_built(dhen, 3, "model.dhen: embedding_dim 10 is not a multiple of 4 heads");
    assert_not_built(autoint, 3, "model.autoint: attention_dim 9 is not a multiple of 2 heads");
    assert_not_built(finalmlp, 4, "model.finalmlp: streams of 9 and 8 units must be multiples of 2 heads");
}

static void modules_that_are_not_there_are_refused(void **state)
{
    (void)state;
    const char *const misspelt[] = {"model.kind=dhen", "model.dhen.modules=dot,croos"};
    const char *const none[] = {"model.kind=dhen", "model.dhen.modules="};
    assert_not_built(misspelt, 2, "model.dhen.modules: unknown module 'croos'; use dot, attention,");
    assert_not_built(none, 2, "model.dhen.modules: must name at least one module");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_kind_reads_the_keys_of_its_own),
        cmocka_unit_test(a_kind_without_keys_has_none),
        cmocka_unit_test(a_key_of_another_kind_is_refused),
        cmocka_unit_test(every_kind_keeps_its_keys_in_their_place),
        cmocka_unit_test(heads_that_do_not_divide_are_refused),
        cmocka_unit_test(modules_that_are_not_there_are_refused),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
