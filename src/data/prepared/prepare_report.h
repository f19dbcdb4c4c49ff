/* How far a pass of a preparation is, for whoever wants to be told. */
#ifndef PH_DATA_PREPARE_REPORT_H
#define PH_DATA_PREPARE_REPORT_H

#include "data/prepared/prepare_tasks.h"
#include "phloem/data.h"

struct ph__prepare_reporter {
    const struct ph_prepare_options *options; /* borrowed */
    bool is_learning;
    uint64_t start_ns, told_ns;
};

/* Of a pass that begins now. */
struct ph__prepare_reporter ph__prepare_reporter_of(
    const struct ph_prepare_options *options, bool is_learning);

/* struct ph__tasks' on_progress; the context is a reporter. */
void ph__prepare_report(void *context, const struct ph__tasks_progress *progress);

#endif
