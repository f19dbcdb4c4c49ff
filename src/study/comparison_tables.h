/* The figures of a comparison for people: tables of texts, the same on a terminal, in Markdown and HTML. */
#ifndef PH_STUDY_COMPARISON_TABLES_H
#define PH_STUDY_COMPARISON_TABLES_H

#include "base/format/text_table.h"
#include "study/comparison_figures.h"

enum ph__comparison_table_kind {
    PH_TABLE_ACCURACY,
    PH_TABLE_PUBLISHED,
    PH_TABLE_COST,
    PH_NUM_COMPARISON_TABLES
};

struct ph__comparison_tables {
    const struct ph__comparison *comparison; /* borrowed */
    struct ph__comparison_figures *figures;  /* (num_rows), in the comparison's arena */
    const char *about;                       /* a few sentences about the figures; in that arena */
    const char *notes; /* what is missing and why, a line each, "- ..."; "" when nothing is */
    const char *titles[PH_NUM_COMPARISON_TABLES];
    struct ph__text_table tables[PH_NUM_COMPARISON_TABLES]; /* PUBLISHED may have no rows */
};

/* Fills the tables. Call fini also after a failure. PH_ERROR_MEMORY. */
ph_status ph__comparison_tables_init(struct ph__comparison_tables *tables, struct ph__comparison *comparison);
void ph__comparison_tables_fini(struct ph__comparison_tables *tables);

/* Writes all tables as Markdown. */
ph_status ph__comparison_tables_write(const struct ph__comparison_tables *tables, struct ph__writer *writer);

/* Writes compare.md, compare.csv, compare.json and compare.html, a page without other files, into the folder
 * (comparison_files.c), each atomically. PH_ERROR_DISK naming the path, PH_ERROR_MEMORY. */
ph_status ph__comparison_files_write(const struct ph__comparison_tables *tables, const char *folder);

#endif
