/* Whether a folder may take a preparation. */
#ifndef PH_DATA_PREPARE_FOLDER_H
#define PH_DATA_PREPARE_FOLDER_H

#include <stdbool.h>

#include "phloem/status.h"

/* PH_OK for a folder that is empty and, where it may be resumed, for one that holds the beginning of a preparation: its
 * settings, which are written first, or what a kill has left of them. PH_ERROR_USAGE for any other, whose files would be
 * taken for those of the preparation or lost among them. */
ph_status ph__prepare_folder_check(const char *folder, bool may_resume);

#endif
