/* The rows of run_folder.h as tensors of requests: lines, columns of text, and columns of numbers and lists.
 */
#ifndef PH_TEST_RUN_TENSORS_H
#define PH_TEST_RUN_TENSORS_H

#include "unit/serve/run_folder.h"

#include <math.h>
#include <string.h>

#include "serve/session.h"
#include "serve/wire/tensor_rows.h"

enum { RUN_NUM_COLUMNS = 7, RUN_NUM_TYPED = 9 };

struct run_tensors {
    char lines[NUM_ROWS][200], labelled[NUM_ROWS][204], cut[NUM_ROWS][200];
    struct ph__bytes line_texts[NUM_ROWS], labelled_texts[NUM_ROWS];
    struct ph__bytes texts[RUN_NUM_COLUMNS][NUM_ROWS]; /* a cell a row */
    struct ph_cell cells[NUM_ROWS * RUN_NUM_COLUMNS];  /* the same */
    double clicks[NUM_ROWS], price[NUM_ROWS];
    int32_t city[NUM_ROWS], topics_offsets[NUM_ROWS + 1];
    uint8_t shop[NUM_ROWS];
    struct ph__bytes topics[4 * NUM_ROWS];
    int64_t seen[4 * NUM_ROWS], seen_offsets[NUM_ROWS + 1];
};

/* Cuts a line into the texts of its columns. The first cell, the group, is no column. */
static inline void run_tensors_cut(struct run_tensors *run, unsigned row)
{
    char *at = strcpy(run->cut[row], run->lines[row]);
    at = strchr(at, ',') + 1;
    for (size_t c = 0; c < RUN_NUM_COLUMNS; c++) {
        char *end = strchr(at, ',');
        const size_t quote = *at == '"';
        const struct ph__bytes text = {at + quote, (size_t)(end - at) - 2 * quote};
        run->texts[c][row] = text;
        run->cells[row * RUN_NUM_COLUMNS + c] =
            (struct ph_cell){.kind = PH_CELL_TEXT, .text = text.bytes, .length = text.size};
        at = end + 1;
    }
}

static inline void run_tensors_fill_row(struct run_tensors *run, unsigned row)
{
    const struct ph__bytes topics = run->texts[5][row];
    const char *item = topics.bytes;
    int32_t num_topics = run->topics_offsets[row];
    int64_t num_seen = run->seen_offsets[row];
    run->clicks[row] = row % 7 != 3 ? (double)(row * 13 % 1000) : (double)NAN;
    run->price[row] = strtod(run->texts[1][row].bytes, NULL);
    run->city[row] = (int32_t)(row * 11 % 101) - 50;
    run->shop[row] = (uint8_t)(row * 7 % 50);
    for (unsigned i = 0; i < row % 5; i++) {
        const size_t size = strcspn(item, "|,");
        run->topics[num_topics++] = (struct ph__bytes){item, size};
        item += size + 1;
    }
    for (unsigned i = 0; i < row % 4; i++)
        run->seen[num_seen++] = (row * 5 + i * 7) % 30;
    run->topics_offsets[row + 1] = num_topics;
    run->seen_offsets[row + 1] = num_seen;
}

static inline void run_tensors_fill(struct run_tensors *run)
{
    memset(run, 0, sizeof *run);
    for (unsigned row = 0; row < NUM_ROWS; row++) {
        write_cells(run->lines[row], row);
        snprintf(run->labelled[row], sizeof run->labelled[row], "%d,%s", row % 3 == 0, run->lines[row]);
        run->line_texts[row] = ph__bytes_of(run->lines[row]);
        run->labelled_texts[row] = ph__bytes_of(run->labelled[row]);
        run_tensors_cut(run, row);
        run_tensors_fill_row(run, row);
    }
}

/* Makes a tensor of shape [count]. */
static inline struct ph__tensor run_tensor(
    const char *name, enum ph__tensor_type type, const void *values, size_t count)
{
    return (struct ph__tensor){.name = ph__bytes_of(name),
        .type = type,
        .num_dims = 1,
        .dims = {(int64_t)count},
        .count = count,
        .held = type,
        .values = values};
}

/* Makes the columns of rows [first, first + count), each a text a row. */
static inline void run_text_tensors(
    const struct run_tensors *run, size_t first, size_t count, struct ph__tensor tensors[RUN_NUM_COLUMNS])
{
    static const char *const names[] = {"clicks", "price", "user", "city", "shop", "topics", "seen"};
    for (size_t c = 0; c < RUN_NUM_COLUMNS; c++)
        tensors[c] = run_tensor(names[c], PH_TENSOR_BYTES, run->texts[c] + first, count);
}

/* Makes the columns of the first rows as numbers and lists. */
static inline void run_typed_tensors(
    const struct run_tensors *run, size_t count, struct ph__tensor tensors[RUN_NUM_TYPED])
{
    const size_t num_topics = (size_t)run->topics_offsets[count], num_seen = (size_t)run->seen_offsets[count];
    tensors[0] = run_tensor("seen__offsets", PH_TENSOR_INT64, run->seen_offsets, count + 1);
    tensors[1] = run_tensor("clicks", PH_TENSOR_FP64, run->clicks, count);
    tensors[2] = run_tensor("price", PH_TENSOR_FP64, run->price, count);
    tensors[3] = run_tensor("user", PH_TENSOR_BYTES, run->texts[2], count);
    tensors[4] = run_tensor("city", PH_TENSOR_INT32, run->city, count);
    tensors[5] = run_tensor("shop", PH_TENSOR_UINT8, run->shop, count);
    tensors[6] = run_tensor("topics__values", PH_TENSOR_BYTES, run->topics, num_topics);
    tensors[7] = run_tensor("topics__offsets", PH_TENSOR_INT32, run->topics_offsets, count + 1);
    tensors[8] = run_tensor("seen__values", PH_TENSOR_INT64, run->seen, num_seen);
}

#endif
