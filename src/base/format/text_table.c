#include "base/format/text_table.h"

#include <math.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/memory/memory.h"
#include "base/text/number.h"
#include "base/text/utf8.h"

void ph__text_table_init(
    struct ph__text_table *table, const struct ph__text_column *columns, size_t num_columns)
{
    *table = (struct ph__text_table){.columns = columns, .num_columns = num_columns};
}

void ph__text_table_fini(struct ph__text_table *table)
{
    free(table->cells);
    ph__arena_fini(&table->arena);
    *table = (struct ph__text_table){0};
}

/* ---- filling ---- */

static void append(struct ph__text_table *table, const char *text)
{
    void *cells = table->cells;
    const char *copy = ph__arena_strdup(&table->arena, text);
    if (table->status == PH_OK && copy == NULL)
        table->status = PH_ERROR_MEMORY;
    if (table->status == PH_OK)
        table->status =
            ph__array_reserve(&cells, &table->capacity, table->num_cells + 1, sizeof *table->cells);
    table->cells = cells;
    if (table->status == PH_OK)
        table->cells[table->num_cells++] = copy;
}

void ph__text_table_cell(struct ph__text_table *table, const char *format, ...)
{
    char *text = NULL;
    va_list arguments;
    va_start(arguments, format);
    int length = vasprintf(&text, format, arguments);
    va_end(arguments);
    if (length >= 0)
        append(table, text);
    else if (table->status == PH_OK)
        table->status = ph__out_of_memory("a cell of a table");
    if (length >= 0)
        free(text);
}

/* Adds a number; the format is a caller's constant for one double. */
#pragma GCC diagnostic push
#pragma GCC diagnostic ignored "-Wformat-nonliteral"
void ph__text_table_number(struct ph__text_table *table, const char *format, double number)
{
    if (isfinite(number))
        ph__text_table_cell(table, format, number);
    else
        ph__text_table_cell(table, "–");
}
#pragma GCC diagnostic pop

size_t ph__text_table_num_rows(const struct ph__text_table *table)
{
    return table->num_cells / table->num_columns;
}

const char *ph__text_table_at(const struct ph__text_table *table, size_t row, size_t column)
{
    return table->cells[row * table->num_columns + column];
}

/* ---- writing ---- */

static bool is_escaped(char byte)
{
    return byte == '|' || byte == '\\';
}

/* Counts the characters that are written; an invalid byte counts as one. */
static size_t width_of(const char *text)
{
    size_t width = 0;
    for (size_t left = strlen(text); left > 0;) {
        uint32_t code;
        size_t size = ph__utf8_decode(text, left, &code);
        size = size > 0 ? size : 1;
        width += is_escaped(*text) ? 2 : 1;
        text += size;
        left -= size;
    }
    return width;
}

/* Writes the text, with blanks for control characters, which would end the line. */
static ph_status write_text(struct ph__writer *writer, const char *text)
{
    for (; *text != '\0'; text++) {
        const char shown = (unsigned char)*text < ' ' ? ' ' : *text;
        PH_TRY(ph__writer_printf(writer, is_escaped(shown) ? "\\%c" : "%c", shown));
    }
    return PH_OK;
}

static size_t column_width(const struct ph__text_table *table, size_t column)
{
    size_t width = width_of(table->columns[column].name);
    for (size_t row = 0; row < ph__text_table_num_rows(table); row++) {
        size_t cell = width_of(ph__text_table_at(table, row, column));
        width = cell > width ? cell : width;
    }
    return width;
}

static ph_status write_cell(struct ph__writer *writer, const char *text, size_t width, bool is_number)
{
    const int padding = (int)(width - width_of(text));
    PH_TRY(ph__writer_printf(writer, " %*s", is_number ? padding : 0, ""));
    PH_TRY(write_text(writer, text));
    return ph__writer_printf(writer, "%*s |", is_number ? 0 : padding, "");
}

/* Writes a column's part of the rule: "------|", or "-----:|" for numbers. */
static ph_status write_rule(struct ph__writer *writer, size_t width, bool is_number)
{
    for (size_t i = 0; i < width + 1; i++)
        PH_TRY(ph__writer_write(writer, "-", 1));
    return ph__writer_write(writer, is_number ? ":|" : "-|", 2);
}

static ph_status write_row(const struct ph__text_table *table, const size_t *widths, const char *const *cells,
    struct ph__writer *writer)
{
    PH_TRY(ph__writer_write(writer, "|", 1));
    for (size_t i = 0; i < table->num_columns; i++)
        PH_TRY(write_cell(writer, cells != NULL ? cells[i] : table->columns[i].name, widths[i],
            table->columns[i].is_number));
    return ph__writer_write(writer, "\n", 1);
}

static ph_status write_all(
    const struct ph__text_table *table, const size_t *widths, struct ph__writer *writer)
{
    PH_TRY(write_row(table, widths, NULL, writer));
    PH_TRY(ph__writer_write(writer, "|", 1));
    for (size_t i = 0; i < table->num_columns; i++)
        PH_TRY(write_rule(writer, widths[i], table->columns[i].is_number));
    PH_TRY(ph__writer_write(writer, "\n", 1));
    for (size_t row = 0; row < ph__text_table_num_rows(table); row++)
        PH_TRY(write_row(table, widths, table->cells + row * table->num_columns, writer));
    return PH_OK;
}

ph_status ph__text_table_write(const struct ph__text_table *table, struct ph__writer *writer)
{
    PH_TRY(table->status);
    size_t *widths = calloc(table->num_columns, sizeof *widths);
    if (widths == NULL)
        return ph__out_of_memory("a table");
    for (size_t i = 0; i < table->num_columns; i++)
        widths[i] = column_width(table, i);
    ph_status status = write_all(table, widths, writer);
    free(widths);
    return status;
}

/* ---- CSV ---- */

ph_status ph__csv_write_text(struct ph__writer *writer, const char *text)
{
    PH_TRY(ph__writer_write(writer, "\"", 1));
    while (*text != '\0') {
        const size_t length = strcspn(text, "\"");
        PH_TRY(ph__writer_write(writer, text, length));
        text += length;
        if (*text == '"') {
            PH_TRY(ph__writer_write(writer, "\"\"", 2));
            text++;
        }
    }
    return ph__writer_write(writer, "\"", 1);
}

ph_status ph__csv_write_number(struct ph__writer *writer, double number)
{
    char text[PH_NUMBER_TEXT_BYTES];
    if (!isfinite(number))
        return PH_OK;
    ph__number_format(number, text);
    return ph__writer_write(writer, text, strlen(text));
}
