/* Writes one part of a prepared data set, block by block. The file appears under its name when it is finished and
 * durable, and not before. One thread at a time per writer. */
#ifndef PH_DATA_PART_WRITER_H
#define PH_DATA_PART_WRITER_H

#include "data/prepared/part_block.h"
#include "data/prepared/part_format.h"

struct ph__part_writer;

/* Path, layout and digest are borrowed: path and digest during the call, the layout until close. Errors of all calls:
 * PH_ERROR_DISK naming the path, PH_ERROR_MEMORY. */
ph_status ph__part_writer_open(const char *path, const struct ph__row_layout *layout,
    const unsigned char digest[PH_ENCODER_DIGEST_BYTES], struct ph__part_writer **writer_out);

/* All of `rows` as one block; no rows are no block. */
ph_status ph__part_writer_add(struct ph__part_writer *writer, const struct ph__rows *rows);

/* Index, footer, and the file under its name: nothing more may be added. */
ph_status ph__part_writer_finish(
    struct ph__part_writer *writer, const struct ph__part_range *range, struct ph__part_footer *footer_out);

void ph__part_writer_close(struct ph__part_writer *writer); /* without a finish: nothing is left of it */

#endif
