/* An Arrow producer made for tests: it counts what is alive, and notices what is released twice. The columns'
 * buffers are the test's, which must outlive the arrays. */
#ifndef PH_TEST_ARROW_FIXTURE_H
#define PH_TEST_ARROW_FIXTURE_H

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "phloem/data.h"
#include "support/test_support.h"

struct arrow_counts {
    _Atomic int num_arrays, num_schemas; /* alive, children included */
    _Atomic int num_streams;             /* alive */
};

static inline struct arrow_counts *arrow_counts(void)
{
    static struct arrow_counts counts;
    return &counts;
}

static inline void arrow_release_schema(struct ArrowSchema *schema)
{
    assert_non_null(schema->release);
    for (int64_t i = 0; i < schema->n_children; i++) {
        if (schema->children[i]->release != NULL)
            schema->children[i]->release(schema->children[i]);
        free(schema->children[i]);
    }
    if (schema->dictionary != NULL && schema->dictionary->release != NULL)
        schema->dictionary->release(schema->dictionary);
    free(schema->dictionary);
    free(schema->children);
    schema->release = NULL;
    arrow_counts()->num_schemas--;
}

static inline void arrow_release_array(struct ArrowArray *array)
{
    assert_non_null(array->release);
    for (int64_t i = 0; i < array->n_children; i++) {
        if (array->children[i]->release != NULL)
            array->children[i]->release(array->children[i]);
        free(array->children[i]);
    }
    if (array->dictionary != NULL && array->dictionary->release != NULL)
        array->dictionary->release(array->dictionary);
    free(array->dictionary);
    free(array->children);
    free(array->buffers);
    array->release = NULL;
    arrow_counts()->num_arrays--;
}

/* An array with its schema. */
struct arrow_pair {
    struct ArrowArray array;
    struct ArrowSchema schema;
};

/* buffers: the validity bitmap (NULL: no nulls) and what the format wants behind it. */
static inline struct arrow_pair arrow_make(const char *name, const char *format, int64_t length,
    int64_t offset, int64_t num_buffers, const void *const *buffers)
{
    struct arrow_pair pair = {
        .array = {.length = length,
            .offset = offset,
            .null_count = num_buffers > 0 && buffers[0] != NULL ? -1 : 0,
            .n_buffers = num_buffers,
            .release = arrow_release_array},
        .schema = {.format = format,
            .name = name,
            .flags = ARROW_FLAG_NULLABLE,
            .release = arrow_release_schema},
    };
    pair.array.buffers = malloc((size_t)(num_buffers + 1) * sizeof(const void *));
    for (int64_t i = 0; i < num_buffers; i++)
        pair.array.buffers[i] = buffers[i];
    arrow_counts()->num_arrays++;
    arrow_counts()->num_schemas++;
    return pair;
}

#define ARROW_COLUMN(name, format, length, offset, ...)                          \
    arrow_make((name), (format), (length), (offset),                             \
        (int64_t)(sizeof((const void *[]){__VA_ARGS__}) / sizeof(const void *)), \
        (const void *const[]){__VA_ARGS__})

/* Makes the child one more of the parent's. */
static inline void arrow_add_child(struct arrow_pair *parent, struct arrow_pair child)
{
    int64_t count = parent->array.n_children;
    parent->array.children =
        realloc(parent->array.children, (size_t)(count + 1) * sizeof(struct ArrowArray *));
    parent->schema.children =
        realloc(parent->schema.children, (size_t)(count + 1) * sizeof(struct ArrowSchema *));
    parent->array.children[count] = malloc(sizeof child.array);
    parent->schema.children[count] = malloc(sizeof child.schema);
    *parent->array.children[count] = child.array;
    *parent->schema.children[count] = child.schema;
    parent->array.n_children = parent->schema.n_children = count + 1;
}

static inline struct arrow_pair arrow_with_child(struct arrow_pair parent, struct arrow_pair child)
{
    arrow_add_child(&parent, child);
    return parent;
}

