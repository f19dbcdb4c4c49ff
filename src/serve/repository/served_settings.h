/* Settings of a served model: serve.model in the server's own config, and the file MODEL/serve.yaml. */
#ifndef PH_SERVE_SERVED_SETTINGS_H
#define PH_SERVE_SERVED_SETTINGS_H

#include "base/memory/buffer.h"
#include "base/option/option.h"
#include "phloem/server.h"

extern const struct ph__option_table ph__served_options; /* section "serve.model" */

/* Changes settings by a ModelConfig of Triton's as JSON, which a client gave for a model: max_batch_size,
 * dynamic_batching, version_policy and the names of outputs. What it leaves out, and zeros, stay as they are.
 * Texts are in the arena. PH_ERROR_DATA naming a key that would change anything else. */
ph_status ph__served_settings_apply(
    const char *model, struct ph__bytes config, struct ph__arena *arena, struct ph_served_settings *settings);

/* Gives the settings of one model: those of the server, changed by the keys of MODEL/serve.yaml that are not
 * at their defaults. run_folder is one of its versions; where its name is not the version's number, the
 * folder is the repository itself, and serve.yaml in it. Texts are in the arena. PH_ERROR_CONFIG naming the
 * file and line. */
ph_status ph__served_settings_read(const struct ph_served_settings *common, const char *run_folder,
    uint64_t version, struct ph__arena *arena, struct ph_served_settings *settings_out);

/* Copies settings with their texts; no text of the copy is NULL. PH_ERROR_MEMORY. */
ph_status ph__served_settings_copy(const struct ph_served_settings *settings, struct ph__arena *arena,
    struct ph_served_settings *settings_out);

/* Tells whether the policy wants a version; versions: (count) that are there, ascending. */
bool ph__served_settings_want(
    const struct ph_served_settings *settings, const uint64_t *versions, size_t count, uint64_t version);

/* Calls `visit` for each name of a list "a,b", without the blanks around names; its failure ends the visit.
 */
ph_status ph__list_visit(
    const char *list, ph_status (*visit)(void *context, struct ph__bytes name), void *context);

#endif
