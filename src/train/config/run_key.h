/* The key of a finished training, by which a repetition is recognised: a digest of its config, of the program
 * that trained, and of its data.
 *
 * Data counts by each file's size and time of last change: cheap at any size, and independent of the path.
 * The program counts by its bytes, which include the library linked into it; the libraries that it loads and
 * the processor do not count. */
#ifndef PH_TRAIN_RUN_KEY_H
#define PH_TRAIN_RUN_KEY_H

#include "train/config/job_config.h"

#define PH_RUN_KEY_BYTES 13 /* twelve hexadecimal digits */

/* SHA-256 of the bytes of the running program. PH_ERROR_DATA when they cannot be read. */
ph_status ph__program_digest(char hex_out[65]);

/* Makes the key of the files that a path of a config stands for: a file, a pattern, arrays, or a split of
 * prepared data, with the files beside it that the data section names; NULL: none. Missing files have a key,
 * too: the training reports them. PH_ERROR_CONFIG for data that can be read only once. */
ph_status ph__data_key(const struct ph_data_settings *data, const char *path, char key_out[PH_RUN_KEY_BYTES]);

/* Makes the key of a run, the same for all seeds. program: from ph__program_digest. */
ph_status ph__run_key(const struct ph_config *config, const char *program, char key_out[PH_RUN_KEY_BYTES]);

#endif
