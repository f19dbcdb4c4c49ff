/* DIR/report.html: one page that shows how a training went, made of metrics.jsonl, the summary, the program
 * and its profile, the store, and the statistics of the process (run_statistics.h). docs/REPORTS.md describes
 * it.
 *
 * Each process writes it when its part of the training ends, however it ends: curves and calibration cover
 * the whole training, operators' times only this process's part. The coverage of ids covers the whole
 * training or is unknown: after a resume it is read from the optimizer's slots (rows_learnt.h). */
#ifndef PH_TRAIN_RUN_REPORT_H
#define PH_TRAIN_RUN_REPORT_H

#include "report/page.h"
#include "train/folder/metrics_file.h"
#include "train/trainer.h"

/* Writes the page. why: one line saying why the training stopped; NULL: it has finished, and the summary is
 * complete. PH_ERROR_DISK, PH_ERROR_MEMORY; PH_ERROR_DATA for a metrics.jsonl that cannot be read. */
ph_status ph__run_report_write(struct ph__trainer *trainer, const char *why);

/* ---- sections in files of their own, each of which may add nothing; for run_report.c alone ---- */

void ph__run_report_curves(
    struct ph__page *page, const struct ph__trainer *trainer, const struct ph__metrics_file *metrics);
void ph__run_report_calibration(struct ph__page *page, const struct ph__metrics_file *metrics);
ph_status ph__run_report_operators(
    struct ph__page *page, const struct ph__trainer *trainer); /* PH_ERROR_MEMORY */
ph_status ph__run_report_graph(
    struct ph__page *page, const struct ph__trainer *trainer); /* PH_ERROR_MEMORY */

#endif
