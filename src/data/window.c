#include "data/window.h"

#include <stdlib.h>
#include <string.h>

#include "base/memory.h"

#define DEFAULT_SHUFFLE_BYTES ((size_t)32 << 20)

ph_status ph__window_open(struct ph__window *window, const struct ph_encoder *encoder, const char *path,
    const struct ph_batches_options *options)
{
    *window = (struct ph__window){
        .is_shuffled = options->is_shuffled,
        .max_bytes = options->shuffle_bytes == 0 ? DEFAULT_SHUFFLE_BYTES : options->shuffle_bytes,
        .random.key = {.seed = options->seed,
            .step = options->epoch,
            .stream = ph__hash_name("data.shuffle")},
    };
    return ph__row_reader_open(&window->reader, encoder, path, options->needs_no_labels);
}

void ph__window_close(struct ph__window *window)
{
    ph__row_reader_close(&window->reader);
    ph__rows_fini(&window->rows);
    free(window->order);
    memset(window, 0, sizeof *window);
}

static size_t used_bytes(const struct ph__rows *rows)
{
    return ph__rows_num_words(rows) * sizeof *rows->words +
           rows->num_rows * (sizeof *rows->starts + sizeof(uint32_t));
}

/* Reads a window's rows and permutes them. No rows: the end of the file. */
static ph_status refill(struct ph__window *window)
{
    window->rows.num_rows = 0;
    window->next = 0;
    while (!window->is_at_end && used_bytes(&window->rows) < window->max_bytes &&
           window->rows.num_rows < UINT32_MAX)
        PH_TRY(ph__row_reader_next(&window->reader, &window->rows, &window->is_at_end));
    PH_TRY(ph__array_reserve(
        (void **)&window->order, &window->order_capacity, window->rows.num_rows, sizeof *window->order));
    for (size_t i = 0; i < window->rows.num_rows; i++)
        window->order[i] = (uint32_t)i;
    ph__rng_shuffle(&window->random, window->order, window->rows.num_rows);
    return PH_OK;
}

static ph_status take_shuffled(struct ph__window *window, size_t wanted, struct ph__rows *rows)
{
    while (rows->num_rows < wanted) {
        if (window->next == window->rows.num_rows)
            PH_TRY(refill(window));
        if (window->rows.num_rows == 0)
            break;
        PH_TRY(ph__rows_append(rows, &window->rows, window->order[window->next++]));
    }
    return PH_OK;
}

ph_status ph__window_take(struct ph__window *window, size_t wanted, struct ph__rows *rows)
{
    rows->num_rows = 0;
    if (window->is_shuffled)
        return take_shuffled(window, wanted, rows);
    while (rows->num_rows < wanted && !window->is_at_end)
        PH_TRY(ph__row_reader_next(&window->reader, rows, &window->is_at_end));
    return PH_OK;
}
