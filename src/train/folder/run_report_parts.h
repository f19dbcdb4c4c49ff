/* The sections of report.html, for run_report.c alone: each writes its own onto the page, and nothing where it has nothing
 * to say. Errors stay with the page. */
#ifndef PH_TRAIN_RUN_REPORT_PARTS_H
#define PH_TRAIN_RUN_REPORT_PARTS_H

#include "base/format/html.h"
#include "train/measure/metrics_file.h"
#include "train/trainer.h"

#define PH_REPORT_MAX_ROWS 100 /* of one table: the page says how many there would be */

void ph__run_report_curves(
    struct ph_html *html, const struct ph__trainer *trainer, const struct ph__metrics_file *metrics);
void ph__run_report_calibration(struct ph_html *html, const struct ph__metrics_file *metrics);
void ph__run_report_operators(struct ph_html *html, const struct ph__trainer *trainer);
void ph__run_report_tables(struct ph_html *html, const struct ph__trainer *trainer);
void ph__run_report_ids(struct ph_html *html, const struct ph__trainer *trainer);
void ph__run_report_graph(struct ph_html *html, const struct ph__trainer *trainer);

/* "The first 100 of 1000 features." where there are more than are shown. */
void ph__run_report_cap(struct ph_html *html, const char *what, size_t count);

#endif
