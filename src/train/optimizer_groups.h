/* Which optimizer a parameter gets: the section's rule, the embedding overrides for tables, then the groups. */
#ifndef PH_TRAIN_OPTIMIZER_GROUPS_H
#define PH_TRAIN_OPTIMIZER_GROUPS_H

#include <stdbool.h>

#include "phloem/op.h"
#include "phloem/train.h"

struct ph_optimizer ph__optimizer_for(
    const struct ph_optimizer_settings *settings, const char *parameter, bool is_table);

#endif
