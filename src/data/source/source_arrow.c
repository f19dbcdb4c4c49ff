/* A dataset as a source: one file, whose fetch goes from batch to batch. */
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>

#include "base/memory/memory.h"
#include "base/sizes.h"
#include "data/source/arrow_rows.h"
#include "data/source/source.h"

struct arrow_pass {
    struct ph__dataset_reader reader;
    struct ph__arrow_rows rows; /* without a batch: before the first, or behind the last */
    uint64_t num_before;        /* rows of the batches before */
    uint64_t next;              /* next row of the batch; the rows before it are left out */
};

/* Goes to the batch that has the next row. */
static ph_status find_batch(struct ph__source *source, bool *is_end_out)
{
    const bool needs_no_labels = source->options.needs_no_labels;
    struct arrow_pass *pass = source->state;
    const struct ph__dataset_batch *batch = pass->rows.batch;
    *is_end_out = false;
    while (batch == NULL || pass->next >= batch->num_rows) {
        if (batch != NULL) {
            pass->num_before += batch->num_rows;
            pass->next -= batch->num_rows;
        }
        pass->rows.batch = NULL;
        PH_TRY(ph__dataset_reader_next(&pass->reader, &batch));
        *is_end_out = batch == NULL;
        if (batch == NULL)
            return pass->next == 0 ? PH_OK
                                   : ph_fail(PH_ERROR_DATA, "%s: has fewer rows than when reading stopped",
                                         source->paths[source->file]);
        const ph_status status = ph__arrow_rows_match(&pass->rows, source->encoder, batch,
            needs_no_labels ? PH_ARROW_NEEDS_NO_LABELS : PH_ARROW_NEEDS_ALL);
        if (status != PH_OK)
            return ph_fail(status, "%s: batch %zu: %s", source->paths[source->file],
                pass->reader.num_read - 1, ph_error_text());
    }
    return PH_OK;
}

static ph_status open_arrow(struct ph__source *source, const struct ph__source_position *position)
{
    bool is_end;
    struct arrow_pass *pass = calloc(1, sizeof *pass);
    source->state = pass;
    if (pass == NULL)
        return ph__out_of_memory("cannot read %s", source->paths[source->file]);
    pass->next = position->row;
    PH_TRY(ph__dataset_reader_open(&pass->reader, source->options.dataset));
    return find_batch(source, &is_end);
}

static void close_arrow(struct ph__source *source)
{
    struct arrow_pass *pass = source->state;
    if (pass == NULL)
        return;
    ph__dataset_reader_close(&pass->reader);
    ph__arrow_rows_fini(&pass->rows);
    free(pass);
}

static ph_status fetch_arrow(struct ph__source *source, bool *is_end_out)
{
    struct arrow_pass *pass = source->state;
    PH_TRY(find_batch(source, is_end_out));
    if (!*is_end_out)
        pass->next++;
    return PH_OK;
}

static ph_status encode_arrow(struct ph__source *source)
{
    struct arrow_pass *pass = source->state;
    return ph__arrow_rows_encode(&pass->rows, &source->row, pass->next - 1);
}

static ph_status encode_run(
    struct ph__source *source, struct ph__rows *rows, size_t wanted, size_t *num_rows_out)
{
    bool is_end;
    struct arrow_pass *pass = source->state;
    PH_TRY(find_batch(source, &is_end));
    if (is_end || !ph__arrow_rows_may_run(&pass->rows, &source->row))
        return PH_OK;
    const size_t num_left = (size_t)(pass->rows.batch->num_rows - pass->next);
    *num_rows_out = ph__min(ph__min(wanted, num_left), PH_ARROW_RUN_ROWS);
    PH_TRY(ph__arrow_rows_encode_run(&pass->rows, &source->row, rows, pass->next, *num_rows_out));
    pass->next += *num_rows_out;
    return PH_OK;
}

static void locate_arrow(const struct ph__source *source, char *text, size_t size)
{
    const struct arrow_pass *pass = source->state;
    snprintf(text, size, "%s: batch %zu, row %" PRIu64, source->paths[source->file],
        pass->reader.num_read - 1, pass->next - 1);
}

/* Counts the rows of all batches, so that a position stays right where a later pass cuts them otherwise. */
static void tell_arrow(const struct ph__source *source, struct ph__source_position *position)
{
    const struct arrow_pass *pass = source->state;
    position->row = pass->num_before + pass->next;
}

const struct ph__format ph__format_arrow = {
    .open = open_arrow,
    .close = close_arrow,
    .fetch = fetch_arrow,
    .encode = encode_arrow,
    .encode_run = encode_run,
    .locate = locate_arrow,
    .tell = tell_arrow,
};
