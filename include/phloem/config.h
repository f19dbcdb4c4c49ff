/* Configs: the YAML of a job, read into the settings that the functions of the other headers take.
 *
 * The keys are those of docs/CONFIG.md; the program phloem reads them by the same tables. A config is read
 * once and not changed afterwards: any number of threads may use it. Pointers that its functions return are
 * borrowed until the config is destroyed; an encoder does not need the settings that it was made from. */
#ifndef PHLOEM_CONFIG_H
#define PHLOEM_CONFIG_H

#include <stddef.h>

#include "phloem/data.h"
#include "phloem/model.h"
#include "phloem/status.h"
#include "phloem/train.h"

#ifdef __cplusplus
extern "C" {
#endif

struct ph_config;

/* Reads defaults, then the file (NULL: none), then each "key=value" of sets (num_sets; NULL where there are
 * none) in their order, as phloem --set takes them. In paths, $NAME is an environment variable; relative
 * paths start at the working directory of the process. path and sets are not needed later. The caller
 * destroys the config. Errors: PH_ERROR_CONFIG with file and line, or --set and the text, for an unknown key,
 * a wrong type or a value out of range; PH_ERROR_DATA for a folder in data.prepared that holds no prepared
 * data; PH_ERROR_MEMORY. */
PH_MUST_CHECK ph_status ph_config_read(
    const char *path, const char *const *sets, size_t num_sets, struct ph_config **config_out);
/* Reads a config as ph_config_read does, from a text of YAML or JSON in the place of a file; `name` stands
 * for the file in errors. The text is not needed later; NULL: reads the file `name`. */
PH_MUST_CHECK ph_status ph_config_from_text(const char *text, const char *name, const char *const *sets,
    size_t num_sets, struct ph_config **config_out);
void ph_config_destroy(struct ph_config *config); /* NULL is fine */

/* Gives the schema of settings as JSON: a list of sections {section, help, keys}, whose keys are {key, type,
 * default, range, help, may_change_on_resume}; `records` of a key holds the keys of its entries. The caller
 * frees the text with ph_text_free. PH_ERROR_MEMORY. */
PH_MUST_CHECK ph_status ph_config_schema(char **json_out);

/* Return the keys under "data", for ph_encoder_create, ph_encoder_create_from_dataset and ph_prepare; those
 * under "synth", for ph_synth_write; and those under "model", "train" and "optimizer". */
const struct ph_data_settings *ph_config_data(const struct ph_config *config);
const struct ph_synth_settings *ph_config_synth(const struct ph_config *config);
const struct ph_model_settings *ph_config_model(const struct ph_config *config);
const struct ph_train_settings *ph_config_train(const struct ph_config *config);
const struct ph_optimizer_settings *ph_config_optimizer(const struct ph_config *config);

/* Fills in a preparation's options from "threads" and the keys under "prepare". The other members become
 * zero, for the caller to fill in. The caller has set the size. PH_ERROR_USAGE. */
PH_MUST_CHECK ph_status ph_config_prepare_options(
    const struct ph_config *config, struct ph_prepare_options *options);

/* Writes a training's config with all defaults filled in (all keys but those under "prepare" and "synth"), as
 * YAML that ph_config_read takes: to a file, which is replaced atomically, or to standard output for "-". The
 * program phloem leaves it as config.yaml in the folder of a training. PH_ERROR_DISK, PH_ERROR_MEMORY. */
PH_MUST_CHECK ph_status ph_config_write(const struct ph_config *config, const char *path);

#ifdef __cplusplus
}
#endif
#endif
