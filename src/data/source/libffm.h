/* How many fields the rows of libffm files have. */
#ifndef PH_DATA_LIBFFM_H
#define PH_DATA_LIBFFM_H

#include <stddef.h>

#include "phloem/status.h"

/* One more than the largest field number in the files, which are read once from end to end. Words that are no triples
 * are passed over: whoever encodes the rows will say what is wrong with them. PH_ERROR_DATA: no row has a field. */
ph_status ph__libffm_count_fields(const char *const *paths, size_t num_paths, size_t *num_fields_out);

#endif
