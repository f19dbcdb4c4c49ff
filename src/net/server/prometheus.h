/* Metrics in Prometheus' text format, version 0.0.4: families of samples, which differ in their labels.
 *
 *     # HELP phloem_hub_pushes_total Chunks received from workers.
 *     # TYPE phloem_hub_pushes_total counter
 *     phloem_hub_pushes_total{job="click model",link="tcp"} 1024
 *
 * Names of metrics and labels are words of the program, of letters, digits and underscores, and end in a unit
 * or _total. Values of labels may be any bytes. Writing needs no checks: after the first error the functions
 * do nothing, and ph__prometheus_finish returns it. One thread at a time. */
#ifndef PH_NET_PROMETHEUS_H
#define PH_NET_PROMETHEUS_H

#include <stddef.h>
#include <stdint.h>

#include "base/file/stream.h"
#include "phloem/status.h"

#define PH_PROMETHEUS_CONTENT_TYPE "text/plain; version=0.0.4; charset=utf-8"

enum ph__prometheus_kind { PH_PROMETHEUS_COUNTER, PH_PROMETHEUS_GAUGE, PH_PROMETHEUS_HISTOGRAM };

struct ph__prometheus_label {
    const char *name, *value;
};

struct ph__prometheus {
    struct ph__writer *writer; /* borrowed */
    const char *family;        /* borrowed until the next family begins */
    ph_status status;
};

void ph__prometheus_init(struct ph__prometheus *text, struct ph__writer *writer);

/* Begins a family, whose samples follow; each family comes once. help: one sentence. */
void ph__prometheus_begin(
    struct ph__prometheus *text, enum ph__prometheus_kind kind, const char *family, const char *help);

/* Writes a sample of the family; its labels differ from those of the other samples. */
void ph__prometheus_count(struct ph__prometheus *text, const struct ph__prometheus_label *labels,
    size_t num_labels, uint64_t count);

/* Writes a sample of a gauge, which is finite. */
void ph__prometheus_number(
    struct ph__prometheus *text, const struct ph__prometheus_label *labels, size_t num_labels, double number);

/* Observations by their size: counts (num_bounds + 1), of which the last are beyond all bounds, ascending. */
struct ph__prometheus_histogram {
    size_t num_bounds;
    const double *bounds; /* (num_bounds) upper ones */
    const uint64_t *counts;
    double sum;
};
#define PH_PROMETHEUS_MAX_LABELS 4
/* Writes a histogram of the family, with at most PH_PROMETHEUS_MAX_LABELS labels. */
void ph__prometheus_histogram(struct ph__prometheus *text, const struct ph__prometheus_label *labels,
    size_t num_labels, const struct ph__prometheus_histogram *histogram);

ph_status ph__prometheus_finish(const struct ph__prometheus *text);

#endif
