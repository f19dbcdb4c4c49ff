#include "cli/sim/sim_sweep.h"

#include <ctype.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/file/directory.h"
#include "base/file/file.h"
#include "base/text/number.h"
#include "cli/output.h"
#include "plan/fabric/fabric.h"
#include "train/config/job_config.h"

enum { MOST_RANKS = 65536, MOST_VALUES = 64, MOST_COMBINATIONS = 1000 };

ph_status cli_sim_world_parse(const char *flag, const char *text, size_t *world_size_out)
{
    int64_t count;
    if (!ph__integer_parse(text, &count) || count < 1 || count > MOST_RANKS)
        return ph_fail(PH_ERROR_USAGE, "%s must be from 1 to %d, not '%s'", flag, MOST_RANKS, text);
    *world_size_out = (size_t)count;
    return PH_OK;
}

/* ---- axes ---- */

/* Returns the length of the first value of a list: commas in brackets are its own. */
static size_t value_length(const char *text)
{
    size_t length = 0;
    for (int depth = 0; text[length] != '\0' && (depth > 0 || text[length] != ','); length++)
        depth += (strchr("[{", text[length]) != NULL) - (strchr("]}", text[length]) != NULL);
    return length;
}

static ph_status split(struct ph__arena *arena, const char *text, struct cli_sim_axis *axis)
{
    const char **values = ph__arena_alloc_array(arena, MOST_VALUES, sizeof *values);
    if (values == NULL)
        return PH_ERROR_MEMORY;
    for (bool is_last = false; !is_last; axis->num_values++) {
        const size_t length = value_length(text);
        if (length == 0)
            return ph_fail(PH_ERROR_USAGE, "--sweep %s: a value is empty", axis->key);
        if (axis->num_values == MOST_VALUES)
            return ph_fail(PH_ERROR_USAGE, "--sweep %s: more than %d values", axis->key, MOST_VALUES);
        values[axis->num_values] = ph__arena_printf(arena, "%.*s", (int)length, text);
        if (values[axis->num_values] == NULL)
            return PH_ERROR_MEMORY;
        is_last = text[length] == '\0';
        text += length + !is_last;
    }
    axis->values = values;
    return PH_OK;
}

/* Returns the first axis of that key; num_axes: there is none. */
static size_t find_axis(const struct cli_sim_sweep *sweep, const char *key)
{
    size_t at = 0;
    while (at < sweep->num_axes && strcmp(sweep->axes[at].key, key) != 0)
        at++;
    return at;
}

static ph_status add_axis(struct cli_sim_sweep *sweep, const char *text)
{
    const char *equals = strchr(text, '=');
    struct cli_sim_axis *axis = &sweep->axes[sweep->num_axes];
    if (equals == NULL || equals == text)
        return ph_fail(PH_ERROR_USAGE, "--sweep must be KEY=VALUE,VALUE,..., not '%s'", text);
    if (sweep->num_axes == CLI_SIM_MAX_AXES)
        return ph_fail(PH_ERROR_USAGE, "--sweep: more than %d keys", CLI_SIM_MAX_AXES);
    axis->key = ph__arena_printf(&sweep->arena, "%.*s", (int)(equals - text), text);
    if (axis->key == NULL)
        return PH_ERROR_MEMORY;
    if (strcmp(axis->key, "threads") == 0 || strcmp(axis->key, "team") == 0)
        return ph_fail(PH_ERROR_USAGE,
            "--sweep %s: the profile of a sweep is of one number and kind of threads: run a sweep for each",
            axis->key);
    if (find_axis(sweep, axis->key) < sweep->num_axes)
        return ph_fail(PH_ERROR_USAGE, "--sweep %s is given twice", axis->key);
    PH_TRY(split(&sweep->arena, equals + 1, axis));
    sweep->num_axes++;
    return PH_OK;
}

static bool has_numbers(const struct cli_sim_axis *axis)
{
    double number;
    for (size_t i = 0; i < axis->num_values; i++)
        if (!ph__number_parse(axis->values[i], &number))
            return false;
    return true;
}

/* Chooses the axes that rows are compared along and drawn over. */
static void choose_axes(struct cli_sim_sweep *sweep)
{
    const size_t world = find_axis(sweep, "world"), topology = find_axis(sweep, "topology");
    size_t numbers = 0;
    while (numbers < sweep->num_axes && !has_numbers(&sweep->axes[numbers]))
        numbers++;
    sweep->compared = world < sweep->num_axes ? world : topology < sweep->num_axes ? topology : 0;
    sweep->drawn = world < sweep->num_axes ? world : numbers < sweep->num_axes ? numbers : 0;
}

