#include "data/window.h"

#include <stdlib.h>
#include <string.h>

#include "base/memory.h"

#define DEFAULT_SHUFFLE_BYTES ((size_t)32 << 20)

/* The words of a position. */
enum { FILE_WORD, ROW_WORD, BYTE_WORD, GOOD_WORD, BAD_WORD, RANDOM_WORD, NEXT_WORD };

static struct ph__source_position source_start(const struct ph_position *position)
{
    const uint64_t *words = position->words;
    return (struct ph__source_position){
        .file = words[FILE_WORD],
        .row = words[ROW_WORD],
        .byte = words[BYTE_WORD],
        .num_rows = words[GOOD_WORD],
        .num_bad_rows = words[BAD_WORD],
    };
}

/* Whether the row, the source's last one, takes part. */
static bool is_kept(const struct ph__window *window, const struct ph__rows *rows)
{
    const uint32_t *row = rows->words + rows->starts[rows->num_rows - 1];
    if (window->negative_rate >= 1 || ph__word_as_float(row[0]) != 0)
        return true;
    return ph__rng_uniform(&window->negative_key, window->source.num_rows - 1, 0) < window->negative_rate;
}

static ph_status read_row(struct ph__window *window, struct ph__rows *rows)
{
    PH_TRY(ph__source_next(&window->source, rows, &window->is_at_end));
    if (!window->is_at_end && !is_kept(window, rows))
        rows->num_rows--;
    return PH_OK;
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
    ph__source_tell(&window->source, &window->source_start);
    window->random_start = window->random.position;
    while (!window->is_at_end && used_bytes(&window->rows) < window->max_bytes &&
           window->rows.num_rows < UINT32_MAX)
        PH_TRY(read_row(window, &window->rows));
    PH_TRY(ph__array_reserve(
        (void **)&window->order, &window->order_capacity, window->rows.num_rows, sizeof *window->order));
    for (size_t i = 0; i < window->rows.num_rows; i++)
        window->order[i] = (uint32_t)i;
    ph__rng_shuffle(&window->random, window->order, window->rows.num_rows);
    return PH_OK;
}

/* The window that was being given out when the pass was left. */
static ph_status restore(struct ph__window *window, const struct ph_position *position)
{
    window->random.position = position->words[RANDOM_WORD];
    if (!window->is_shuffled || position->words[NEXT_WORD] == 0)
        return PH_OK;
    PH_TRY(refill(window));
    if (position->words[NEXT_WORD] > window->rows.num_rows)
        return ph_fail(PH_ERROR_DATA, "%s: has fewer rows than when the pass was left",
            ph__source_path(&window->source));
    window->next = (size_t)position->words[NEXT_WORD];
    return PH_OK;
}

ph_status ph__window_open(struct ph__window *window, const struct ph_encoder *encoder, const char *path,
    const struct ph_batches_options *options)
{
    *window = (struct ph__window){
        .is_shuffled = options->is_shuffled,
        .max_bytes = options->shuffle_bytes == 0 ? DEFAULT_SHUFFLE_BYTES : options->shuffle_bytes,
        .negative_key = {options->seed, options->epoch, ph__hash_name("data.negatives")},
        .negative_rate = options->negative_rate == 0 ? 1 : options->negative_rate,
        .random.key = {options->seed, options->epoch, ph__hash_name("data.shuffle")},
    };
    struct ph__source_position start = {0};
    if (options->start != NULL)
        start = source_start(options->start);
    struct ph__source_options source_options = {
        .needs_no_labels = options->needs_no_labels, .max_bad_rows = options->max_bad_rows, .start = &start};
    PH_TRY(ph__source_open(&window->source, encoder, path, &source_options));
    return options->start != NULL ? restore(window, options->start) : PH_OK;
}

void ph__window_close(struct ph__window *window)
{
    ph__source_close(&window->source);
    ph__rows_fini(&window->rows);
    free(window->order);
    memset(window, 0, sizeof *window);
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
        PH_TRY(read_row(window, rows));
    return PH_OK;
}

void ph__window_tell(const struct ph__window *window, struct ph_position *position_out)
{
    struct ph__source_position start = window->source_start;
    uint64_t random = window->random_start, next = window->next;
    if (!window->is_shuffled || window->next == window->rows.num_rows) { /* the next window begins here */
        ph__source_tell(&window->source, &start);
        random = window->random.position;
        next = 0;
    }
    *position_out = (struct ph_position){
        {start.file, start.row, start.byte, start.num_rows, start.num_bad_rows, random, next, 0}};
}
