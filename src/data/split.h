/* The three parts of a job's data. */
#ifndef PH_DATA_SPLIT_H
#define PH_DATA_SPLIT_H

#include <stddef.h>

#include "data/data_options.h"

enum ph__split { PH_SPLIT_TRAIN, PH_SPLIT_VALID, PH_SPLIT_TEST, PH_SPLIT_COUNT };

extern const char *const ph__split_names[PH_SPLIT_COUNT]; /* train, valid, test */

/* The path that the settings give for it; NULL: none. */
const char *ph__split_path(const struct ph_data_settings *settings, size_t split);

#endif
