/* The keys under "model" of a config. */
#ifndef PH_MODEL_MODEL_OPTIONS_H
#define PH_MODEL_MODEL_OPTIONS_H

#include "base/option.h"
#include "phloem/model.h"

struct ph_model_section {
    struct ph_model_settings settings;
    struct ph_integer_list hidden_units, bottom_units, top_units;
};

extern const struct ph_option_table ph__model_options;

/* After reading: points the settings' arrays at the section's lists; the section must stay where it is. */
void ph__model_section_finish(struct ph_model_section *section);

/* ph__config_changes of settings that may come from elsewhere. */
ph_status ph__model_changes(
    const struct ph_model_settings *settings, struct ph_arena *arena, const char **text_out);

#endif
