/* Memory that rank 0 of a planned training needs, operator by operator, before any rank exists. */
#ifndef PH_TRAIN_PLANNED_MEMORY_H
#define PH_TRAIN_PLANNED_MEMORY_H

#include "plan/plan.h"
#include "train/job.h"

/* Classes of a workspace's bytes: whole parameters that were gathered, and weights packed for products;
 * gradients of dense parameters, on their way or summed; all else, such as activations; scratch. */
enum ph__memory_class {
    PH_MEMORY_PARAMETERS,
    PH_MEMORY_GRADIENTS,
    PH_MEMORY_OTHERS,
    PH_MEMORY_SCRATCH,
    PH_MEMORY_CLASS_COUNT
};

struct ph__memory_node {
    const char *entry, *name; /* of the node; valid as long as the report */
    uint64_t bytes[PH_MEMORY_CLASS_COUNT];
};

struct ph__memory_report { /* zero-initialised is empty */
    struct ph__arena arena;
    uint64_t parameter_bytes, slot_bytes; /* held from step to step, tables included */
    uint64_t planned_bytes;               /* of the workspace */
    struct ph__memory_node *nodes;        /* (num_nodes) in the order in which they run */
    size_t num_nodes;
};

/* Fills the report for a plan of the job, with so many ids of a sample. Parameters and activations take no
 * memory. Errors of ph__training_program_build; PH_ERROR_MEMORY. Call fini also
 * after a failure. */
ph_status ph__memory_report_init(const struct ph__train_job *job, const struct ph__plan *plan,
    double ids_per_sample, struct ph__memory_report *report);
void ph__memory_report_fini(struct ph__memory_report *report);

#endif
