#include "study/comparison.h"

#include <inttypes.h>
#include <string.h>

#include "base/file/file.h"
#include "base/memory/memory.h"
#include "base/thread/stop.h"
#include "train/folder/summary.h"

/* ---- rows ---- */

/* Returns the file's name without folder and extension, in the arena; NULL when out of memory. */
static const char *stem_of(struct ph__arena *arena, const char *path)
{
    const char *slash = strrchr(path, '/'), *name = slash != NULL ? slash + 1 : path;
    const char *dot = strrchr(name, '.');
    size_t length = dot != NULL && dot > name ? (size_t)(dot - name) : strlen(name);
    return ph__arena_printf(arena, "%.*s", (int)length, name);
}

static ph_status has_same_stem(
    struct ph__arena *arena, const struct ph__comparison_plan *plan, size_t config, bool *has_out)
{
    const char *stem = stem_of(arena, plan->configs[config]);
    *has_out = false;
    for (size_t i = 0; i < plan->num_configs; i++) {
        const char *other = stem_of(arena, plan->configs[i]);
        if (stem == NULL || other == NULL)
            return PH_ERROR_MEMORY;
        *has_out = *has_out || (i != config && strcmp(other, stem) == 0);
    }
    return PH_OK;
}

/* Names a row, such as "dlrm, train.precision=bf16 model.dropout=0.1". */
static ph_status name_row(struct ph__comparison *comparison, const struct ph__comparison_plan *plan,
    size_t config, bool is_variant, const char **name_out)
{
    const char *path = plan->configs[config];
    bool has_same;
    PH_TRY(has_same_stem(&comparison->arena, plan, config, &has_same));
    const char *name = has_same ? path : stem_of(&comparison->arena, path);
    for (size_t i = 0; is_variant && i < plan->num_variant && name != NULL; i++)
        name = ph__arena_printf(&comparison->arena, "%s%s %s", name, i == 0 ? "," : "", plan->variant[i]);
    *name_out = name;
    return name != NULL ? PH_OK : PH_ERROR_MEMORY;
}

static ph_status read_config(struct ph__comparison *comparison, const struct ph__comparison_plan *plan,
    bool is_variant, struct ph__compared *row)
{
    size_t num_sets = plan->num_sets + (is_variant ? plan->num_variant : 0);
    const char **sets = ph__arena_alloc_array(&comparison->arena, num_sets, sizeof *sets);
    if (sets == NULL)
        return PH_ERROR_MEMORY;
    for (size_t i = 0; i < num_sets; i++)
        sets[i] = i < plan->num_sets ? plan->sets[i] : plan->variant[i - plan->num_sets];
    PH_TRY(ph_config_read(row->path, sets, num_sets, &row->config));
    if (row->config->data.paths.train == NULL)
        return ph_fail(PH_ERROR_CONFIG, "%s: data.train is missing: name the training data", row->path);
    return PH_OK;
}

static ph_status name_folders(
    struct ph__comparison *comparison, const struct ph__comparison_plan *plan, struct ph__compared *row)
{
    const char *stem = stem_of(&comparison->arena, row->path);
    row->runs = ph__arena_alloc_array(&comparison->arena, plan->num_seeds, sizeof *row->runs);
    if (stem == NULL || row->runs == NULL)
        return PH_ERROR_MEMORY;
    for (size_t s = 0; s < plan->num_seeds; s++) {
        row->runs[s].folder = ph__arena_printf(
            &comparison->arena, "%s/runs/%s-%s-seed%" PRId64, plan->folder, stem, row->key, plan->seeds[s]);
        if (row->runs[s].folder == NULL)
            return PH_ERROR_MEMORY;
    }
    return PH_OK;
}

