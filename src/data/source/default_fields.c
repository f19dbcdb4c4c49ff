/* Fields for the columns of a dataset, by their Arrow types, as YAML for data.fields. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/format/json.h"
#include "base/memory/memory.h"
#include "base/text/name_index.h"
#include "data/source/dataset.h"

/* Returns the kind of the values, behind a dictionary. */
static enum ph__arrow_kind kind_of_values(const struct ph__arrow_column *column)
{
    return column->kind == PH_ARROW_DICTIONARY ? column->child->kind : column->kind;
}

static bool is_number(enum ph__arrow_kind kind)
{
    return kind == PH_ARROW_INTEGER || kind == PH_ARROW_UINT64 || kind == PH_ARROW_REAL ||
           kind == PH_ARROW_DECIMAL;
}

static bool is_id(enum ph__arrow_kind kind)
{
    return kind == PH_ARROW_TEXT || kind == PH_ARROW_INTEGER || kind == PH_ARROW_UINT64;
}

static const char *settings_of(const struct ph__arrow_column *column)
{
    const enum ph__arrow_kind kind = kind_of_values(column);
    if (is_id(kind))
        return "kind: id";
    if (is_number(kind))
        return "kind: dense";
    return kind == PH_ARROW_LIST && is_id(kind_of_values(column->child)) ? "kind: id, list: true"
                                                                         : "kind: ignore";
}

/* ---- labels ---- */

static bool is_label(const struct ph__arrow_column *column, const char *const *labels, size_t num_labels)
{
    for (size_t i = 0; i < num_labels; i++)
        if (strcmp(column->name, labels[i]) == 0)
            return true;
    return false;
}

static ph_status check_labels(const struct ph__dataset_batch *batch, const struct ph__name_index *names,
    const char *const *labels, size_t num_labels)
{
    for (size_t i = 0; i < num_labels; i++) {
        const size_t found = ph__name_index_find(names, labels[i]);
        if (found == PH_NO_NAME)
            return ph_fail(PH_ERROR_DATA, "label '%s' is not a column", labels[i]);
        if (!is_number(batch->columns[found].kind))
            return ph_fail(PH_ERROR_DATA, "label '%s' (format '%s') is neither a number nor a bool",
                labels[i], batch->columns[found].format);
    }
    return PH_OK;
}

static ph_status index_names(const struct ph__dataset_batch *batch, struct ph__name_index *names)
{
    for (size_t i = 0; i < batch->num_columns; i++) {
        const char *name = batch->columns[i].name;
        if (name[0] == '\0')
            return ph_fail(PH_ERROR_DATA, "column %zu (from 0) has no name", i);
        if (ph__name_index_find(names, name) != PH_NO_NAME)
            return ph_fail(PH_ERROR_DATA, "two columns are called '%s'", name);
        PH_TRY(ph__name_index_add(names, name));
    }
    return PH_OK;
}

/* ---- writing ---- */

static void print_text(FILE *file, const char *text)
{
    ph__json_print_text(file, text, strlen(text)); /* JSON's texts are YAML's, and have no line ends */
}

static ph_status print_part(
    struct ph__arena *arena, FILE *file, const struct ph__arrow_column *column, const char *part)
{
    const char *name = ph__arena_printf(arena, "%s.%s", column->name, part);
    if (name == NULL)
        return PH_ERROR_MEMORY;
    fputs("  {name: ", file);
    print_text(file, name);
    fputs(", from: ", file);
    print_text(file, column->name);
    fprintf(file, ", kind: id, part: %s},\n", part);
    return PH_OK;
}

static ph_status print_field(
    struct ph__arena *arena, FILE *file, const struct ph__arrow_column *column, bool is_label_column)
{
    const char *settings = is_label_column ? "kind: label" : settings_of(column);
    if (column->kind == PH_ARROW_TIME) {
        if (!column->clock.is_date)
            PH_TRY(print_part(arena, file, column, "hour"));
        return print_part(arena, file, column, "weekday");
    }
    fputs("  {name: ", file);
    print_text(file, column->name);
    fprintf(file, ", %s},", settings);
    if (strcmp(settings, "kind: ignore") == 0) {
        fputs(" # Arrow format ", file);
        print_text(file, column->format);
    }
    fputc('\n', file);
    return PH_OK;
}

static ph_status write_fields(
    const struct ph__dataset_batch *batch, const char *const *labels, size_t num_labels, char **yaml_out)
{
    struct ph__arena arena = {0};
    char *yaml = NULL;
    size_t size;
    ph_status status = PH_OK;
    FILE *file = open_memstream(&yaml, &size);
    if (file == NULL)
        return ph__out_of_memory("fields of %zu columns", batch->num_columns);
    fputs("[\n", file);
    for (size_t i = 0; i < batch->num_columns && status == PH_OK; i++)
        status =
            print_field(&arena, file, &batch->columns[i], is_label(&batch->columns[i], labels, num_labels));
    fputs("]\n", file);
    ph__arena_fini(&arena);
    if (fclose(file) != 0 && status == PH_OK)
        status = ph__out_of_memory("fields of %zu columns", batch->num_columns);
    if (status == PH_OK)
        *yaml_out = yaml;
    else
        free(yaml);
    return status;
}

static ph_status give_fields(
    const struct ph__dataset_batch *batch, const char *const *labels, size_t num_labels, char **yaml_out)
{
    struct ph__name_index names = {0};
    ph_status status = index_names(batch, &names);
    if (status == PH_OK)
        status = check_labels(batch, &names, labels, num_labels);
    ph__name_index_fini(&names);
    return status == PH_OK ? write_fields(batch, labels, num_labels, yaml_out) : status;
}

ph_status ph_dataset_default_fields(
    const struct ph_dataset *dataset, const char *const *labels, size_t num_labels, char **yaml_out)
{
    struct ph__dataset_reader reader;
    const struct ph__dataset_batch *batch;
    ph_status status = ph__dataset_reader_first(&reader, dataset, &batch);
    if (status == PH_OK) {
        status = give_fields(batch, labels, num_labels, yaml_out);
        if (status != PH_OK)
            ph_fail(status, "%s: %s", dataset->name, ph_error_text());
    }
    ph__dataset_reader_close(&reader);
    return status;
}
