/* Targets that read prepared data: a layout of rows with lists of both kinds, and what decoded rows promise.
 */
#ifndef PH_FUZZ_PARTS_H
#define PH_FUZZ_PARTS_H

#include "data/prepared/part_block.h"
#include "data/prepared/part_file.h"
#include "support/fuzz_support.h"

/* Rows longer than this in all are not decoded: a few bytes may stand for very many words. */
#define FUZZ_MAX_WORDS ((size_t)1 << 14)

/* any word | any word | id below 50 | list of ids below 1000 | weighted list of ids below 7. Static storage.
 */
const struct ph__row_layout *fuzz_layout(void);

/* num_rows rows of it, always the same for the same seed; to be freed by ph__rows_fini. */
struct ph__rows fuzz_make_rows(size_t num_rows, uint64_t seed);

/* The rows from `first` on lie one behind the other, as long as their lists say, with ids within their
 * limits. */
void fuzz_check_rows(const struct ph__rows *rows, size_t first);

/* Makes the checksums of an edited part fit, as far as its own numbers lead to what they cover. */
void fuzz_reseal_part(uint8_t *bytes, size_t size, const struct ph__row_layout *layout,
    const unsigned char digest[PH_ENCODER_DIGEST_BYTES]);

#endif