/* PH_ERROR_USAGE for a set of the seed: seeds are given by the plan. */
static ph_status check_sets(const char *const *sets, size_t num_sets, const char *flag)
{
    for (size_t i = 0; i < num_sets; i++)
        if (strncmp(sets[i], "seed=", 5) == 0)
            return ph_fail(PH_ERROR_USAGE, "%s %s: set seeds by --seeds instead", flag, sets[i]);
    return PH_OK;
}

/* PH_ERROR_USAGE when a variant has the same key as its base: their runs would be the same. */
static ph_status check_variant(
    const struct ph__comparison *comparison, const struct ph__comparison_plan *plan, size_t row)
{
    const struct ph__compared *compared = &comparison->rows[row];
    if (strcmp(compared->key, comparison->rows[compared->base].key) != 0)
        return PH_OK;
    return ph_fail(PH_ERROR_USAGE, "--with %s%s: no effect on the outcome of %s", plan->variant[0],
        plan->num_variant > 1 ? " and the others" : "", compared->path);
}

/* Adds a row. Counts it before its config is read, so that fini reaches all that was created. */
static ph_status add_row(struct ph__comparison *comparison, const struct ph__comparison_plan *plan,
    const char *program, size_t config, bool is_variant, size_t base)
{
    struct ph__compared *row = &comparison->rows[comparison->num_rows];
    row->path = plan->configs[config];
    row->base = base;
    row->is_variant = is_variant;
    comparison->num_rows++;
    PH_TRY(name_row(comparison, plan, config, is_variant, &row->name));
    PH_TRY(read_config(comparison, plan, is_variant, row));
    PH_TRY(ph__run_key(row->config, program, row->key));
    PH_TRY(ph__data_key(&row->config->data, row->config->data.paths.test, row->test_key));
    return name_folders(comparison, plan, row);
}

static ph_status check_configs(const struct ph__comparison_plan *plan, size_t *base_out)
{
    bool has_base = plan->base == NULL;
    *base_out = 0;
    for (size_t i = 0; i < plan->num_configs; i++) {
        if (!has_base && strcmp(plan->configs[i], plan->base) == 0) {
            *base_out = i;
            has_base = true;
        }
        for (size_t j = 0; j < i; j++)
            if (strcmp(plan->configs[i], plan->configs[j]) == 0)
                return ph_fail(PH_ERROR_USAGE, "%s is given twice", plan->configs[i]);
    }
    return has_base ? PH_OK
                    : ph_fail(PH_ERROR_USAGE, "--base %s is not one of the compared configs", plan->base);
}

ph_status ph__comparison_init(struct ph__comparison *comparison, const struct ph__comparison_plan *plan)
{
    const size_t per_config = plan->num_variant > 0 ? 2 : 1;
    char program[65];
    size_t base;
    *comparison = (struct ph__comparison){.seeds = plan->seeds, .num_seeds = plan->num_seeds};
    PH_TRY(check_configs(plan, &base));
    PH_TRY(check_sets(plan->sets, plan->num_sets, "--set"));
    PH_TRY(check_sets(plan->variant, plan->num_variant, "--with"));
    PH_TRY(ph__program_digest(program));
    comparison->rows =
        ph__arena_alloc_array(&comparison->arena, per_config * plan->num_configs, sizeof *comparison->rows);
    if (comparison->rows == NULL)
        return PH_ERROR_MEMORY;
    for (size_t i = 0; i < plan->num_configs; i++) {
        PH_TRY(add_row(comparison, plan, program, i, false, per_config * base));
        if (per_config == 1)
            continue;
        PH_TRY(add_row(comparison, plan, program, i, true, 2 * i));
        PH_TRY(check_variant(comparison, plan, 2 * i + 1));
    }
    return PH_OK;
}

void ph__comparison_fini(struct ph__comparison *comparison)
{
    for (size_t i = 0; i < comparison->num_rows; i++)
        ph_config_destroy(comparison->rows[i].config);
    ph__arena_fini(&comparison->arena);
}

/* ---- running ---- */

