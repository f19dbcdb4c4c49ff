/* What a search leaves in its folder, also when it was stopped: trials.csv and best.yaml. */
#ifndef PH_STUDY_TUNING_REPORT_H
#define PH_STUDY_TUNING_REPORT_H

#include "base/format/text_table.h"
#include "study/tuning.h"

/* DIR/trials.csv, a line a trial, the best first; and, once a trial has finished a rung, DIR/best.yaml: the config with the best
 * values and its test data, whole; before that, a former one is removed. PH_ERROR_DISK, PH_ERROR_MEMORY. */
ph_status ph__tuning_report_write(struct ph__tuning *tuning);

/* The same for people; the last column is the values. */
ph_status ph__tuning_table(struct ph__tuning *tuning, struct ph_text_table *table_out);

#endif
