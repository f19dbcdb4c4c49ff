#include "study/comparison_tables.h"

#include <inttypes.h>
#include <math.h>
#include <string.h>

#define COUNT(array) (sizeof(array) / sizeof *(array))

static const struct ph__text_column accuracy_columns[] = {
    {"config", false},
    {"runs", true},
    {"test AUC", true},
    {"difference", true},
    {"test logloss", true},
    {"difference", true},
    {"NE", true},
    {"calibration", true},
    {"valid AUC", true},
};
static const struct ph__text_column published_columns[] = {
    {"config", false},
    {"source", false},
    {"test AUC", true},
    {"published", true},
    {"difference", true},
    {"bar", true},
    {"test logloss", true},
    {"published", true},
    {"difference", true},
};
static const struct ph__text_column cost_columns[] = {
    {"config", false},
    {"parameters", true},
    {"FLOP/sample", true},
    {"samples/s", true},
    {"training, s", true},
    {"epochs", true},
};

/* ---- cells ---- */

/* Adds "0.9843 ± 0.0004"; "–" takes the place of a number that is not known. */
static void add_spread(struct ph__text_table *table, struct ph__spread spread)
{
    if (isfinite(spread.mean) && isfinite(spread.deviation))
        ph__text_table_cell(table, "%.4f ± %.4f", spread.mean, spread.deviation);
    else if (isfinite(spread.mean))
        ph__text_table_cell(table, "%.4f ± –", spread.mean);
    else
        ph__text_table_cell(table, "–");
}

static void add_difference(struct ph__text_table *table, const struct ph__comparison_figures *figures,
    struct ph__difference difference)
{
    if (figures->pairing == PH_PAIR_IS_BASE)
        ph__text_table_cell(table, "base");
    else if (figures->pairing == PH_PAIR_OF_OTHER_DATA)
        ph__text_table_cell(table, "other data");
    else if (!isfinite(difference.mean))
        ph__text_table_cell(table, "–");
    else if (isfinite(difference.half_width))
        ph__text_table_cell(table, "%+.5f ± %.5f", difference.mean, difference.half_width);
    else
        ph__text_table_cell(table, "%+.5f ± –", difference.mean);
}

/* Adds a whole number in groups of three digits: "1,234,567". */
static void add_count(struct ph__text_table *table, double number)
{
    char digits[32], text[48];
    size_t length = 0;
    if (!isfinite(number) || fabs(number) >= 1e18) {
        ph__text_table_number(table, "%g", number);
        return;
    }
    const int num_digits = snprintf(digits, sizeof digits, "%.0f", number);
    for (int i = 0; i < num_digits; i++) {
        if (i > 0 && (num_digits - i) % 3 == 0)
            text[length++] = ',';
        text[length++] = digits[i];
    }
    text[length] = '\0';
    ph__text_table_cell(table, "%s", text);
}

/* ---- rows ---- */

static void add_accuracy(struct ph__text_table *table, const struct ph__comparison *comparison,
    const struct ph__compared *row, const struct ph__comparison_figures *figures)
{
    ph__text_table_cell(table, "%s", row->name);
    if (figures->has_all_seeds)
        ph__text_table_cell(table, "%" PRIu64, figures->num_finished);
    else
        ph__text_table_cell(table, "%" PRIu64 " of %zu", figures->num_finished, comparison->num_seeds);
    add_spread(table, figures->test_auc);
    add_difference(table, figures, figures->auc_difference);
    add_spread(table, figures->test_logloss);
    add_difference(table, figures, figures->logloss_difference);
    add_spread(table, figures->test_ne);
    ph__text_table_number(table, "%.4f", figures->test_calibration.mean);
    add_spread(table, figures->valid_auc);
}

