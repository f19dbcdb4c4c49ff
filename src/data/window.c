#include "data/window.h"

#include <stdlib.h>
#include <string.h>

#include "base/memory.h"

/* The words of a position. */
enum { FILE_WORD, ROW_WORD, BYTE_WORD, GOOD_WORD, BAD_WORD, RANDOM_WORD, NEXT_WORD };

static struct ph__source_position position_start(const struct ph_position *position)
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

static void tell_source(const struct ph__window *window, struct ph__source_position *position_out)
{
    if (window->is_prepared)
        *position_out = (struct ph__source_position){.file = window->prepared.next};
    else
        ph__source_tell(&window->source, position_out);
}

/* ---- filling --------------------------------------------------------------------------------------------- */

/* Whether a row takes part: the data's row of that number. */
static bool is_kept(const struct ph__window *window, const uint32_t *row, uint64_t number)
{
    if (window->negative_rate >= 1 || ph__word_as_float(row[0]) != 0)
        return true;
    return ph__rng_uniform(&window->negative_key, number, 0) < window->negative_rate;
}

/* Adds rows first and later of the window to its order, as far as they take part; the first is the data's row `number`.
 */
static ph_status order_rows(struct ph__window *window, size_t first, uint64_t number)
{
    const struct ph__rows *rows = &window->rows;
    PH_TRY(ph__array_reserve(
        (void **)&window->order, &window->order_capacity, rows->num_rows, sizeof *window->order));
    for (size_t i = first; i < rows->num_rows; i++)
        if (is_kept(window, rows->words + rows->starts[i], number + i - first))
            window->order[window->num_ordered++] = (uint32_t)i;
    return PH_OK;
}

static bool is_text_full(const struct ph__window *window, size_t wanted)
{
    const struct ph__rows *rows = &window->rows;
    if (!window->is_shuffled)
        return rows->num_rows == wanted;
    return rows->num_rows == UINT32_MAX ||
           ph__rows_bytes(rows->num_rows, ph__rows_num_words(rows)) >= window->max_bytes;
}

/* A row that does not take part leaves its place to the next one. */
static ph_status read_text(struct ph__window *window, size_t wanted)
{
    struct ph__rows *rows = &window->rows;
    while (!window->is_at_end && !is_text_full(window, wanted)) {
        PH_TRY(ph__source_next(&window->source, rows, &window->is_at_end));
        if (window->is_at_end)
            break;
        PH_TRY(order_rows(window, rows->num_rows - 1, window->source.num_rows - 1));
        rows->num_rows = window->num_ordered;
    }
    return PH_OK;
}

static ph_status read_blocks(struct ph__window *window)
{
    while (ph__prepared_source_fits(&window->prepared, &window->rows)) {
        size_t first = window->rows.num_rows;
        uint64_t number;
        PH_TRY(ph__prepared_source_next(&window->prepared, &window->rows, &number));
        PH_TRY(order_rows(window, first, number));
    }
    window->is_at_end = window->rows.num_rows == 0;
    return PH_OK;
}

/* Reads a window's rows and permutes them; in the order of the data `wanted` at most, or a block. No rows: the end. */
static ph_status refill(struct ph__window *window, size_t wanted)
{
    window->num_ordered = 0;
    window->next = 0;
    while (window->num_ordered == 0 && !window->is_at_end) {
        window->rows.num_rows = 0;
        tell_source(window, &window->start);
        window->random_start = window->random.position;
        PH_TRY(window->is_prepared ? read_blocks(window) : read_text(window, wanted));
    }
    if (window->is_shuffled)
        ph__rng_shuffle(&window->random, window->order, window->num_ordered);
    return PH_OK;
}

/* ---- opening --------------------------------------------------------------------------------------------- */

/* The window that was being given out when the pass was left. */
static ph_status restore(struct ph__window *window, const struct ph_position *position)
{
    window->random.position = position->words[RANDOM_WORD];
    if (window->is_prepared)
        PH_TRY(ph__prepared_source_seek(&window->prepared, position->words[FILE_WORD]));
    if (position->words[NEXT_WORD] == 0)
        return PH_OK;
    PH_TRY(refill(window, 1));
    if (position->words[NEXT_WORD] > window->num_ordered)
        return ph_fail(PH_ERROR_DATA, "%s: has fewer rows than when the pass was left", window->path);
    window->next = (size_t)position->words[NEXT_WORD];
    return PH_OK;
}

/* Memory for a whole window at once, in large pages: its rows are read at random. */
static ph_status reserve_window(struct ph__window *window)
{
    const struct ph__manifest *manifest = ph__prepared_set_manifest(window->prepared.set);
    uint64_t num_words = window->max_bytes / sizeof(uint32_t);
    num_words = num_words < manifest->num_words ? num_words : manifest->num_words;
    PH_TRY(ph__array_reserve((void **)&window->rows.words, &window->rows.words_capacity, (size_t)num_words,
        sizeof *window->rows.words));
    ph__memory_advise_large(window->rows.words, (size_t)num_words * sizeof *window->rows.words);
    return PH_OK;
}

