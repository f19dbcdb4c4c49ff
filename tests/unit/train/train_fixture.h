/* A small synthetic data set and a job on it, for tests of whole trainings. */
#ifndef PH_TEST_TRAIN_FIXTURE_H
#define PH_TEST_TRAIN_FIXTURE_H

#include "support/test_support.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/file/file.h"
#include "data/data_options.h"
#include "data/synth/synth_options.h"
#include "train/job.h"

#define COUNT(array) (sizeof(array) / sizeof *(array))

static struct {
    struct ph__arena arena;
    struct ph_data_settings data;
    struct ph_encoder *encoder;
} fixture;

/* Writes the same data for every test_seed(), with labels that follow the features closely: chance decides
 * little of what a model learns from so few rows. */
static inline int make_data(void **state)
{
    (void)state;
    static const char *const sets[] = {"synth.train_rows=3000", "synth.valid_rows=500", "synth.test_rows=500",
        "synth.dense=3", "synth.sparse=4", "synth.table_rows=40", "synth.bag_sizes=1,2,1,3",
        "synth.planted_dense=2", "synth.planted=3", "synth.order=1", "synth.scale=4"};
    struct ph_synth_settings synth;
    struct ph__section synth_section = {&ph__synth_options, &synth};
    assert_ok(ph__config_read(NULL, sets, COUNT(sets), &synth_section, 1, &fixture.arena));
    assert_ok(ph_synth_write(&synth, test_folder(), NULL));
    struct ph__section data_section = {&ph__data_options, &fixture.data};
    const char *path = ph__path_join(&fixture.arena, test_folder(), "synth.yaml");
    assert_ok(ph__config_read(path, NULL, 0, &data_section, 1, &fixture.arena));
    assert_ok(ph_encoder_create(&fixture.data, &fixture.encoder));
    return 0;
}

static inline int drop_data(void **state)
{
    (void)state;
    ph_encoder_destroy(fixture.encoder);
    ph__arena_fini(&fixture.arena);
    return 0;
}

static const int64_t units[] = {16, 8};

struct setup {
    struct ph_model_settings model;
    struct ph_train_settings train;
    struct ph_optimizer_settings optimizer;
    struct ph__train_job job;
    char folder[512];
    char first_bad_rows[3][512]; /* that job.options.first_bad_rows are written to */
};

static inline struct setup *set_up(const char *model, const char *folder)
{
    struct setup *setup = calloc(1, sizeof *setup);
    assert_non_null(setup);
    snprintf(setup->folder, sizeof setup->folder, "%s/%s", test_folder(), folder);
    setup->model = (struct ph_model_settings){.kind = ph_model_find(model),
        .embedding_dim = 6,
        .embedding_init_std = 0.05,
        .hidden_units = units,
        .num_hidden_units = 2,
        .bottom_units = units,
        .num_bottom_units = 1,
        .batch_norm = true,
        .dropout = 0.1,
        .activation = PH_RELU};
    setup->train = (struct ph_train_settings){.epochs = 3,
        .batch_size = 256,
        .deterministic = true,
        .patience = 2,
        .schedule = PH_SCHEDULE_PLATEAU,
        .schedule_factor = 0.1,
        .max_gradient_norm = 10,
        .report_seconds = 1000,
        .checkpoints_kept = 2};
    setup->optimizer = (struct ph_optimizer_settings){.rule.kind = PH_ADAM,
        .learning_rate = strcmp(model, "lr") == 0 ? 0.1 : 0.02, /* its weights go far */
        .rule.beta1 = 0.9,
        .rule.beta2 = 0.999,
        .rule.epsilon = 1e-8,
        .embedding_learning_rate_factor = 1,
        .embedding_l2 = 1e-4,
        .embedding_scope = PH_SCOPE_WHOLE};
    setup->job = (struct ph__train_job){.run.seed = test_seed(),
        .model = &setup->model,
        .train = &setup->train,
        .optimizer = &setup->optimizer,
        .encoder = fixture.encoder,
        .paths.train = fixture.data.paths.train,
        .paths.valid = fixture.data.paths.valid,
        .paths.test = fixture.data.paths.test,
        .options.folder = setup->folder,
        .reading.is_shuffled = true,
        .run.num_threads = 1,
        .options.first_bad_rows = {.train = {setup->first_bad_rows[0], sizeof setup->first_bad_rows[0]},
            .valid = {setup->first_bad_rows[1], sizeof setup->first_bad_rows[1]},
            .test = {setup->first_bad_rows[2], sizeof setup->first_bad_rows[2]}}};
    return setup;
}

/* Steps so long that weights and losses stop being finite, and nothing that would hold them. */
static inline void make_divergent(struct setup *setup)
{
    setup->optimizer.rule.kind = PH_SGD;
    setup->optimizer.learning_rate = 1e30;
    setup->optimizer.embedding_l2 = 0;
    setup->train.max_gradient_norm = 0;
}

static inline void remove_folder(const struct setup *setup)
{
    char command[600];
    snprintf(command, sizeof command, "rm -rf '%s'", setup->folder);
    assert_int_equal(system(command), 0);
}

static inline const char *model_of(const struct setup *setup)
{
    return ph__path_join(&fixture.arena, setup->folder, "model.safetensors");
}

/* Begins anew, whatever an earlier training has left. */
static inline struct ph_train_summary train(const struct setup *setup)
{
    remove_folder(setup);
    struct ph_train_summary summary;
    assert_ok(ph__train(&setup->job, &summary));
    return summary;
}

#endif
