/* Rows of all kinds of columns, as slices of the same buffers and as CSV. */
#ifndef PH_TEST_ARROW_ROWS_FIXTURE_H
#define PH_TEST_ARROW_ROWS_FIXTURE_H

#include "data/encode/encoder.h"
#include "unit/data/arrow_fixture.h"
#include "unit/data/pass_fixture.h"

#define NUM_ROWS 900
#define BATCH_ROWS 300

/* The columns' buffers, all rows in one; batches are slices of them. */
struct rows {
    unsigned char click[NUM_ROWS / 8 + 1], price_validity[NUM_ROWS / 8 + 1], tag_validity[NUM_ROWS / 8 + 1];
    double price[NUM_ROWS];
    int64_t user[NUM_ROWS];
    int32_t city_offsets[NUM_ROWS + 1], tag_offsets[NUM_ROWS + 1], tags[3 * NUM_ROWS];
    char city[8 * NUM_ROWS];
    int8_t kind[NUM_ROWS];
};

static const char *const kinds[] = {"news", "video", "ad"};

static inline void set_bit(unsigned char *bits, int row, bool is_set)
{
    bits[row / 8] |= (unsigned char)(is_set << row % 8);
}

/* Fills the buffers and writes the same rows as CSV. */
static inline const char *write_rows(struct rows *rows)
{
    char *text = malloc(NUM_ROWS * 100);
    size_t size = (size_t)sprintf(text, "click,price,user,city,kind,tags\n");
    uint32_t random = (uint32_t)test_seed();
    memset(rows, 0, sizeof *rows);
    for (int i = 0; i < NUM_ROWS; i++) {
        random = random * 1664525u + 1013904223u;
        bool has_price = (random >> 13 & 7) != 0, has_tags = (random >> 5 & 7) != 0;
        set_bit(rows->click, i, random >> 31 != 0);
        set_bit(rows->price_validity, i, has_price);
        set_bit(rows->tag_validity, i, has_tags);
        rows->price[i] = (double)(random >> 16 & 0xfff) / 16;
        rows->user[i] = (int64_t)(random >> 7 & 0xff) - 40;
        rows->kind[i] = (int8_t)(random >> 20 & 1);
        size += (size_t)sprintf(text + size, "%d,", (int)(random >> 31));
        size += has_price ? (size_t)sprintf(text + size, "%.17g", rows->price[i]) : 0;
        size += (size_t)sprintf(text + size, ",%lld,", (long long)rows->user[i]);
        int length = random >> 9 & 1 ? sprintf(rows->city + rows->city_offsets[i], "c%u", random >> 25) : 0;
        size += (size_t)sprintf(
            text + size, "%.*s,%s,", length, rows->city + rows->city_offsets[i], kinds[rows->kind[i]]);
        rows->city_offsets[i + 1] = rows->city_offsets[i] + length;
        rows->tag_offsets[i + 1] = rows->tag_offsets[i];
        for (int k = 0; has_tags && k < (int)(random >> 3 & 3); k++) {
            int32_t tag = (int32_t)(random >> (4 * k + 8) & 0x3f);
            rows->tags[rows->tag_offsets[i + 1]++] = tag;
            size += (size_t)sprintf(text + size, "%s%d", k > 0 ? "|" : "", tag);
        }
        text[size++] = '\n';
    }
    text[size] = '\0';
    const char *path = fixture_file("rows.csv", text);
    free(text);
    return path;
}

/* Rows [first, first + count): half of the place is the batch's offset, half its columns'. */
static inline struct arrow_pair slice(const struct rows *rows, int64_t first, int64_t count)
{
    static const int32_t kind_offsets[] = {0, 4, 9, 11};
    int64_t before = first / 2, offset = first - before, length = count + before;
    struct arrow_pair batch = arrow_batch(count, before);
    arrow_add_child(&batch, arrow_with_dictionary(ARROW_COLUMN("kind", "c", length, offset, NULL, rows->kind),
                                ARROW_COLUMN("", "u", 3, 0, NULL, kind_offsets, "newsvideoad")));
    arrow_add_child(&batch, ARROW_COLUMN("click", "b", length, offset, NULL, rows->click));
    arrow_add_child(&batch, ARROW_COLUMN("price", "g", length, offset, rows->price_validity, rows->price));
    arrow_add_child(&batch, ARROW_COLUMN("span", "tDs", length, offset, NULL, NULL));
    arrow_add_child(&batch, ARROW_COLUMN("user", "l", length, offset, NULL, rows->user));
    arrow_add_child(&batch, ARROW_COLUMN("city", "u", length, offset, NULL, rows->city_offsets, rows->city));
    arrow_add_child(&batch,
        arrow_with_child(ARROW_COLUMN("tags", "+l", length, offset, rows->tag_validity, rows->tag_offsets),
            ARROW_COLUMN("item", "i", rows->tag_offsets[NUM_ROWS], 0, NULL, rows->tags)));
    return batch;
}

/* All rows in memory, in batches of BATCH_ROWS. */
static inline struct ph_dataset *rows_dataset(const struct rows *rows)
{
    struct ph_dataset *dataset = NULL;
    assert_ok(ph_dataset_create(&dataset));
    for (int64_t first = 0; first < NUM_ROWS; first += BATCH_ROWS) {
        struct arrow_pair batch = slice(rows, first, BATCH_ROWS);
        assert_ok(ph_dataset_append_arrow(dataset, &batch.array, &batch.schema));
    }
    return dataset;
}

/* The fields in the order of the file, so that both ways name the features alike. */
static inline void init_fields(struct fixture *fixture, const char *train)
{
    fixture_init(fixture, train);
    fixture->settings.min_count = 2;
    fixture_field(fixture, "click", PH_FIELD_LABEL);
    struct ph__field_settings *price = fixture_field(fixture, "price", PH_FIELD_DENSE);
    price->transform = PH_TRANSFORM_STANDARDISE;
    price->has_indicator = true;
    fixture_field(fixture, "user", PH_FIELD_ID)->is_group = true;
    fixture_field(fixture, "tags", PH_FIELD_ID)->is_list = true;
    struct ph__field_settings *bucket = fixture_field(fixture, "price_bucket", PH_FIELD_ID);
    bucket->from = "price";
    bucket->encoding = PH_ENCODING_LOG_BUCKET;
    fixture_field(fixture, "span", PH_FIELD_IGNORE);
    fixture_field(fixture, "*", PH_FIELD_ID);
}

/* The column of that name must be the same in both: vocabulary, statistics and all. */
static inline void assert_same_column(const struct ph_encoder *actual, const struct ph__column *wanted)
{
    const struct ph__column *column = fixture_column(actual, wanted->name);
    assert_non_null(column);
    assert_int_equal(column->kind, wanted->kind);
    assert_int_equal(column->is_list, wanted->is_list);
    assert_int_equal(column->num_rows, wanted->num_rows);
    assert_memory_equal(&column->statistics, &wanted->statistics, sizeof wanted->statistics);
    assert_int_equal(column->vocabulary.num_words, wanted->vocabulary.num_words);
    for (size_t i = 0; i < wanted->vocabulary.num_words; i++) {
        size_t length, wanted_length;
        const char *word = ph__vocabulary_word(&column->vocabulary, i, &length);
        const char *wanted_word = ph__vocabulary_word(&wanted->vocabulary, i, &wanted_length);
        assert_int_equal(length, wanted_length);
        assert_memory_equal(word, wanted_word, length);
    }
}

#endif
