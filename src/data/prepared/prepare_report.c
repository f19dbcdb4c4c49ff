#include "data/prepared/prepare_report.h"

#include "base/thread/clock.h"

struct ph__prepare_reporter ph__prepare_reporter_of(
    const struct ph_prepare_options *options, bool is_learning)
{
    const uint64_t now_ns = ph__clock_ns();
    return (struct ph__prepare_reporter){
        .options = options, .is_learning = is_learning, .start_ns = now_ns, .told_ns = now_ns};
}

void ph__prepare_report(void *context, const struct ph__tasks_progress *progress)
{
    struct ph__prepare_reporter *reporter = context;
    const struct ph_prepare_options *options = reporter->options;
    const uint64_t now_ns = ph__clock_ns();
    if (options->on_progress == NULL ||
        (double)(now_ns - reporter->told_ns) * 1e-9 < options->progress_seconds)
        return;
    reporter->told_ns = now_ns;
    const struct ph_prepare_progress told = {.is_learning = reporter->is_learning,
        .num_rows = progress->num_rows,
        .num_text_bytes = progress->num_bytes,
        .total_text_bytes = progress->total_bytes,
        .seconds = (double)(now_ns - reporter->start_ns) * 1e-9};
    options->on_progress(options->progress_context, &told);
}
