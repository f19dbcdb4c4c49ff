/* The figures of a comparison as people read them: tables of texts, the same on a terminal and in Markdown
 * and HTML. */
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
    const char *about;                       /* a sentence or two on what the figures are; in that arena */
    const char *notes; /* what is missing and why, a line each, "- ..."; "" when nothing is */
    const char *titles[PH_NUM_COMPARISON_TABLES];
    struct ph__text_table
        tables[PH_NUM_COMPARISON_TABLES]; /* PUBLISHED: without rows where no config names any */
};

/* To be finished also after a failure. PH_ERROR_MEMORY. */
ph_status ph__comparison_tables_init(struct ph__comparison_tables *tables, struct ph__comparison *comparison);
void ph__comparison_tables_fini(struct ph__comparison_tables *tables);

/* Writes all of them as Markdown. */
ph_status ph__comparison_tables_write(const struct ph__comparison_tables *tables, struct ph__writer *writer);

/* Writes compare.md, compare.csv, compare.json and compare.html, a page that needs nothing beside itself,
 * into the comparison's folder (comparison_files.c), each in one moment. PH_ERROR_DISK naming the path,
 * PH_ERROR_MEMORY. */
ph_status ph__comparison_files_write(const struct ph__comparison_tables *tables, const char *folder);

#endif
