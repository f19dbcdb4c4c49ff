/* What the data room's tests share: settings without a config file, and encoders from text. */
#ifndef PH_TEST_DATA_FIXTURE_H
#define PH_TEST_DATA_FIXTURE_H

#include <string.h>

#include "data/data_options.h"
#include "data/encode/encoder.h"
#include "phloem/data.h"
#include "support/test_support.h"

#define MAX_FIELDS 16
#define MAX_FILES 256

struct fixture {
    struct ph__field_settings fields[MAX_FIELDS];
    struct ph_data_settings settings; /* the defaults of the option table */
};

/* test_write_file whose paths stay reachable until the program ends, and need no free. */
static inline const char *fixture_file(const char *name, const char *text)
{
    static const char *paths[MAX_FILES];
    static size_t num_paths;
    assert_true(num_paths < MAX_FILES);
    return paths[num_paths++] = test_write_file(name, text);
}

/* Fixture for a comma-separated file with a header. */
static inline void fixture_init(struct fixture *fixture, const char *train)
{
    memset(fixture, 0, sizeof *fixture);
    fixture->settings = (struct ph_data_settings){
        .paths.train = train,
        .format = PH_DATA_CSV,
        .separator = "",
        .list_separator = "|",
        .has_header = true,
        .encoding = PH_ENCODING_VOCABULARY,
        .min_count = 1,
        .reading.negative_rate = 1,
        .reading.shuffle_lanes = 1,
        .fields.items = fixture->fields,
    };
}

/* The next field, with the defaults of the option table; borrowed. */
static inline struct ph__field_settings *fixture_field(
    struct fixture *fixture, const char *name, enum ph__field_kind kind)
{
    assert_true(fixture->settings.fields.count < MAX_FIELDS);
    struct ph__field_settings *field = &fixture->fields[fixture->settings.fields.count++];
    *field = (struct ph__field_settings){
        .name = name, .kind = kind, .encoding = PH_ENCODING_INHERIT, .hash_seed = -1};
    return field;
}

/* A label called label; every other column is an id. */
static inline void fixture_label_and_ids(struct fixture *fixture)
{
    fixture_field(fixture, "label", PH_FIELD_LABEL);
    fixture_field(fixture, "*", PH_FIELD_ID);
}

static inline struct ph_encoder *fixture_encoder(struct fixture *fixture)
{
    struct ph_encoder *encoder = NULL;
    assert_ok(ph_encoder_create(&fixture->settings, &encoder));
    return encoder;
}

/* The column of that name; NULL: there is none. */
static inline const struct ph__column *fixture_column(const struct ph_encoder *encoder, const char *name)
{
    for (size_t i = 0; i < encoder->num_columns; i++)
        if (strcmp(encoder->columns[i].name, name) == 0)
            return &encoder->columns[i];
    return NULL;
}

static inline struct ph_batches *fixture_open(
    const struct ph_encoder *encoder, const char *path, const struct ph_batches_options *options)
{
    struct ph_batches *batches = NULL;
    assert_ok(ph_batches_open(encoder, path, options, &batches));
    return batches;
}

static inline const struct ph_batch *fixture_next(struct ph_batches *batches)
{
    const struct ph_batch *batch = NULL;
    assert_ok(ph_batches_next(batches, &batch));
    return batch;
}

#endif
