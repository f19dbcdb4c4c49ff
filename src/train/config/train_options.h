/* The keys under "train" and "optimizer" of a config. */
#ifndef PH_TRAIN_TRAIN_OPTIONS_H
#define PH_TRAIN_TRAIN_OPTIONS_H

#include "base/option/option.h"
#include "phloem/train.h"

struct ph__optimizer_section {
    struct ph_optimizer_settings settings;
    struct ph__record_list groups; /* of struct ph_optimizer_group */
};

extern const struct ph__option_table ph__train_options;     /* struct ph_train_settings */
extern const struct ph__option_table ph__optimizer_options; /* struct ph__optimizer_section */

/* After reading: points the settings at the section's groups; the section must stay where it is. */
void ph__optimizer_section_finish(struct ph__optimizer_section *section);

#endif
