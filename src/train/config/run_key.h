/* What a finished training is known by, so that it is not repeated: its config, the program that trained, and
 * its data.
 *
 * Of the data, each file's size and the time it was last changed: cheap whatever their size, and where they
 * are does not matter. Of the program, its bytes, with which the library is linked into it; neither the
 * libraries that it loads nor the processor. */
#ifndef PH_TRAIN_RUN_KEY_H
#define PH_TRAIN_RUN_KEY_H

#include "train/config/job_config.h"

#define PH_RUN_KEY_BYTES 13 /* twelve hexadecimal digits */

/* SHA-256 of the bytes of the running program. PH_ERROR_DATA when they cannot be read. */
ph_status ph__program_digest(char hex_out[65]);

/* Of the files that a path of a config stands for: a file, a pattern, arrays, or a split of prepared data;
 * NULL: none. Missing files have a key, too: whoever trains on them says what is wrong. PH_ERROR_CONFIG for
 * what can be read only once. */
ph_status ph__data_key(const char *path, char key_out[PH_RUN_KEY_BYTES]);

/* `program` is as ph__program_digest gives it. The same for all seeds. */
ph_status ph__run_key(const struct ph_config *config, const char *program, char key_out[PH_RUN_KEY_BYTES]);

#endif
