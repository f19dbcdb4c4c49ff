#include "data/prepared/part_block.h"

#include <stdlib.h>
#include <string.h>

#include "base/memory/memory.h"

/* ---- rows ---- */

ph_status ph__row_layout_init(struct ph__row_layout *layout, const struct ph_encoder *encoder)
{
    *layout = (struct ph__row_layout){.num_fixed_words = encoder->num_fixed_words};
    layout->limits = calloc(encoder->num_fixed_words + 1, sizeof *layout->limits);
    layout->lists = calloc(encoder->num_sparse + 1, sizeof *layout->lists);
    if (layout->limits == NULL || layout->lists == NULL) {
        ph__row_layout_fini(layout);
        return ph__out_of_memory("the layout of %zu words", encoder->num_fixed_words);
    }
    for (size_t slot = 0; slot < encoder->num_sparse; slot++) {
        const struct ph__column *column = encoder->sparse_columns[slot];
        size_t word = encoder->sparse_word + slot;
        if (column->is_list)
            layout->lists[layout->num_lists++] = (struct ph__row_list){.word = (uint32_t)word,
                .limit = (uint32_t)column->num_rows,
                .is_weighted = column->is_weighted};
        else
            layout->limits[word] = (uint32_t)column->num_rows;
    }
    return PH_OK;
}

void ph__row_layout_fini(struct ph__row_layout *layout)
{
    free(layout->limits);
    free(layout->lists);
    memset(layout, 0, sizeof *layout);
}

/* Counts a block's streams: one for each fixed word, each list's ids, and each weighted list's weights. */
static size_t num_streams_of(const struct ph__row_layout *layout)
{
    size_t num_streams = layout->num_fixed_words + layout->num_lists;
    for (size_t i = 0; i < layout->num_lists; i++)
        num_streams += layout->lists[i].is_weighted;
    return num_streams;
}

#define RUN 64 /* rows decoded at once: their words stay in the first-level cache */

/* ---- encoding ---- */

/* Copies the fixed words column by column: values[column * num_rows + row]. Works in tiles, so that each row
 * is read once. */
static void transpose(const struct ph__rows *rows, size_t num_columns, uint32_t *values)
{
    for (size_t first = 0; first < rows->num_rows; first += RUN) {
        size_t end = first + RUN < rows->num_rows ? first + RUN : rows->num_rows;
        for (size_t column = 0; column < num_columns; column++)
            for (size_t i = first; i < end; i++)
                values[column * rows->num_rows + i] = rows->words[rows->starts[i] + column];
    }
}

/* Copies each row's next `lengths[row]` words, and moves the cursors past them. Returns the number of
 * words. */
static size_t gather(const struct ph__rows *rows, const uint32_t *lengths, size_t *cursors, uint32_t *values)
{
    size_t count = 0;
    for (size_t i = 0; i < rows->num_rows; i++) {
        memcpy(values + count, rows->words + cursors[i], lengths[i] * sizeof *values);
        count += lengths[i];
        cursors[i] += lengths[i];
    }
    return count;
}

static ph_status reserve(struct ph__block_encoder *encoder, const struct ph__rows *rows, size_t num_streams)
{
    size_t num_words = ph__rows_num_words(rows);
    if (rows->num_rows == 0 || rows->num_rows > PH_BLOCK_MAX_ROWS || num_words > PH_BLOCK_MAX_WORDS)
        return ph_fail(
            PH_ERROR_DATA, "a block of %zu rows and %zu words cannot be written", rows->num_rows, num_words);
    size_t num_bytes = num_streams * sizeof(struct ph__stream) + ph__stream_max_bytes(num_words) +
                       2 * PH_STREAM_OVERREAD_BYTES;
    PH_TRY(ph__array_reserve(
        (void **)&encoder->values, &encoder->values_capacity, num_words, sizeof *encoder->values));
    PH_TRY(ph__array_reserve(
        (void **)&encoder->cursors, &encoder->cursors_capacity, rows->num_rows, sizeof *encoder->cursors));
    return ph__array_reserve((void **)&encoder->bytes, &encoder->bytes_capacity, num_bytes, 1);
}

/* Writes stream `number`, whose bytes begin at `end`; returns their end. */
static size_t put_stream(
    struct ph__block_encoder *encoder, size_t number, const uint32_t *values, size_t num_values, size_t end)
{
    struct ph__stream stream;
    size_t num_bytes =
        ph__stream_encode(&encoder->streams, values, num_values, &stream, encoder->bytes + end);
    stream.offset = (uint32_t)end;
    memcpy(encoder->bytes + number * sizeof stream, &stream, sizeof stream);
    return end + num_bytes;
}

