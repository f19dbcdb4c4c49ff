/* The optimizer of each parameter: the section's rule, then the embedding overrides for tables, then the
 * groups. */
#ifndef PH_TRAIN_OPTIMIZER_GROUPS_H
#define PH_TRAIN_OPTIMIZER_GROUPS_H

#include <stdbool.h>

#include "phloem/op.h"
#include "phloem/train.h"

struct ph_optimizer ph__optimizer_for(
    const struct ph_optimizer_settings *settings, const char *parameter, bool is_table);

/* PH_ERROR_CONFIG naming a group whose pattern matches none of the parameters: such a group would have no
 * effect, unnoticed. */
ph_status ph__optimizer_groups_check(
    const struct ph_optimizer_settings *settings, const char *const *parameters, size_t num_parameters);

#endif