/* ---- combinations ---- */

/* Adds a value to the sets, which take lists without brackets, unless they are lists of mappings. */
static ph_status add_set(struct ph__arena *arena, const char *key, const char *value, struct cli_texts *sets)
{
    const size_t length = strlen(value);
    const bool is_list =
        length >= 2 && value[0] == '[' && value[length - 1] == ']' && strchr(value, '{') == NULL;
    const char *bare = is_list ? ph__arena_printf(arena, "%.*s", (int)length - 2, value + 1) : value;
    return bare != NULL ? cli_sets_add(sets, arena, key, bare) : PH_ERROR_MEMORY;
}

/* Gives the case one axis's value. */
static ph_status take_value(struct ph__arena *arena, const struct cli_sim_axis *axis, const char *value,
    struct cli_sim_case *simulated)
{
    if (strcmp(axis->key, "world") == 0)
        return cli_sim_world_parse("--sweep world", value, &simulated->world_size);
    if (strcmp(axis->key, "topology") != 0)
        return add_set(arena, axis->key, value, &simulated->sets);
    simulated->topology = value;
    return PH_OK;
}

/* Returns a folder's name: the combination's, with dashes for what a path cannot have. */
static const char *name_folder(struct cli_sim_sweep *sweep, size_t index, const char *name)
{
    char *folder = ph__arena_printf(&sweep->arena, "%s/%zu-%.200s", sweep->base->folder, index + 1, name);
    for (char *at = folder != NULL ? folder + strlen(sweep->base->folder) + 1 : NULL;
         at != NULL && *at != '\0'; at++)
        if (!isalnum((unsigned char)*at) && strchr("=._-", *at) == NULL)
            *at = *at == ' ' ? ',' : '-';
    return folder;
}

static ph_status make_row(struct cli_sim_sweep *sweep, size_t index)
{
    struct cli_sim_row *row = &sweep->rows[index];
    *row = (struct cli_sim_row){.simulated = *sweep->base, .name = ""};
    for (size_t i = sweep->num_axes, rest = index; i-- > 0; rest /= sweep->axes[i].num_values)
        row->values[i] = rest % sweep->axes[i].num_values;
    for (size_t i = 0; i < sweep->num_axes; i++) {
        const char *value = sweep->axes[i].values[row->values[i]];
        row->name = ph__arena_printf(
            &sweep->arena, "%s%s%s=%s", row->name, i > 0 ? " " : "", sweep->axes[i].key, value);
        if (row->name == NULL)
            return PH_ERROR_MEMORY;
        PH_TRY(take_value(&sweep->arena, &sweep->axes[i], value, &row->simulated));
    }
    row->simulated.folder = name_folder(sweep, index, row->name);
    return row->simulated.folder != NULL ? PH_OK : PH_ERROR_MEMORY;
}

static ph_status check_config(const struct cli_sim_case *simulated)
{
    struct ph_config config = {0};
    const ph_status status =
        ph__job_config_read(&config, simulated->config, simulated->sets.items, simulated->sets.count);
    ph__job_config_fini(&config);
    return status;
}

/* Names the flag that a wrong key or value came from: the base's config is sound. */
static ph_status blame_sweep(ph_status status)
{
    char text[512];
    if (status != PH_ERROR_CONFIG || strncmp(ph_error_text(), "--set ", 6) != 0)
        return status;
    snprintf(text, sizeof text, "%s", ph_error_text() + 6);
    return ph_fail(status, "--sweep %s", text);
}

/* Reads what the row names, so that a mistake is found before the first simulation. */
static ph_status check_row(const struct cli_sim_row *row)
{
    struct ph__fabric fabric;
    if (row->simulated.topology == NULL)
        return ph_fail(PH_ERROR_USAGE, "sim requires --topology FILE, or --sweep topology=FILE,FILE");
    PH_TRY(blame_sweep(check_config(&row->simulated)));
    PH_TRY(ph__fabric_read(row->simulated.topology, &fabric));
    ph__fabric_fini(&fabric);
    return PH_OK;
}

