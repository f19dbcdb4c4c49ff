#include "study/tuning.h"

#include <errno.h>
#include <inttypes.h>
#include <math.h>
#include <string.h>
#include <unistd.h>

#include "base/file/file.h"
#include "base/format/text_table.h"

/* Returns a candidate's value for the range; "" for the config as it is. */
static const char *value_of(const struct ph__trial *trial, size_t range)
{
    return range < trial->num_sets ? strchr(trial->sets[range], '=') + 1 : "";
}

static const char *state_of(const struct ph__trial *trial)
{
    if (trial->failure != NULL)
        return "failed";
    return trial->num_rungs > 0 ? "finished" : "waiting";
}

/* ---- trials.csv ---- */

static ph_status write_heading(const struct ph__tune_settings *tune, struct ph__writer *writer)
{
    const struct ph__range_settings *ranges = tune->ranges.items;
    PH_TRY(ph__writer_printf(writer, "trial,run,state,epochs,valid_auc,valid_auc_deviation,valid_logloss,"
                                     "valid_logloss_deviation,train_seconds,failure"));
    for (size_t i = 0; i < tune->ranges.count; i++) {
        PH_TRY(ph__writer_write(writer, ",", 1));
        PH_TRY(ph__csv_write_text(writer, ranges[i].key));
    }
    return ph__writer_write(writer, "\n", 1);
}

static ph_status write_trial(
    const struct ph__tune_settings *tune, const struct ph__trial *trial, struct ph__writer *writer)
{
    const bool has = trial->num_rungs > 0;
    const double numbers[] = {trial->valid_auc, trial->auc_deviation, trial->valid_logloss,
        trial->logloss_deviation, trial->train_seconds};
    PH_TRY(ph__writer_printf(
        writer, "%" PRIu64 ",%s,%s,%" PRId64, trial->index, trial->name, state_of(trial), trial->epochs));
    for (size_t i = 0; i < sizeof numbers / sizeof *numbers; i++) {
        PH_TRY(ph__writer_write(writer, ",", 1));
        PH_TRY(ph__csv_write_number(writer, has ? numbers[i] : (double)NAN));
    }
    PH_TRY(ph__writer_write(writer, ",", 1));
    PH_TRY(ph__csv_write_text(writer, trial->failure != NULL ? trial->failure : ""));
    for (size_t i = 0; i < tune->ranges.count; i++) {
        PH_TRY(ph__writer_write(writer, ",", 1));
        PH_TRY(ph__csv_write_text(writer, value_of(trial, i)));
    }
    return ph__writer_write(writer, "\n", 1);
}

static ph_status write_trials(
    struct ph__tuning *tuning, const struct ph__trial **trials, struct ph__writer *writer)
{
    PH_TRY(write_heading(&tuning->config->tune, writer));
    for (size_t i = 0; i < tuning->num_trials; i++)
        PH_TRY(write_trial(&tuning->config->tune, trials[i], writer));
    return PH_OK;
}

/* ---- both files ---- */

/* Writes best.yaml. best NULL: removes a former one. */
static ph_status write_best(struct ph__tuning *tuning, const struct ph__trial *best)
{
    const char *path = ph__path_join(&tuning->arena, tuning->plan->folder, "best.yaml");
    struct ph_config *config;
    if (path == NULL)
        return PH_ERROR_MEMORY;
    if (best == NULL && unlink(path) != 0 && errno != ENOENT)
        return ph_fail(PH_ERROR_DISK, "%s: cannot remove: %s", path, strerror(errno));
    if (best == NULL)
        return PH_OK;
    PH_TRY(ph__tuning_read_trial(tuning, best, &config));
    ph_status status = ph_config_write(config, path);
    ph_config_destroy(config);
    return status;
}

ph_status ph__tuning_files_write(struct ph__tuning *tuning)
{
    const char *path = ph__path_join(&tuning->arena, tuning->plan->folder, "trials.csv");
    const struct ph__trial **trials;
    size_t num_finished;
    struct ph__writer *writer;
    if (path == NULL)
        return PH_ERROR_MEMORY;
    PH_TRY(ph__tuning_order(tuning, &trials, &num_finished));
    PH_TRY(ph__writer_open_atomic(path, &writer));
    PH_TRY(ph__writer_end(writer, write_trials(tuning, trials, writer)));
    return write_best(tuning, num_finished > 0 ? trials[0] : NULL);
}

/* ---- table for people ---- */

static const struct ph__text_column columns[] = {
    {"trial", true},
    {"epochs", true},
    {"valid AUC", true},
    {"valid logloss", true},
    {"training, s", true},
    {"values", false},
};

static void add_spread(struct ph__text_table *table, double mean, double deviation)
{
    if (isfinite(mean) && isfinite(deviation))
        ph__text_table_cell(table, "%.5f ± %.5f", mean, deviation);
    else
        ph__text_table_number(table, "%.5f", mean);
}

static ph_status add_row(
    struct ph__tuning *tuning, const struct ph__trial *trial, struct ph__text_table *table)
{
    const char *values = trial->num_sets == 0 ? "the config as it is" : "";
    for (size_t i = 0; i < trial->num_sets && values != NULL; i++)
        values = ph__arena_printf(&tuning->arena, "%s%s%s", values, i > 0 ? " " : "", trial->sets[i]);
    if (values == NULL)
        return PH_ERROR_MEMORY;
    ph__text_table_cell(table, "%" PRIu64, trial->index);
    if (trial->failure != NULL) {
        ph__text_table_cell(table, "failed");
        for (size_t i = 0; i < 3; i++)
            ph__text_table_cell(table, "–");
    } else {
        ph__text_table_cell(table, "%" PRId64, trial->epochs);
        add_spread(table, trial->valid_auc, trial->auc_deviation);
        add_spread(table, trial->valid_logloss, trial->logloss_deviation);
        ph__text_table_number(table, "%.1f", trial->train_seconds);
    }
    ph__text_table_cell(table, "%s", values);
    return PH_OK;
}

ph_status ph__tuning_table(struct ph__tuning *tuning, struct ph__text_table *table_out)
{
    const struct ph__trial **trials;
    size_t num_finished;
    ph__text_table_init(table_out, columns, sizeof columns / sizeof *columns);
    PH_TRY(ph__tuning_order(tuning, &trials, &num_finished));
    for (size_t i = 0; i < tuning->num_trials; i++)
        if (trials[i]->num_rungs > 0 || trials[i]->failure != NULL)
            PH_TRY(add_row(tuning, trials[i], table_out));
    return PH_OK;
}
