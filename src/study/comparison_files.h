/* What a comparison leaves in its folder: compare.md, compare.csv, compare.json and compare.html. */
#ifndef PH_STUDY_COMPARISON_FILES_H
#define PH_STUDY_COMPARISON_FILES_H

#include "study/comparison_tables.h"

/* All four, each in one moment. PH_ERROR_DISK naming the path, PH_ERROR_MEMORY. */
ph_status ph__comparison_files_write(const struct ph__comparison_tables *tables, const char *folder);

/* One page: a plot of the test AUC with its spread over the tables. It needs nothing beside itself. */
ph_status ph__comparison_page_write(const struct ph__comparison_tables *tables, const char *path);

#endif