ph_status cli_sim_sweep_init(
    struct cli_sim_sweep *sweep, const struct cli_sim_case *base, const struct cli_texts *texts)
{
    *sweep = (struct cli_sim_sweep){.base = base, .num_rows = 1};
    for (size_t i = 0; i < texts->count; i++) {
        PH_TRY(add_axis(sweep, texts->items[i]));
        sweep->num_rows *= sweep->axes[i].num_values;
        if (sweep->num_rows > MOST_COMBINATIONS)
            return ph_fail(PH_ERROR_USAGE, "--sweep: more than %d combinations", MOST_COMBINATIONS);
    }
    choose_axes(sweep);
    sweep->rows = ph__arena_alloc_array(&sweep->arena, sweep->num_rows, sizeof *sweep->rows);
    if (sweep->rows == NULL)
        return PH_ERROR_MEMORY;
    for (size_t i = 0; i < sweep->num_rows; i++)
        PH_TRY(make_row(sweep, i));
    PH_TRY(check_config(base));
    for (size_t i = 0; i < sweep->num_rows; i++)
        PH_TRY(check_row(&sweep->rows[i]));
    return PH_OK;
}

void cli_sim_sweep_fini(struct cli_sim_sweep *sweep)
{
    ph__arena_fini(&sweep->arena);
}

/* ---- running ---- */

static bool is_alike(
    const struct cli_sim_sweep *sweep, const struct cli_sim_row *a, const struct cli_sim_row *b)
{
    for (size_t i = 0; i < sweep->num_axes; i++)
        if (i != sweep->compared && a->values[i] != b->values[i])
            return false;
    return true;
}

/* Compares a row with the first one that is done and has the same values but one. */
static void compare(const struct cli_sim_sweep *sweep, struct cli_sim_row *row)
{
    const struct cli_sim_row *first = sweep->rows;
    while (!first->is_done || !is_alike(sweep, first, row))
        first++;
    row->figures.speed_up = row->figures.samples_per_s / first->figures.samples_per_s;
    row->figures.efficiency = row->figures.speed_up * first->figures.num_ranks / row->figures.num_ranks;
}

static void print_row(const struct cli_sim_sweep *sweep, const struct cli_sim_row *row)
{
    printf("[%zu of %zu] %s: ", (size_t)(row - sweep->rows) + 1, sweep->num_rows, row->name);
    if (row->is_done)
        printf("%.0f samples/s (simulated), %.1f s of wall time\n", row->figures.samples_per_s,
            row->figures.wall_seconds);
    else
        printf("failed: %s\n", row->failure);
    fflush(stdout);
}

static ph_status run_row(
    struct cli_sim_sweep *sweep, struct cli_sim_row *row, cli_sim_function *simulate, void *context)
{
    row->status = simulate(context, &row->simulated, &row->figures);
    row->is_done = row->status == PH_OK;
    if (row->is_done)
        compare(sweep, row);
    else
        row->failure = ph__arena_printf(&sweep->arena, "%s", ph_error_text());
    return row->is_done || row->failure != NULL ? PH_OK : PH_ERROR_MEMORY;
}

static ph_status print_outcome(struct cli_sim_sweep *sweep, bool is_quiet)
{
    struct ph__text_table table;
    printf("%s", is_quiet ? "" : "\n");
    PH_TRY(cli_sim_sweep_table(sweep, &table));
    const ph_status status = cli_print_table(&table);
    ph__text_table_fini(&table);
    PH_TRY(status);
    printf("\nalso in %s/sweep.csv and report.html\n", sweep->base->folder);
    return PH_OK;
}

/* Returns true for failures that answer the question: a combination that its config, its cluster or its
 * memory does not allow. */
static bool is_answer(ph_status status)
{
    return status == PH_ERROR_CONFIG || status == PH_ERROR_MEMORY;
}

static ph_status outcome(const struct cli_sim_sweep *sweep)
{
    const struct cli_sim_row *failed = NULL;
    size_t num_done = 0;
    for (size_t i = 0; i < sweep->num_rows; i++) {
        const struct cli_sim_row *row = &sweep->rows[i];
        num_done += row->is_done;
        if (!row->is_done && (failed == NULL || (is_answer(failed->status) && !is_answer(row->status))))
            failed = row;
    }
    if (failed == NULL || (num_done > 0 && is_answer(failed->status)))
        return PH_OK;
    return ph_fail(failed->status, "%s: %s", failed->name, failed->failure);
}

ph_status cli_sim_sweep_run(
    struct cli_sim_sweep *sweep, cli_sim_function *simulate, void *context, bool is_quiet)
{
    for (size_t i = 0; i < sweep->num_rows; i++) {
        PH_TRY(run_row(sweep, &sweep->rows[i], simulate, context));
        if (!is_quiet)
            print_row(sweep, &sweep->rows[i]);
        PH_TRY(cli_sim_sweep_write(sweep));
    }
    PH_TRY(print_outcome(sweep, is_quiet));
    return outcome(sweep);
}
