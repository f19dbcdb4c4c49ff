#include "study/tune_journal.h"

#include <stdlib.h>
#include <string.h>

#include "base/file/file.h"
#include "base/format/json_fields.h"
#include "base/memory/memory.h"

#define MAX_BYTES ((uint64_t)64 << 20)
#define STEP(member) offsetof(struct ph__tune_step, member)

static const struct ph__json_field fields[] = {
    {"run", PH_JSON_TEXT, STEP(run), sizeof((struct ph__tune_step *)0)->run},
    {"epochs", PH_JSON_SIGNED, STEP(epochs), 0},
    {"exit_code", PH_JSON_SIGNED, STEP(exit_code), 0},
    {"failure", PH_JSON_TEXT, STEP(failure), sizeof((struct ph__tune_step *)0)->failure},
    {"valid_auc", PH_JSON_NUMBER, STEP(valid_auc), 0},
    {"valid_logloss", PH_JSON_NUMBER, STEP(valid_logloss), 0},
    {"epochs_trained", PH_JSON_COUNT, STEP(epochs_trained), 0},
    {"train_seconds", PH_JSON_NUMBER, STEP(train_seconds), 0},
};
#define NUM_FIELDS (sizeof fields / sizeof *fields)

static ph_status append(struct ph__tune_journal *journal, const struct ph__tune_step *step)
{
    void *steps = journal->steps;
    ph_status status = ph__array_reserve(&steps, &journal->capacity, journal->num_steps + 1, sizeof *step);
    journal->steps = steps;
    if (status == PH_OK)
        journal->steps[journal->num_steps++] = *step;
    return status;
}

static ph_status take_steps(struct ph__tune_journal *journal, const struct ph__json *steps, const char *path)
{
    if (!ph__json_is_array(steps))
        return ph_fail(PH_ERROR_CHECKPOINT, "%s: 'steps' is missing or not a list", path);
    for (size_t i = 0; i < ph__json_size(steps); i++) {
        struct ph__tune_step step = {0};
        const char *missing = ph__json_get_fields(ph__json_at(steps, i), fields, NUM_FIELDS, &step);
        if (missing != NULL)
            return ph_fail(
                PH_ERROR_CHECKPOINT, "%s: '%s' of step %zu is missing or invalid", path, missing, i);
        PH_TRY(append(journal, &step));
    }
    return PH_OK;
}

ph_status ph__tune_journal_read(struct ph__tune_journal *journal, const char *path)
{
    struct ph__json *json = NULL;
    *journal = (struct ph__tune_journal){0};
    if (!ph__file_exists(path))
        return PH_OK;
    ph_status status = ph__json_read(path, PH_ERROR_CHECKPOINT, MAX_BYTES, &json);
    if (status == PH_OK)
        status = take_steps(journal, ph__json_get(json, "steps"), path);
    ph__json_destroy(json);
    return status;
}

void ph__tune_journal_fini(struct ph__tune_journal *journal)
{
    free(journal->steps);
    *journal = (struct ph__tune_journal){0};
}

const struct ph__tune_step *ph__tune_journal_find(
    const struct ph__tune_journal *journal, const char *run, int64_t epochs)
{
    for (size_t i = 0; i < journal->num_steps; i++)
        if (journal->steps[i].epochs == epochs && strcmp(journal->steps[i].run, run) == 0)
            return &journal->steps[i];
    return NULL;
}

ph_status ph__tune_journal_add(
    struct ph__tune_journal *journal, const struct ph__tune_step *step, const char *path)
{
    PH_TRY(append(journal, step));
    struct ph__json *object = ph__json_object(), *steps = ph__json_array();
    for (size_t i = 0; i < journal->num_steps; i++) {
        struct ph__json *item = ph__json_object();
        ph__json_set_fields(item, fields, NUM_FIELDS, &journal->steps[i]);
        ph__json_append(steps, item);
    }
    ph__json_set(object, "steps", steps);
    ph_status status = ph__json_write(object, path);
    ph__json_destroy(object);
    return status;
}
