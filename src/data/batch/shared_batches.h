/* Batches of all ranks of one process, made from one reading of their data: simulated ranks need not read the
 * same rows a thousand times. A pass is opened by the first rank that asks for it, and closed when all ranks
 * have left it. Each rank gets the batches that it would read alone. One rank at a time. */
#ifndef PH_DATA_SHARED_BATCHES_H
#define PH_DATA_SHARED_BATCHES_H

#include "data/batch/batch_buffer.h"
#include "data/batch/rank_rows.h"

struct ph__shared_batches;
struct ph__shared_pass;

/* PH_ERROR_MEMORY. Destroy them when all ranks have left their passes. */
ph_status ph__shared_batches_create(size_t world_size, struct ph__shared_batches **shared_out);
void ph__shared_batches_destroy(struct ph__shared_batches *shared);

/* Returns the bytes of the rows that passes hold to draw batches from: what each rank would hold alone. */
uint64_t ph__shared_batches_row_bytes(const struct ph__shared_batches *shared);

/* Opens a pass, or joins one that another rank has opened with the same path and options but for the rank. A
 * rank opens each pass once.
 * Path and encoder are borrowed until the pass is closed. Errors are ph_batches_open's. */
ph_status ph__shared_pass_open(struct ph__shared_batches *shared, const struct ph_encoder *encoder,
    const char *path, const struct ph_batches_options *options, struct ph__shared_pass **pass_out);
/* Leaves the pass; `number` as below. NULL is fine. */
void ph__shared_pass_close(struct ph__shared_pass *pass, uint64_t number);

/* All ranks' parts of one batch. */
struct ph__shared_batch {
    struct ph__batch_buffer *buffers; /* (world_size) */
    struct ph_position position;      /* behind it */
    size_t num_global;                /* rows of all ranks; 0: the pass has ended */
    uint64_t num_bad_rows;            /* up to there */
    size_t num_users;                 /* ranks that have not given it back */
    struct ph__shared_batch *next;
};

/* Gives batch `number`, counted from 0. A rank takes one after the other, and gives each back by taking the
 * next. Errors are those of ph_batches_next, and stay. */
ph_status ph__shared_pass_take(
    struct ph__shared_pass *pass, uint64_t number, const struct ph__shared_batch **batch_out);

/* Returns the first row that was left out as text; "": none. */
const char *ph__shared_pass_first_bad(const struct ph__shared_pass *pass);

#endif