static void add_published(struct ph__text_table *table, const struct ph__compared *row,
    const struct ph__comparison_figures *figures)
{
    const char *word = ph__bar_word(figures);
    const bool has_none =
        isnan(figures->published_auc) && isnan(figures->published_logloss) && isnan(figures->bar_auc);
    if (has_none)
        return;
    ph__text_table_cell(table, "%s", row->name);
    ph__text_table_cell(table, "%s", row->config->published.source);
    ph__text_table_number(table, "%.4f", figures->test_auc.mean);
    ph__text_table_number(table, "%.4f", figures->published_auc);
    ph__text_table_number(table, "%+.4f", figures->published_auc_difference);
    if (isnan(figures->bar_auc))
        ph__text_table_cell(table, "–");
    else
        ph__text_table_cell(table, "%g %s", figures->bar_auc, word != NULL ? word : "");
    ph__text_table_number(table, "%.4f", figures->test_logloss.mean);
    ph__text_table_number(table, "%.4f", figures->published_logloss);
    ph__text_table_number(table, "%+.4f", figures->published_logloss_difference);
}

static void add_cost(struct ph__text_table *table, const struct ph__compared *row,
    const struct ph__comparison_figures *figures)
{
    ph__text_table_cell(table, "%s", row->name);
    add_count(table, figures->parameters);
    add_count(table, figures->flops_per_sample);
    add_count(table, figures->samples_per_s);
    ph__text_table_number(table, "%.1f", figures->train_seconds);
    ph__text_table_number(table, "%.1f", figures->epochs);
}

/* ---- sentences ---- */

/* Returns run `index` of all, row by row. */
static const struct ph__compared_run *run_at(const struct ph__comparison *comparison, size_t index)
{
    return &comparison->rows[index / comparison->num_seeds].runs[index % comparison->num_seeds];
}

/* Returns true when no earlier run has finished with this run's backend. */
static bool has_new_backend(const struct ph__comparison *comparison, size_t index)
{
    const struct ph__compared_run *run = run_at(comparison, index);
    for (size_t i = 0; i < index; i++) {
        const struct ph__compared_run *earlier = run_at(comparison, i);
        if (earlier->state == PH_RUN_FINISHED && strcmp(earlier->backend, run->backend) == 0)
            return false;
    }
    return true;
}

/* Lists the backends of all finished runs, each once. NULL: out of memory. */
static const char *list_backends(struct ph__comparison *comparison)
{
    const char *text = "";
    for (size_t i = 0; i < comparison->num_rows * comparison->num_seeds && text != NULL; i++)
        if (run_at(comparison, i)->state == PH_RUN_FINISHED && has_new_backend(comparison, i))
            text = ph__arena_printf(&comparison->arena, "%s%s%s", text, text[0] != '\0' ? "; " : "",
                run_at(comparison, i)->backend);
    return text;
}

static const char *list_seeds(struct ph__comparison *comparison)
{
    const char *text = "";
    for (size_t seed = 0; seed < comparison->num_seeds && text != NULL; seed++)
        text = ph__arena_printf(
            &comparison->arena, "%s%s%" PRId64, text, seed > 0 ? ", " : "", comparison->seeds[seed]);
    return text;
}

static bool has_variants(const struct ph__comparison *comparison)
{
    return comparison->rows[comparison->num_rows - 1].is_variant;
}

static const char *describe(struct ph__comparison *comparison)
{
    const char *backends = list_backends(comparison), *seeds = list_seeds(comparison);
    const char *base = comparison->rows[comparison->rows[0].base].name;
    if (backends == NULL || seeds == NULL)
        return NULL;
    return ph__arena_printf(&comparison->arena,
        "Measured with seeds %s: mean ± standard deviation over them. Differences are taken seed by seed, "
        "from %s%s: their mean ± half of its %.0f%% interval by Student's t. Samples/s: the median, whatever "
        "else the machine did meanwhile. Backend: %s.",
        seeds, base,
        has_variants(comparison) ? ", and of a row with --with from the same row without it" : "",
        100 * PH_COMPARISON_CONFIDENCE, backends[0] != '\0' ? backends : "none yet");
}

