/* Checkpoints under their names: one may be a file or a folder of files (checkpoint_folder.h), and whoever links, removes or
 * replaces it need not know which. Errors name the path. */
#ifndef PH_STORE_CHECKPOINT_NAMES_H
#define PH_STORE_CHECKPOINT_NAMES_H

#include <stdbool.h>

#include "phloem/status.h"

/* A folder without its index, which is no checkpoint: it is being written, or whoever wrote it has ended. */
bool ph__checkpoint_is_half_written(const char *path);

/* Makes `to` another name of the checkpoint `from`, durably, in place of what is there: of a file in one moment, of a folder
 * file by file, its index last, and not at all where `to` has the seal of `from`. PH_ERROR_DISK. */
ph_status ph__checkpoint_link(const char *from, const char *to);

/* Removes it; of a folder the index first. Nothing there is fine. PH_ERROR_DISK. */
ph_status ph__checkpoint_remove(const char *path);

/* Removes what is there unless it is of this kind, which a writer replaces by itself. PH_ERROR_DISK. */
ph_status ph__checkpoint_make_way(const char *path, bool is_folder);

/* The seal that it carries: the file's, or the index's, which knows those of its files. is_checked: everything is read and
 * compared with its seal. PH_ERROR_CHECKPOINT. */
ph_status ph__checkpoint_read_seal(const char *path, bool is_checked, char seal_out[65]);

#endif
