/* Folders without config.yaml: the weights say themselves which model they are of, and are believed as far as
 * they can be. */
#include "unit/serve/run_folder.h"

#include <string.h>
#include <unistd.h>

#define COUNT(array) (sizeof(array) / sizeof *(array))

static void remove_config(const char *folder)
{
    char path[600];
    snprintf(path, sizeof path, "%s/config.yaml", folder);
    assert_int_equal(unlink(path), 0);
}

/* Saves the weights of the model that the folder's config says once more: now they say so, too. */
static void let_weights_speak(const char *folder, double negative_rate)
{
    struct ph__model_config config;
    const char *identity = NULL;
    assert_ok(ph__model_config_read(&config, folder));
    assert_ok(ph__model_identity(&config.model.settings, negative_rate, &config.arena, &identity));
    save_weights_as(&config.model.settings, folder, identity);
    ph__model_config_fini(&config);
}

static void score_row(const char *folder, float *probability)
{
    struct ph_session *session = NULL;
    char cells[200], line[220];
    size_t num_rows = 0;
    write_cells(cells, 12);
    snprintf(line, sizeof line, "%s\n", cells);
    assert_ok(ph_session_open(folder, NULL, &session));
    assert_ok(ph_session_score_text(session, line, strlen(line), probability, 1, &num_rows));
    assert_int_equal(num_rows, 1);
    ph_session_close(session);
}

static void weights_stand_for_a_missing_config(void **state)
{
    (void)state;
    static const char *const kinds[] = {"lr", "dlrm", "deepfm"};
    for (size_t i = 0; i < COUNT(kinds); i++) {
        const char *folder = make_run_folder(kinds[i]);
        float with = -1, without = -2;
        let_weights_speak(folder, 1);
        score_row(folder, &with);
        remove_config(folder);
        score_row(folder, &without);
        assert_memory_equal(&with, &without, sizeof with);
    }
}

static void the_rate_of_negatives_comes_from_the_weights_too(void **state)
{
    (void)state;
    struct ph__model_config config;
    const char *folder = make_run_folder("fm");
    float all = -1, sampled = -2;
    let_weights_speak(folder, 1);
    score_row(folder, &all);
    let_weights_speak(folder, 0.25);
    remove_config(folder);
    assert_ok(ph__model_config_read(&config, folder));
    assert_true(config.data.reading.negative_rate == 0.25);
    assert_int_equal(config.model.settings.kind, ph_model_find("fm"));
    assert_int_equal(config.model.settings.num_hidden_units, 2);
    ph__model_config_fini(&config);
    score_row(folder, &sampled);
    assert_near(sampled, all / (all + (1 - all) / 0.25), 0, 1e-6);
}

static void a_config_that_is_there_must_agree(void **state)
{
    (void)state;
    struct ph_session *session = NULL;
    const char *folder = make_run_folder("fm");
    let_weights_speak(folder, 0.25);
    assert_fails(
        ph_session_open(folder, NULL, &session), PH_ERROR_CHECKPOINT, "was trained with data.negative_rate");
}

/* Weights of a dlrm of embedding_dim 6 that say something else. */
static void weights_that_cannot_be_what_they_say_are_refused(void **state)
{
    (void)state;
    static const struct {
        const char *identity, *part;
    } cases[] = {
        {NULL, "config.yaml does not exist, and "},
        {"model.kind=none\n", "must be one of"},
        {"data.train=x\n", "is not a setting of a model"},
        {"", "bytes of weights, but the model needs"},
        {"model.kind=lr\n", "the model's tensor"},
        {"model.embedding_dim=65536\nmodel.hidden_units=1048576, 1048576\n",
            "bytes of weights, but the model needs"},
    };
    struct ph__model_config config;
    const char *folder = make_run_folder("dlrm");
    assert_ok(ph__model_config_read(&config, folder));
    remove_config(folder);
    for (size_t i = 0; i < COUNT(cases); i++) {
        struct ph_session *session = NULL;
        save_weights_as(&config.model.settings, folder, cases[i].identity);
        assert_fails(ph_session_open(folder, NULL, &session), PH_ERROR_CHECKPOINT, cases[i].part);
        assert_fails(ph_session_open(folder, NULL, &session), PH_ERROR_CHECKPOINT, "model.safetensors");
    }
    ph__model_config_fini(&config);
}

/* The model asks for a feature that the encoder does not give. */
static void models_that_the_encoder_does_not_allow_are_refused(void **state)
{
    (void)state;
    struct ph_session *session = NULL;
    struct ph__model_config config;
    char text[400];
    snprintf(text, sizeof text,
        "data:\n  train: %s\n  fields: [{name: label, kind: label}, {name: user, kind: id}, {name: '*', "
        "kind: ignore}]\nmodel: {kind: fm}\n",
        write_rows("one.csv"));
    const char *folder = make_folder("one", text);
    assert_ok(ph__model_config_read(&config, folder));
    save_weights_as(&config.model.settings, folder,
        "model.kind=din\nmodel.din.targets=user\nmodel.din.histories=visited\n");
    remove_config(folder);
    assert_fails(ph_session_open(folder, NULL, &session), PH_ERROR_CHECKPOINT, "visited");
    assert_fails(ph_session_open(folder, NULL, &session), PH_ERROR_CHECKPOINT, "model.safetensors: ");
    ph__model_config_fini(&config);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(weights_stand_for_a_missing_config),
        cmocka_unit_test(the_rate_of_negatives_comes_from_the_weights_too),
        cmocka_unit_test(a_config_that_is_there_must_agree),
        cmocka_unit_test(weights_that_cannot_be_what_they_say_are_refused),
        cmocka_unit_test(models_that_the_encoder_does_not_allow_are_refused),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
