/* Text tables that read well both as Markdown and on a terminal: cells are padded to the width of their
 * column. Also cells of CSV files. */
#ifndef PH_BASE_TEXT_TABLE_H
#define PH_BASE_TEXT_TABLE_H

#include <stdbool.h>
#include <stddef.h>

#include "base/file/stream.h"
#include "base/memory/arena.h"

struct ph__text_column {
    const char *name;
    bool is_number; /* true: aligned to the right */
};

/* A table that is filled row by row, each row from its first column to its last. Lack of memory is remembered
 * and reported by ph__text_table_write, so that filling needs no checks. */
struct ph__text_table {
    const struct ph__text_column *columns; /* borrowed */
    size_t num_columns;
    const char **cells; /* (num_cells) */
    size_t num_cells, capacity;
    struct ph__arena arena;
    ph_status status;
};

void ph__text_table_init(
    struct ph__text_table *table, const struct ph__text_column *columns, size_t num_columns);
void ph__text_table_fini(struct ph__text_table *table);

void ph__text_table_cell(struct ph__text_table *table, const char *format, ...) PH_PRINTF(2, 3);
/* Adds the number in `format`, for one double, or "–" when it is not finite. */
void ph__text_table_number(struct ph__text_table *table, const char *format, double number);
size_t ph__text_table_num_rows(const struct ph__text_table *table);
/* Returns a cell's text as it was added. */
const char *ph__text_table_at(const struct ph__text_table *table, size_t row, size_t column);

/* Writes the table as Markdown. Escapes characters that would end a cell or the line. */
ph_status ph__text_table_write(const struct ph__text_table *table, struct ph__writer *writer);

/* ---- CSV ---- */

/* Cells of CSV files by RFC 4180. The caller writes commas and ends of lines. */

ph_status ph__csv_write_text(struct ph__writer *writer, const char *text); /* quoted */
ph_status ph__csv_write_number(struct ph__writer *writer, double number);  /* nothing when not finite */

#endif