static ph_status open_rows(
    struct ph__window *window, const struct ph_dataset *dataset, const struct ph_batches_options *options)
{
    window->is_prepared = dataset == NULL && ph__prepared_set_is(window->path);
    if (window->is_prepared) {
        PH_TRY(ph__prepared_source_open(&window->prepared, window->encoder, window->path,
            window->is_shuffled ? window->max_bytes : 0, options->seed, options->epoch));
        return window->is_shuffled ? reserve_window(window) : PH_OK;
    }
    struct ph__source_position start = {0};
    if (options->start != NULL)
        start = position_start(options->start);
    struct ph__source_options source_options = {.dataset = dataset,
        .needs_no_labels = options->needs_no_labels,
        .max_bad_rows = options->max_bad_rows,
        .stop_signal = options->stop_signal,
        .start = &start};
    return ph__source_open(&window->source, window->encoder, window->path, &source_options);
}

ph_status ph__window_open(struct ph__window *window, const struct ph_encoder *encoder, const char *path,
    const struct ph_dataset *dataset, const struct ph_batches_options *options)
{
    *window = (struct ph__window){
        .encoder = encoder,
        .path = strdup(path),
        .is_shuffled = options->is_shuffled,
        .max_bytes = options->shuffle_bytes == 0 ? PH_DEFAULT_SHUFFLE_BYTES : options->shuffle_bytes,
        .negative_key = {options->seed, options->epoch, ph__hash_name("data.negatives")},
        .negative_rate = options->negative_rate == 0 ? 1 : options->negative_rate,
        .random.key = {options->seed, options->epoch, ph__hash_name("data.shuffle")},
    };
    if (window->path == NULL)
        return ph_fail(PH_ERROR_MEMORY, "%s: no memory to read it", path);
    if (!(window->negative_rate > 0 && window->negative_rate <= 1)) /* NaN included */
        return ph_fail(PH_ERROR_USAGE, "%s: a negative_rate of %g: a share lies between 0 and 1", path,
            window->negative_rate);
    PH_TRY(open_rows(window, dataset, options));
    return options->start != NULL ? restore(window, options->start) : PH_OK;
}

void ph__window_close(struct ph__window *window)
{
    if (window->is_prepared)
        ph__prepared_source_close(&window->prepared);
    else
        ph__source_close(&window->source);
    ph__rows_fini(&window->rows);
    ph__rows_fini(&window->carried);
    free(window->taken);
    free(window->order);
    free(window->path);
    memset(window, 0, sizeof *window);
}

/* ---- taking ---------------------------------------------------------------------------------------------- */

/* Keeps the rows taken from this window, the last `count`, before it is filled anew. */
static ph_status carry(struct ph__window *window, size_t count)
{
    for (size_t i = window->next - count; i < window->next; i++)
        PH_TRY(ph__rows_append(&window->carried, &window->rows, window->order[i]));
    return PH_OK;
}

/* Rows without lists are all of one size, and are found without looking up where they start. */
static inline const uint32_t *row_at(const struct ph__window *window, size_t i)
{
    const struct ph_encoder *encoder = window->encoder;
    size_t start = encoder->num_lists == 0 ? i * encoder->num_fixed_words : window->rows.starts[i];
    return window->rows.words + start;
}

ph_status ph__window_take(
    struct ph__window *window, size_t wanted, const uint32_t *const **rows_out, size_t *num_rows_out)
{
    const struct ph__rows *carried = &window->carried;
    size_t num_taken = 0;
    window->carried.num_rows = 0;
    PH_TRY(ph__array_reserve(
        (void **)&window->taken, &window->taken_capacity, wanted, sizeof(const uint32_t *)));
    while (num_taken < wanted) {
        if (window->next == window->num_ordered) {
            PH_TRY(carry(window, num_taken - carried->num_rows));
            PH_TRY(refill(window, wanted - num_taken));
            if (window->num_ordered == 0)
                break;
        }
        window->taken[num_taken++] = row_at(window, window->order[window->next++]);
    }
    for (size_t i = 0; i < carried->num_rows; i++)
        window->taken[i] = carried->words + carried->starts[i];
    *rows_out = window->taken;
    *num_rows_out = num_taken;
    return PH_OK;
}

void ph__window_tell(const struct ph__window *window, struct ph_position *position_out)
{
    struct ph__source_position start = window->start;
    uint64_t random = window->random_start, next = window->next;
    if (window->next == window->num_ordered) { /* the next window begins here */
        tell_source(window, &start);
        random = window->random.position;
        next = 0;
    }
    *position_out = (struct ph_position){
        {start.file, start.row, start.byte, start.num_rows, start.num_bad_rows, random, next, 0}};
}