ph_status ph__block_encode(struct ph__block_encoder *encoder, const struct ph__rows *rows,
    const unsigned char **bytes_out, size_t *num_bytes_out)
{
    const struct ph__row_layout *layout = encoder->layout;
    size_t num_streams = num_streams_of(layout), num_rows = rows->num_rows;
    PH_TRY(reserve(encoder, rows, num_streams));
    size_t number = 0, end = num_streams * sizeof(struct ph__stream);
    transpose(rows, layout->num_fixed_words, encoder->values);
    for (; number < layout->num_fixed_words; number++)
        end = put_stream(encoder, number, encoder->values + number * num_rows, num_rows, end);
    for (size_t i = 0; i < num_rows; i++)
        encoder->cursors[i] = rows->starts[i] + layout->num_fixed_words;
    uint32_t *list = encoder->values + layout->num_fixed_words * num_rows;
    for (size_t l = 0; l < layout->num_lists; l++)
        for (int part = 0; part <= layout->lists[l].is_weighted; part++) {
            const uint32_t *lengths = encoder->values + layout->lists[l].word * num_rows;
            size_t count = gather(rows, lengths, encoder->cursors, list);
            end = put_stream(encoder, number++, list, count, end);
        }
    size_t padded = (end + PH_STREAM_OVERREAD_BYTES + 7) / 8 * 8;
    memset(encoder->bytes + end, 0, padded - end);
    *bytes_out = encoder->bytes;
    *num_bytes_out = padded;
    return PH_OK;
}

void ph__block_encoder_fini(struct ph__block_encoder *encoder)
{
    free(encoder->values);
    free(encoder->cursors);
    free(encoder->bytes);
    *encoder = (struct ph__block_encoder){.layout = encoder->layout};
}

/* ---- decoding ---- */

/* State of a decoding. */
struct decoding {
    const struct ph__row_layout *layout;
    const struct ph__block *block;
    const struct ph__stream *streams; /* the directory */
    size_t *cursors;                  /* (num_lists) values given out so far */
    uint32_t *words;                  /* words of the rows appended to */
    size_t *starts;                   /* starts of the block's rows in words; starts[0] is set */
    size_t first, count;              /* the run of rows being decoded */
    size_t ends[RUN];                 /* end so far of each row of the run */
};

static ph_status fail(const char *what)
{
    return ph_fail(PH_ERROR_DATA, "%s", what);
}

static ph_status check_stream(const struct decoding *decoding, size_t number, uint64_t num_values)
{
    const struct ph__stream *stream = &decoding->streams[number];
    uint64_t num_bytes = 0;
    if (stream->num_values != num_values || stream->offset % 4 != 0 ||
        !ph__stream_num_bytes(stream, &num_bytes) ||
        num_bytes + stream->offset + PH_STREAM_OVERREAD_BYTES > decoding->block->num_bytes)
        return ph_fail(PH_ERROR_DATA, "stream %zu is not valid", number);
    return PH_OK;
}

/* Checks that every stream lies within the block, and that the streams together have the block's words. */
static ph_status check_directory(const struct decoding *decoding)
{
    const struct ph__row_layout *layout = decoding->layout;
    const struct ph__block *block = decoding->block;
    if (block->num_bytes / sizeof(struct ph__stream) < num_streams_of(layout))
        return fail("the block is too short for its streams");
    uint64_t num_words = (uint64_t)block->num_rows * layout->num_fixed_words;
    size_t number = 0;
    for (; number < layout->num_fixed_words; number++)
        PH_TRY(check_stream(decoding, number, block->num_rows));
    for (size_t l = 0; l < layout->num_lists; l++) {
        uint64_t num_ids = decoding->streams[number].num_values;
        for (int part = 0; part <= layout->lists[l].is_weighted; part++, num_words += num_ids)
            PH_TRY(check_stream(decoding, number++, num_ids));
    }
    return num_words == block->num_words ? PH_OK
                                         : fail("the streams do not have as many values as the block states");
}

static ph_status decode_values(const struct decoding *decoding, size_t number, size_t first, size_t count,
    uint32_t limit, uint32_t *values)
{
    const struct ph__stream *stream = &decoding->streams[number];
    if (!ph__stream_decode(stream, decoding->block->bytes + stream->offset, first, count, values))
        return ph_fail(PH_ERROR_DATA, "a value of stream %zu is not in its dictionary", number);
    uint32_t greatest = 0;
    for (size_t i = 0; i < count; i++)
        greatest = values[i] > greatest ? values[i] : greatest;
    if (limit != 0 && count > 0 && greatest >= limit)
        return ph_fail(PH_ERROR_DATA, "an id of stream %zu is beyond its table", number);
    return PH_OK;
}

/* Sets the starts of the run's rows: a row's size follows from the lengths of its lists. */
static ph_status place_rows(struct decoding *decoding)
{
    const struct ph__row_layout *layout = decoding->layout;
    size_t *starts = decoding->starts + decoding->first;
    uint64_t num_words[RUN];
    uint32_t lengths[RUN];
    for (size_t i = 0; i < decoding->count; i++)
        num_words[i] = layout->num_fixed_words;
    for (size_t l = 0; l < layout->num_lists; l++) {
        const struct ph__row_list *list = &layout->lists[l];
        PH_TRY(decode_values(decoding, list->word, decoding->first, decoding->count, 0, lengths));
        for (size_t i = 0; i < decoding->count; i++)
            num_words[i] += (uint64_t)lengths[i] << list->is_weighted;
    }
    for (size_t i = 0; i < decoding->count; i++) {
        decoding->ends[i] = starts[i] + layout->num_fixed_words;
        starts[i + 1] = starts[i] + (size_t)num_words[i];
    }
    bool is_within = starts[decoding->count] - decoding->starts[0] <= decoding->block->num_words;
    return is_within ? PH_OK : fail("the lists are longer than the block");
}