/* Returns why a row is not paired with its base: they lack common test data. */
static const char *why_unpaired(const struct ph__compared *row, const struct ph__compared *base)
{
    if (row->config->data.paths.test == NULL)
        return "it has no data.test";
    return base->config->data.paths.test == NULL ? "the latter has no data.test" : "their test data differ";
}

static ph_status add_note(struct ph__comparison *comparison, size_t row,
    const struct ph__comparison_figures *figures, const char **notes)
{
    const struct ph__compared *compared = &comparison->rows[row];
    if (figures->pairing == PH_PAIR_OF_OTHER_DATA)
        *notes = ph__arena_printf(&comparison->arena, "%s- %s is not paired with %s: %s\n", *notes,
            compared->name, comparison->rows[compared->base].name,
            why_unpaired(compared, &comparison->rows[compared->base]));
    for (size_t seed = 0; seed < comparison->num_seeds && *notes != NULL; seed++) {
        const struct ph__compared_run *run = &compared->runs[seed];
        if (run->state == PH_RUN_FAILED)
            *notes = ph__arena_printf(&comparison->arena,
                "%s- %s with seed %" PRId64 " failed (exit code %d): %s\n", *notes, compared->name,
                comparison->seeds[seed], ph_status_exit_code(run->status), run->failure);
    }
    return *notes != NULL ? PH_OK : PH_ERROR_MEMORY;
}

/* ---- all tables ---- */

ph_status ph__comparison_tables_init(struct ph__comparison_tables *tables, struct ph__comparison *comparison)
{
    *tables = (struct ph__comparison_tables){
        .comparison = comparison, .notes = "", .titles = {"Accuracy", "Beside published figures", "Cost"}};
    struct ph__text_table *all = tables->tables;
    ph__text_table_init(&all[PH_TABLE_ACCURACY], accuracy_columns, COUNT(accuracy_columns));
    ph__text_table_init(&all[PH_TABLE_PUBLISHED], published_columns, COUNT(published_columns));
    ph__text_table_init(&all[PH_TABLE_COST], cost_columns, COUNT(cost_columns));
    tables->about = describe(comparison);
    tables->figures =
        ph__arena_alloc_array(&comparison->arena, comparison->num_rows, sizeof *tables->figures);
    if (tables->about == NULL || tables->figures == NULL)
        return PH_ERROR_MEMORY;
    for (size_t i = 0; i < comparison->num_rows; i++) {
        const struct ph__compared *row = &comparison->rows[i];
        struct ph__comparison_figures *figures = &tables->figures[i];
        PH_TRY(ph__comparison_figures(comparison, i, figures));
        add_accuracy(&all[PH_TABLE_ACCURACY], comparison, row, figures);
        add_published(&all[PH_TABLE_PUBLISHED], row, figures);
        add_cost(&all[PH_TABLE_COST], row, figures);
        PH_TRY(add_note(comparison, i, figures, &tables->notes));
    }
    return PH_OK;
}

void ph__comparison_tables_fini(struct ph__comparison_tables *tables)
{
    for (size_t i = 0; i < PH_NUM_COMPARISON_TABLES; i++)
        ph__text_table_fini(&tables->tables[i]);
}

ph_status ph__comparison_tables_write(const struct ph__comparison_tables *tables, struct ph__writer *writer)
{
    PH_TRY(ph__writer_printf(writer, "%s\n", tables->about));
    for (size_t i = 0; i < PH_NUM_COMPARISON_TABLES; i++) {
        if (ph__text_table_num_rows(&tables->tables[i]) == 0)
            continue;
        PH_TRY(ph__writer_printf(writer, "\n## %s\n\n", tables->titles[i]));
        PH_TRY(ph__text_table_write(&tables->tables[i], writer));
    }
    if (tables->notes[0] != '\0')
        PH_TRY(ph__writer_printf(writer, "\n## What is missing\n\n%s", tables->notes));
    return PH_OK;
}
