/* The keys under "model" of a config. */
#ifndef PH_MODEL_MODEL_OPTIONS_H
#define PH_MODEL_MODEL_OPTIONS_H

#include <stddef.h>

#include "base/option/option.h"
#include "model/model.h"

/* Settings read from the section. Must not move: the settings point into it. */
struct ph__model_section {
    struct ph_model_settings settings;
    struct ph__integer_list hidden_units, bottom_units, top_units;
    const char *tower_file; /* until the settings are complete */
    struct {
        _Alignas(max_align_t) char bytes[PH_MODEL_KEYS_BYTES];
    } own[PH_NUM_MODELS]; /* by kind: the settings of its own keys */
};

extern const struct ph__option_table ph__model_options;

/* Lists the tables to read "model" by: its own, and one for each kind that has keys of its own. sections_out
 * has room for PH_NUM_MODEL_SECTIONS; returns their number. */
#define PH_NUM_MODEL_SECTIONS (1 + PH_NUM_MODELS)
size_t ph__model_sections(struct ph__model_section *section, struct ph__section *sections_out);

/* Lists the sections that count for the kind that has been read, and returns their number: one or two. */
size_t ph__model_used_sections(struct ph__model_section *section, struct ph__section *sections_out);

/* Completes the settings after reading: points their arrays at the section's, and reads the file that
 * model.towers stands for, beside config_path (NULL: no file is read). PH_ERROR_CONFIG for a key of
 * another kind than the chosen one, or for towers that are not valid (towers.h). */
ph_status ph__model_section_finish(
    struct ph__model_section *section, const char *config_path, struct ph__arena *arena);

/* Makes a section from settings of any origin. PH_ERROR_CONFIG for more layers than a config can name. */
ph_status ph__model_section_take(
    struct ph__model_section *section, const struct ph_model_settings *settings, struct ph__arena *arena);

#endif
