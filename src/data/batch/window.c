#include "data/batch/window.h"

#include <stdlib.h>
#include <string.h>

#include "base/memory/memory.h"
#include "base/sizes.h"
#include "data/source/dataset.h"
#include "data/source/input_file.h"

/* Indices of a position's words. */
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

/* ---- filling ---- */

/* Adds the rows from `first` on that take part to the window's order; row `first` is row `number` of the
 * data. */
static ph_status order_rows(struct ph__window *window, size_t first, uint64_t number)
{
    const struct ph__rows *rows = &window->rows;
    PH_TRY(ph__array_reserve(
        (void **)&window->order, &window->order_capacity, rows->num_rows, sizeof *window->order));
    for (size_t i = first; i < rows->num_rows; i++)
        if (ph__negatives_keep(&window->negatives, rows->words[rows->starts[i]], number + i - first))
            window->order[window->num_ordered++] = (uint32_t)i;
    return PH_OK;
}

/* Permutes the order. A lazy window has a key of its own: ranks that skip windows cannot all draw from one
 * sequence. */
static void permute(struct ph__window *window)
{
    if (!window->is_shuffled)
        return;
    if (window->is_lazy) {
        window->random.key.stream = ph__hash_name("data.shuffle.lanes") + window->start.file;
        window->random.position = 0;
    }
    ph__rng_shuffle(&window->random, window->order, window->num_ordered);
}

/* Returns how many more rows the window takes at once; 0: it is full. Rows of one size are counted ahead. A
 * row that may not take part comes alone: the next one overwrites it. */
static size_t num_wanted(const struct ph__window *window, size_t wanted)
{
    const struct ph__rows *rows = &window->rows;
    const size_t row_bytes = (size_t)ph__rows_bytes(1, window->encoder->num_fixed_words);
    size_t num_left = window->is_shuffled ? UINT32_MAX - rows->num_rows : wanted - rows->num_rows;
    if (window->is_shuffled) {
        const uint64_t num_bytes = ph__rows_bytes(rows->num_rows, ph__rows_num_words(rows));
        const uint64_t bytes_left = num_bytes < window->max_bytes ? window->max_bytes - num_bytes : 0;
        num_left = ph__min(num_left, (size_t)ph__divide_up((size_t)bytes_left, row_bytes));
    }
    const bool is_alone = window->encoder->num_lists > 0 || !ph__negatives_are_all_kept(&window->negatives);
    return is_alone ? ph__min(num_left, 1) : num_left;
}

/* Reserves a whole shuffled window at once, in large pages: its rows are read at random. Pages that no row
 * reaches take no memory; where the number of rows is unknown, a larger window than usual grows. */
static ph_status reserve_window(struct ph__window *window)
{
    if (!window->is_shuffled || window->rows.words != NULL)
        return PH_OK;
    const uint64_t num_most = window->is_prepared ? ph__prepared_set_manifest(window->prepared.set)->num_words
                                                  : PH_DEFAULT_SHUFFLE_BYTES / sizeof(uint32_t);
    const uint64_t num_words = ph__min(window->max_bytes / sizeof(uint32_t), num_most);
    PH_TRY(ph__array_reserve((void **)&window->rows.words, &window->rows.words_capacity, (size_t)num_words,
        sizeof *window->rows.words));
    ph__memory_advise_large(window->rows.words, (size_t)num_words * sizeof *window->rows.words);
    return PH_OK;
}

/* Reads rows until the window is full. */
static ph_status read_text(struct ph__window *window, size_t wanted)
{
    struct ph__rows *rows = &window->rows;
    PH_TRY(reserve_window(window));
    rows->num_rows = 0;
    for (size_t num_left; !window->is_at_end && (num_left = num_wanted(window, wanted)) > 0;) {
        const size_t first = rows->num_rows;
        const uint64_t number = window->source.num_rows;
        PH_TRY(ph__source_next_run(&window->source, rows, num_left, &window->is_at_end));
        PH_TRY(order_rows(window, first, number));
        rows->num_rows = window->num_ordered;
    }
    window->is_read = true;
    permute(window);
    return PH_OK;
}

static ph_status read_blocks(struct ph__window *window)
{
    struct ph__rows *rows = &window->rows;
    PH_TRY(reserve_window(window));
    rows->num_rows = window->num_ordered = 0;
    for (size_t place = (size_t)window->start.file; place < window->prepared.next; place++) {
        size_t first = rows->num_rows;
        uint64_t number;
        PH_TRY(ph__prepared_source_read(&window->prepared, place, rows, &number));
        PH_TRY(order_rows(window, first, number));
    }
    window->is_read = true;
    permute(window);
    return PH_OK;
}

