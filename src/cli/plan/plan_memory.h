/* The memory of a planned training, as phloem plan --memory prints it. */
#ifndef CLI_PLAN_MEMORY_H
#define CLI_PLAN_MEMORY_H

#include "base/file/stream.h"
#include "train/ranks/planned_memory.h"

/* Prints what rank 0 holds, the most that its workspace needs of each class, and the bytes of each operator.
 */
ph_status cli_plan_memory_print(
    const struct ph__memory_report *report, const struct ph__plan *plan, struct ph__writer *writer);

#endif