static inline struct arrow_pair arrow_with_dictionary(struct arrow_pair indices, struct arrow_pair values)
{
    indices.array.dictionary = malloc(sizeof values.array);
    indices.schema.dictionary = malloc(sizeof values.schema);
    *indices.array.dictionary = values.array;
    *indices.schema.dictionary = values.schema;
    return indices;
}

/* A record batch without columns yet. */
static inline struct arrow_pair arrow_batch(int64_t length, int64_t offset)
{
    return arrow_make("", "+s", length, offset, 1, (const void *const[]){NULL});
}

static inline void arrow_release(struct arrow_pair *pair)
{
    pair->array.release(&pair->array);
    pair->schema.release(&pair->schema);
}

/* ---- streams ---- */

/* What an opener opens: the same batches each time, unless a test changes it. */
struct arrow_streams {
    struct arrow_pair (*make)(const struct arrow_streams *streams, int number); /* batch `number` of a pass */
    const void *context;                                                        /* of make */
    int num_batches;
    int failing_batch; /* batch that fails, from 1, with `error`, which may be NULL; 0: none */
    const char *error;
    bool fails_to_open;
    int num_opened;
};

struct arrow_stream {
    struct arrow_streams *streams;
    int next;
};

static inline int arrow_stream_schema(struct ArrowArrayStream *stream, struct ArrowSchema *out)
{
    struct arrow_stream *state = stream->private_data;
    struct arrow_pair pair = state->streams->make(state->streams, 0);
    pair.array.release(&pair.array);
    *out = pair.schema;
    return 0;
}

static inline int arrow_stream_next(struct ArrowArrayStream *stream, struct ArrowArray *out)
{
    struct arrow_stream *state = stream->private_data;
    *out = (struct ArrowArray){.release = NULL};
    if (state->streams->failing_batch > 0 && state->next + 1 == state->streams->failing_batch)
        return 5; /* EIO */
    if (state->next == state->streams->num_batches)
        return 0;
    struct arrow_pair pair = state->streams->make(state->streams, state->next++);
    pair.schema.release(&pair.schema);
    *out = pair.array;
    return 0;
}

static inline const char *arrow_stream_error(struct ArrowArrayStream *stream)
{
    return ((struct arrow_stream *)stream->private_data)->streams->error;
}

static inline void arrow_stream_release(struct ArrowArrayStream *stream)
{
    assert_non_null(stream->release);
    free(stream->private_data);
    stream->release = NULL;
    arrow_counts()->num_streams--;
}

static inline ph_status arrow_streams_open(void *context, struct ArrowArrayStream *stream_out)
{
    struct arrow_streams *streams = context;
    streams->num_opened++;
    if (streams->fails_to_open)
        return streams->error != NULL ? ph_fail(PH_ERROR_DATA, "%s", streams->error) : PH_ERROR_DATA;
    struct arrow_stream *state = malloc(sizeof *state);
    *state = (struct arrow_stream){.streams = streams};
    *stream_out = (struct ArrowArrayStream){.get_schema = arrow_stream_schema,
        .get_next = arrow_stream_next,
        .get_last_error = arrow_stream_error,
        .release = arrow_stream_release,
        .private_data = state};
    arrow_counts()->num_streams++;
    return PH_OK;
}

static inline struct ph_dataset *arrow_streams_dataset(struct arrow_streams *streams, const char *name)
{
    const struct ph_stream_opener opener = {
        .size = sizeof opener, .open = arrow_streams_open, .context = streams, .name = name};
    struct ph_dataset *dataset = NULL;
    assert_ok(ph_dataset_create_from_streams(&opener, &dataset));
    return dataset;
}

static inline void assert_arrow_is_released(void)
{
    assert_int_equal(arrow_counts()->num_streams, 0);
    assert_int_equal(arrow_counts()->num_arrays, 0);
    assert_int_equal(arrow_counts()->num_schemas, 0);
}

#endif