/* Marks a run as finished when its summary is complete: a training writes it once, at its end. */
static ph_status find_finished(struct ph__comparison *comparison, struct ph__compared_run *run)
{
    const char *path = ph__path_join(&comparison->arena, run->folder, "summary.json");
    if (path == NULL)
        return PH_ERROR_MEMORY;
    if (!ph__file_exists(path) ||
        ph__summary_read(path, &run->summary, NULL, run->backend, sizeof run->backend) != PH_OK)
        return PH_OK;
    run->state = PH_RUN_FINISHED;
    return PH_OK;
}

static ph_status note_failure(
    struct ph__comparison *comparison, struct ph__compared_run *run, ph_status status)
{
    run->state = PH_RUN_FAILED;
    run->status = status;
    run->failure = ph__arena_strdup(&comparison->arena, ph_error_text());
    return run->failure != NULL ? PH_OK : PH_ERROR_MEMORY;
}

static ph_status train(struct ph__comparison *comparison, const struct ph__comparison_watcher *watcher,
    struct ph__compared *row, size_t seed)
{
    struct ph__compared_run *run = &row->runs[seed];
    const struct ph_train_options options = {
        .size = sizeof options,
        .folder = run->folder,
        .is_resumed = true,
        .observer = &watcher->observer,
        .stop_signal = watcher->stop_signal,
    };
    row->config->run.seed = (uint64_t)comparison->seeds[seed];
    ph__memory_reset_peak_rss();
    ph_status status = ph_train_config(row->config, &options, &run->summary);
    if (status == PH_OK)
        return find_finished(comparison, run);
    return ph__is_stop_status(status) ? status : note_failure(comparison, run, status);
}

static ph_status run_one(
    struct ph__comparison *comparison, const struct ph__comparison_watcher *watcher, size_t row, size_t seed)
{
    struct ph__compared_run *run = &comparison->rows[row].runs[seed];
    PH_TRY(find_finished(comparison, run));
    run->is_of_before = run->state == PH_RUN_FINISHED;
    if (!run->is_of_before)
        PH_TRY(train(comparison, watcher, &comparison->rows[row], seed));
    if (watcher->on_run != NULL)
        watcher->on_run(watcher->context, comparison, row, seed);
    return PH_OK;
}

static size_t count_runs(const struct ph__comparison *comparison, enum ph__run_state state)
{
    size_t count = 0;
    for (size_t row = 0; row < comparison->num_rows; row++)
        for (size_t seed = 0; seed < comparison->num_seeds; seed++)
            count += comparison->rows[row].runs[seed].state == state;
    return count;
}

ph_status ph__comparison_run(struct ph__comparison *comparison, const struct ph__comparison_watcher *watcher)
{
    for (size_t seed = 0; seed < comparison->num_seeds; seed++) {
        for (size_t row = 0; row < comparison->num_rows; row++) {
            ph_status status = run_one(comparison, watcher, row, seed);
            if (ph__is_stop_status(status))
                return ph_fail(status,
                    "stopped by a signal with %zu of %zu runs finished; the same command goes on",
                    count_runs(comparison, PH_RUN_FINISHED), comparison->num_rows * comparison->num_seeds);
            PH_TRY(status);
        }
    }
    return PH_OK;
}

/* ---- outcome ---- */

ph_status ph__comparison_outcome(const struct ph__comparison *comparison)
{
    for (size_t seed = 0; seed < comparison->num_seeds; seed++) {
        for (size_t row = 0; row < comparison->num_rows; row++) {
            const struct ph__compared_run *run = &comparison->rows[row].runs[seed];
            if (run->state == PH_RUN_FAILED)
                return ph_fail(run->status, "%zu of %zu runs failed, the first %s with seed %" PRId64 ": %s",
                    count_runs(comparison, PH_RUN_FAILED), comparison->num_rows * comparison->num_seeds,
                    comparison->rows[row].name, comparison->seeds[seed], run->failure);
        }
    }
    return PH_OK;
}
