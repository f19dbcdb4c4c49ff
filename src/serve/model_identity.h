/* The settings that weights were trained with, as far as scoring needs them, as a text in the metadata of
 * model.safetensors. So a config.yaml that differs is detected before it makes wrong probabilities, and a
 * folder without one can be opened. */
#ifndef PH_SERVE_MODEL_IDENTITY_H
#define PH_SERVE_MODEL_IDENTITY_H

#include "base/memory/arena.h"
#include "phloem/model.h"

#define PH_IDENTITY_KEY "settings" /* key of the metadata */
#define PH_IDENTITY_BYTES 16384    /* more than any model's settings take, the ending NUL included */

/* Writes the model's settings that are not at their defaults and data.negative_rate, as lines
 * "model.kind=fm", in less than PH_IDENTITY_BYTES. In the arena. */
ph_status ph__model_identity(const struct ph_model_settings *settings, double negative_rate,
    struct ph__arena *arena, const char **text_out);

/* Turns the lines into sets for ph__config_read, in the arena. PH_ERROR_CHECKPOINT naming the weights' path
 * for a text that ph__model_identity cannot have written: another key, or a value that its option does not
 * take. */
ph_status ph__model_identity_sets(const char *path, const char *text, struct ph__arena *arena,
    const char *const **sets_out, size_t *num_sets_out);

/* Compares the two texts. PH_ERROR_CHECKPOINT naming the weights' path and the first line of either text that
 * the other lacks. */
ph_status ph__model_identity_check(const char *path, const char *trained, const char *wanted);

#endif
