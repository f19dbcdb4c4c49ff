/* The first pass of a preparation, where an encoder learns from the training data: by the plan's parts, in parallel, within
 * a bound of memory, and taken up again after a crash. */
#ifndef PH_DATA_PREPARE_LEARN_H
#define PH_DATA_PREPARE_LEARN_H

#include "data/prepared/prepare_plan.h"

/* Completes an encoder that was outlined from the settings, by the plan's tasks of the training split. What is learnt of a
 * part is kept in `folder`, for this plan alone, until the caller removes it by ph__prepare_learn_clean. The encoder is
 * what ph_encoder_create would have made, to the bit. */
ph_status ph__prepare_learn(const struct ph_data_settings *settings, const struct ph__prepare_plan *plan,
    const char *folder, const struct ph_prepare_options *options, struct ph_encoder *encoder);

/* Removes the folder with what is in it; nothing happens when it is not there. */
ph_status ph__prepare_learn_clean(const char *folder);

#endif
