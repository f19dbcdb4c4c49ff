/* The rows of run_folder.h as Arrow batches. */
#ifndef PH_TEST_RUN_BATCHES_H
#define PH_TEST_RUN_BATCHES_H

#include "unit/data/arrow_fixture.h"
#include "unit/serve/run_folder.h"

/* The columns' buffers, all rows in one; batches are slices of them. */
struct run_columns {
    int64_t rows[NUM_ROWS], clicks[NUM_ROWS], seen[4 * NUM_ROWS];
    unsigned char clicks_validity[NUM_ROWS / 8 + 1];
    double price[NUM_ROWS];
    char user[8 * NUM_ROWS], topics[64 * NUM_ROWS];
    int32_t user_ends[NUM_ROWS + 1], topics_ends[NUM_ROWS + 1], topic_ends[4 * NUM_ROWS + 1];
    int32_t seen_ends[NUM_ROWS + 1], city[NUM_ROWS];
    int8_t label[NUM_ROWS];
    uint8_t shop[NUM_ROWS];
};

/* As write_cells has them. */
static inline void run_columns_fill(struct run_columns *columns)
{
    int32_t num_topics = 0, num_seen = 0;
    memset(columns, 0, sizeof *columns);
    for (int row = 0; row < NUM_ROWS; row++) {
        columns->rows[row] = row;
        columns->label[row] = row % 3 == 0;
        columns->clicks[row] = row * 13 % 1000;
        columns->clicks_validity[row / 8] |= (unsigned char)((row % 7 != 3) << row % 8);
        char price[32];
        snprintf(price, sizeof price, "%.3f", (double)row / 7 - 11);
        columns->price[row] = strtod(price, NULL);
        columns->user_ends[row + 1] =
            columns->user_ends[row] + sprintf(columns->user + columns->user_ends[row], "u%d", row * 5 % 23);
        columns->city[row] = row * 11 % 101 - 50;
        columns->shop[row] = (uint8_t)(row * 7 % 50);
        for (int i = 0; i < row % 5; i++, num_topics++)
            columns->topic_ends[num_topics + 1] =
                columns->topic_ends[num_topics] +
                sprintf(columns->topics + columns->topic_ends[num_topics], "t%d", (row * 3 + i) % 17);
        for (int i = 0; i < row % 4; i++)
            columns->seen[num_seen++] = (row * 5 + i * 7) % 30;
        columns->topics_ends[row + 1] = num_topics;
        columns->seen_ends[row + 1] = num_seen;
    }
}

/* Rows [first, first + count), without the column that is ignored. */
static inline struct arrow_pair run_batch(const struct run_columns *columns, int64_t first, int64_t count)
{
    const int64_t n = count, before = first / 2, offset = first - before;
    struct arrow_pair batch = arrow_batch(count, before);
    arrow_add_child(
        &batch, arrow_with_child(ARROW_COLUMN("seen", "+l", n + before, offset, NULL, columns->seen_ends),
                    ARROW_COLUMN("item", "l", columns->seen_ends[NUM_ROWS], 0, NULL, columns->seen)));
    arrow_add_child(
        &batch, arrow_with_child(ARROW_COLUMN("topics", "+l", n + before, offset, NULL, columns->topics_ends),
                    ARROW_COLUMN("item", "u", columns->topics_ends[NUM_ROWS], 0, NULL, columns->topic_ends,
                        columns->topics)));
    arrow_add_child(&batch, ARROW_COLUMN("label", "c", n + before, offset, NULL, columns->label));
    arrow_add_child(&batch, ARROW_COLUMN("row", "l", n + before, offset, NULL, columns->rows));
    arrow_add_child(
        &batch, ARROW_COLUMN("clicks", "l", n + before, offset, columns->clicks_validity, columns->clicks));
    arrow_add_child(&batch, ARROW_COLUMN("price", "g", n + before, offset, NULL, columns->price));
    arrow_add_child(
        &batch, ARROW_COLUMN("user", "u", n + before, offset, NULL, columns->user_ends, columns->user));
    arrow_add_child(&batch, ARROW_COLUMN("city", "i", n + before, offset, NULL, columns->city));
    arrow_add_child(&batch, ARROW_COLUMN("shop", "C", n + before, offset, NULL, columns->shop));
    return batch;
}

#endif