static ph_status choose_blocks(struct ph__window *window)
{
    size_t first = window->prepared.next;
    ph__prepared_source_choose(&window->prepared);
    window->is_at_end = first == window->prepared.next;
    window->is_read = false;
    if (!window->is_lazy)
        return read_blocks(window);
    window->num_ordered =
        (size_t)ph__prepared_source_num_kept(&window->prepared, first, window->prepared.next);
    return PH_OK;
}

/* Reads the rows of a lazy window; fails when there are not as many as the blocks promised. */
static ph_status read_chosen(struct ph__window *window)
{
    size_t num_chosen = window->num_ordered;
    PH_TRY(read_blocks(window));
    if (window->num_ordered != num_chosen)
        return ph_fail(PH_ERROR_DATA, "%s: has changed while it was read", window->path);
    return PH_OK;
}

/* Goes on to the next window that has rows; no rows: the end. In the order of the data a window is at most
 * `wanted` rows, or one block. */
static ph_status refill(struct ph__window *window, size_t wanted)
{
    window->num_ordered = 0;
    window->next = 0;
    while (window->num_ordered == 0 && !window->is_at_end) {
        tell_source(window, &window->start);
        window->random_start = window->random.position;
        PH_TRY(window->is_prepared ? choose_blocks(window) : read_text(window, wanted));
    }
    return PH_OK;
}

/* ---- opening ---- */

/* Goes to the window that was being given out at `position`, and to the row there. */
static ph_status restore(struct ph__window *window, const struct ph_position *position)
{
    window->random.position = position->words[RANDOM_WORD];
    if (window->is_prepared)
        PH_TRY(ph__prepared_source_seek(&window->prepared, position->words[FILE_WORD]));
    if (position->words[NEXT_WORD] == 0)
        return PH_OK;
    PH_TRY(refill(window, 1));
    if (position->words[NEXT_WORD] > window->num_ordered)
        return ph_fail(PH_ERROR_DATA, "%s: has fewer rows than when reading stopped", window->path);
    window->next = (size_t)position->words[NEXT_WORD];
    return PH_OK;
}

/* Returns true when rows of text may be skipped unseen: no row is left out, the first row does not decide
 * what the others are, and going back, at the end, does not mean to read a stream anew. */
static bool can_skip_text(const struct ph__window *window, const struct ph_dataset *dataset,
    const struct ph_batches_options *options)
{
    const bool is_stream = dataset != NULL && dataset->streams != NULL;
    return !is_stream && !options->reading.is_shuffled && options->reading.max_bad_rows == 0 &&
           !options->needs_no_labels && ph__negatives_are_all_kept(&window->negatives);
}

static ph_status open_prepared(struct ph__window *window, const struct ph_batches_options *options)
{
    window->is_prepared = true;
    window->is_lazy = window->can_skip = options->world_size > 1 && !window->is_shuffled;
    PH_TRY(ph__prepared_source_open(&window->prepared, window->encoder, window->path,
        window->is_shuffled ? window->max_bytes : 0, options->seed, options->epoch));
    return window->is_lazy ? ph__prepared_source_count(&window->prepared, &window->negatives) : PH_OK;
}

static ph_status open_rows(struct ph__window *window, const struct ph_dataset *dataset,
    struct ph__fingerprint *fingerprint, const struct ph_batches_options *options)
{
    if (dataset == NULL && ph__input_is_prepared(window->path))
        return open_prepared(window, options);
    struct ph__source_position start = {0};
    if (options->start != NULL)
        start = position_start(options->start);
    struct ph__source_options source_options = {.dataset = dataset,
        .fingerprint = fingerprint,
        .needs_no_labels = options->needs_no_labels,
        .max_bad_rows = options->reading.max_bad_rows,
        .stop_signal = options->stop_signal,
        .start = &start};
    window->can_skip = options->world_size > 1 && can_skip_text(window, dataset, options);
    return ph__source_open(&window->source, window->encoder, window->path, &source_options);
}