static ph_status decode_fixed(const struct decoding *decoding)
{
    const struct ph__row_layout *layout = decoding->layout;
    const size_t *starts = decoding->starts + decoding->first;
    uint32_t values[RUN];
    for (size_t word = 0; word < layout->num_fixed_words; word++) {
        PH_TRY(decode_values(decoding, word, decoding->first, decoding->count, layout->limits[word], values));
        for (size_t i = 0; i < decoding->count; i++)
            decoding->words[starts[i] + word] = values[i];
    }
    return PH_OK;
}

/* Decodes the run's ids of a list, or their weights; `cursor` is the run's first value in the stream. */
static ph_status decode_list(
    struct decoding *decoding, const struct ph__row_list *list, size_t number, uint32_t limit, size_t *cursor)
{
    const size_t *starts = decoding->starts + decoding->first;
    for (size_t i = 0; i < decoding->count; i++) {
        uint32_t length = decoding->words[starts[i] + list->word];
        if (length > decoding->streams[number].num_values - *cursor)
            return fail("the lists are longer than their values");
        PH_TRY(decode_values(decoding, number, *cursor, length, limit, decoding->words + decoding->ends[i]));
        decoding->ends[i] += length;
        *cursor += length;
    }
    return PH_OK;
}

static ph_status decode_lists(struct decoding *decoding)
{
    const struct ph__row_layout *layout = decoding->layout;
    size_t number = layout->num_fixed_words;
    for (size_t l = 0; l < layout->num_lists; l++) {
        const struct ph__row_list *list = &layout->lists[l];
        size_t cursor = decoding->cursors[l], weight_cursor = cursor;
        PH_TRY(decode_list(decoding, list, number++, list->limit, &cursor));
        if (list->is_weighted)
            PH_TRY(decode_list(decoding, list, number++, 0, &weight_cursor));
        decoding->cursors[l] = cursor;
    }
    return PH_OK;
}

static ph_status decode_all(struct decoding *decoding)
{
    size_t num_rows = decoding->block->num_rows;
    for (decoding->first = 0; decoding->first < num_rows; decoding->first += RUN) {
        size_t left = num_rows - decoding->first;
        decoding->count = left < RUN ? left : RUN;
        PH_TRY(place_rows(decoding));
        PH_TRY(decode_fixed(decoding));
        PH_TRY(decode_lists(decoding));
    }
    bool is_whole = decoding->starts[num_rows] - decoding->starts[0] == decoding->block->num_words;
    return is_whole ? PH_OK : fail("the lists are shorter than the block");
}

ph_status ph__block_decode(
    struct ph__block_decoder *decoder, const struct ph__block *block, struct ph__rows *rows)
{
    const struct ph__row_layout *layout = decoder->layout;
    struct decoding decoding = {
        .layout = layout, .block = block, .streams = (const struct ph__stream *)(const void *)block->bytes};
    PH_TRY(check_directory(&decoding));
    size_t used = ph__rows_num_words(rows);
    PH_TRY(ph__array_reserve(
        (void **)&rows->words, &rows->words_capacity, used + block->num_words, sizeof *rows->words));
    PH_TRY(ph__array_reserve((void **)&rows->starts, &rows->starts_capacity,
        rows->num_rows + block->num_rows + 1, sizeof *rows->starts));
    PH_TRY(ph__array_reserve(
        (void **)&decoder->cursors, &decoder->cursors_capacity, layout->num_lists, sizeof *decoder->cursors));
    if (layout->num_lists > 0)
        memset(decoder->cursors, 0, layout->num_lists * sizeof *decoder->cursors);
    decoding.cursors = decoder->cursors;
    decoding.words = rows->words;
    decoding.starts = rows->starts + rows->num_rows;
    decoding.starts[0] = used;
    PH_TRY(decode_all(&decoding));
    rows->num_rows += block->num_rows;
    return PH_OK;
}

ph_status ph__block_decode_labels(
    const struct ph__block_decoder *decoder, const struct ph__block *block, uint32_t *labels_out)
{
    const struct decoding decoding = {.layout = decoder->layout,
        .block = block,
        .streams = (const struct ph__stream *)(const void *)block->bytes};
    PH_TRY(check_directory(&decoding));
    return decode_values(&decoding, 0, 0, block->num_rows, decoder->layout->limits[0], labels_out);
}

void ph__block_decoder_fini(struct ph__block_decoder *decoder)
{
    free(decoder->cursors);
    *decoder = (struct ph__block_decoder){.layout = decoder->layout};
}
