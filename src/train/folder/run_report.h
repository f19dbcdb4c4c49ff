/* DIR/report.html: one page that shows how a training went, made of metrics.jsonl, the summary, the program
 * and its profile, the store, and what the process has gathered (run_statistics.h). docs/REPORTS.md says what
 * is on it.
 *
 * It is written at the end of each process's part, however that ends: curves and calibration are of the whole
 * training, operators' times of this process's part of it. The coverage of ids is of the whole training, too,
 * or not known: behind a resume the optimizer's slots tell of it (rows_learnt.h). */
#ifndef PH_TRAIN_RUN_REPORT_H
#define PH_TRAIN_RUN_REPORT_H

#include "report/page.h"
#include "train/folder/metrics_file.h"
#include "train/trainer.h"

/* why: what the training was stopped by, a line; NULL: it is finished, and the summary complete.
 * PH_ERROR_DISK, PH_ERROR_MEMORY; PH_ERROR_DATA for a metrics.jsonl that cannot be read. */
ph_status ph__run_report_write(struct ph__trainer *trainer, const char *why);

/* ---- sections in files of their own: each adds its own to the page, or nothing; for run_report.c alone ----
 */

void ph__run_report_curves(
    struct ph__page *page, const struct ph__trainer *trainer, const struct ph__metrics_file *metrics);
void ph__run_report_calibration(struct ph__page *page, const struct ph__metrics_file *metrics);
ph_status ph__run_report_operators(
    struct ph__page *page, const struct ph__trainer *trainer); /* PH_ERROR_MEMORY */
ph_status ph__run_report_graph(
    struct ph__page *page, const struct ph__trainer *trainer); /* PH_ERROR_MEMORY */

#endif