static ph_status init(struct ph__window *window, const struct ph_encoder *encoder, const char *path,
    const struct ph_batches_options *options)
{
    *window = (struct ph__window){
        .encoder = encoder,
        .path = strdup(path),
        .is_shuffled = options->reading.is_shuffled,
        .max_bytes =
            options->reading.shuffle_bytes == 0 ? PH_DEFAULT_SHUFFLE_BYTES : options->reading.shuffle_bytes,
        .random.key = {options->seed, options->epoch, ph__hash_name("data.shuffle")},
    };
    if (window->path == NULL)
        return ph__out_of_memory("cannot read %s", path);
    return ph__negatives_init(
        &window->negatives, path, options->seed, options->epoch, options->reading.negative_rate);
}

ph_status ph__window_open(struct ph__window *window, const struct ph_encoder *encoder, const char *path,
    const struct ph_dataset *dataset, struct ph__fingerprint *fingerprint,
    const struct ph_batches_options *options)
{
    PH_TRY(init(window, encoder, path, options));
    PH_TRY(open_rows(window, dataset, fingerprint, options));
    return options->start != NULL ? restore(window, options->start) : PH_OK;
}

ph_status ph__window_open_blocks(struct ph__window *window, const struct ph_encoder *encoder,
    const char *path, const struct ph__prepared_source *blocks, const struct ph_batches_options *options)
{
    PH_TRY(init(window, encoder, path, options));
    window->is_prepared = window->is_lazy = window->can_skip = true;
    window->prepared = *blocks;
    window->max_bytes = blocks->window_bytes;
    return PH_OK;
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

/* ---- taking ---- */

/* Copies the last `count` rows taken from this window, before the window is refilled. */
static ph_status carry(struct ph__window *window, size_t count)
{
    for (size_t i = window->next - count; i < window->next; i++)
        PH_TRY(ph__rows_append(&window->carried, &window->rows, window->order[i]));
    return PH_OK;
}

/* Returns row i of the window. Rows without lists have one size: their start needs no look-up. */
static inline const uint32_t *row_at(const struct ph__window *window, size_t i)
{
    const struct ph_encoder *encoder = window->encoder;
    size_t start = encoder->num_lists == 0 ? i * encoder->num_fixed_words : window->rows.starts[i];
    return window->rows.words + start;
}

/* Makes room for the rows that this window can add, `wanted` in all. */
static ph_status reserve_taken(struct ph__window *window, size_t num_taken, size_t wanted)
{
    const size_t num_rows = ph__min(wanted, num_taken + window->num_ordered - window->next);
    return ph__array_reserve(
        (void **)&window->taken, &window->taken_capacity, num_rows, sizeof(const uint32_t *));
}

ph_status ph__window_take(
    struct ph__window *window, size_t wanted, const uint32_t *const **rows_out, size_t *num_rows_out)
{
    const struct ph__rows *carried = &window->carried;
    size_t num_taken = 0;
    window->carried.num_rows = 0;
    PH_TRY(reserve_taken(window, num_taken, wanted));
    while (num_taken < wanted) {
        if (window->next == window->num_ordered) {
            PH_TRY(carry(window, num_taken - carried->num_rows));
            PH_TRY(refill(window, wanted - num_taken));
            if (window->num_ordered == 0)
                break;
            PH_TRY(reserve_taken(window, num_taken, wanted));
        }
        if (!window->is_read)
            PH_TRY(read_chosen(window));
        window->taken[num_taken++] = row_at(window, window->order[window->next++]);
    }
    for (size_t i = 0; i < carried->num_rows; i++)
        window->taken[i] = carried->words + carried->starts[i];
    *rows_out = window->taken;
    *num_rows_out = num_taken;
    return PH_OK;
}

ph_status ph__window_skip(struct ph__window *window, uint64_t count, uint64_t *num_skipped_out)
{
    uint64_t num_skipped = 0;
    if (!window->is_prepared)
        return ph__source_skip(&window->source, count, num_skipped_out); /* nothing was read ahead */
    while (num_skipped < count) {
        if (window->next == window->num_ordered)
            PH_TRY(refill(window, 0));
        if (window->num_ordered == 0)
            break;
        uint64_t left = window->num_ordered - window->next;
        uint64_t step = count - num_skipped < left ? count - num_skipped : left;
        window->next += (size_t)step;
        num_skipped += step;
    }
    *num_skipped_out = num_skipped;
    return PH_OK;
}

/* ---- positions ---- */

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

ph_status ph__window_return(struct ph__window *window, const struct ph_position *position)
{
    const struct ph__source_position start = position_start(position);
    window->num_ordered = window->next = 0;
    window->is_at_end = false;
    if (!window->is_prepared)
        return ph__source_return(&window->source, &start);
    return restore(window, position);
}
