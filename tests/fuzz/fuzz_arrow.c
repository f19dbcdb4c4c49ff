/* Record batches by the Arrow C data interface. Pointers must be trusted, what they point to need not: an
 * input draws types, lengths, nulls and the contents of buffers that are exactly as large as the format says.
 */
#include <stdlib.h>
#include <string.h>

#include "support/fuzz_rows.h"

#define NUM_COLUMNS 3
#define MAX_PIECES 256
#define TEXT_BYTES 32
#define MAX_DEPTH 3

static struct fuzz_schema schemas[] = {
    {.yaml = "data:\n"
             "  format: arrow\n"
             "  encoding: hash\n"
             "  rows: 50\n"
             "  max_bad_rows: 2\n"
             "  fields:\n"
             "    - {name: c0, kind: label}\n"
             "    - {name: c1, kind: dense}\n"
             "    - {name: c2, kind: id, list: true}\n"},
    {.yaml = "data:\n"
             "  format: arrow\n"
             "  fields:\n"
             "    - {name: c0, kind: label}\n"
             "    - {name: day, from: c1, kind: id, part: weekday}\n"
             "    - {name: c1, kind: id, encoding: raw, rows: 100}\n"
             "    - {name: c2, kind: id, list: true, weighted: true}\n"},
};

/* ---- what an input draws, and what was allocated for it ---- */

struct draw {
    const uint8_t *at, *end;
    void *pieces[MAX_PIECES];
    size_t num_pieces;
};

/* The next byte, 0 behind the end. */
static uint8_t next(struct draw *draw)
{
    return draw->at < draw->end ? *draw->at++ : 0;
}

static void *piece(struct draw *draw, size_t size)
{
    fuzz_require(draw->num_pieces < MAX_PIECES);
    void *bytes = calloc(1, size > 0 ? size : 1);
    fuzz_require(bytes != NULL);
    return draw->pieces[draw->num_pieces++] = bytes;
}

/* `count` items of `size` bytes whose lowest bytes are drawn, below `limit`; 0: every byte is drawn. */
static const void *buffer(struct draw *draw, size_t count, size_t size, unsigned limit)
{
    uint8_t *bytes = piece(draw, count * size);
    for (size_t i = 0; i<count * size; i += limit> 0 ? size : 1)
        bytes[i] = (uint8_t)(limit > 0 ? next(draw) % limit : next(draw));
    return bytes;
}

static void release_schema(struct ArrowSchema *schema)
{
    schema->release = NULL;
}

static void release_array(struct ArrowArray *array)
{
    array->release = NULL;
}

/* ---- types ---- */

enum shape { PLAIN, TEXT, VIEW, LIST, FIXED_LIST };

static const struct type {
    const char *format;
    size_t value_bytes; /* of the second buffer; 0: bits */
    int64_t num_buffers;
    enum shape shape;
} types[] = {
    {"b", 0, 2, PLAIN},
    {"c", 1, 2, PLAIN},
    {"C", 1, 2, PLAIN},
    {"s", 2, 2, PLAIN},
    {"S", 2, 2, PLAIN},
    {"i", 4, 2, PLAIN},
    {"I", 4, 2, PLAIN},
    {"l", 8, 2, PLAIN},
    {"L", 8, 2, PLAIN},
    {"e", 2, 2, PLAIN},
    {"f", 4, 2, PLAIN},
    {"g", 8, 2, PLAIN},
    {"n", 1, 0, PLAIN},
    {"tdD", 4, 2, PLAIN},
    {"tsu:UTC", 8, 2, PLAIN},
    {"tDs", 8, 2, PLAIN},
    {"d:38,3", 16, 2, PLAIN},
    {"u", 4, 3, TEXT},
    {"Z", 8, 3, TEXT},
    {"vu", 16, 4, VIEW},
    {"+l", 4, 2, LIST},
    {"+L", 8, 2, LIST},
    {"+w:2", 1, 1, FIXED_LIST},
};

static void fill_buffers(struct draw *draw, const struct type *type, struct ArrowArray *array)
{
    const void **buffers = piece(draw, 4 * sizeof *buffers);
    const size_t count = (size_t)(array->length + array->offset);
    const bool has_nulls = next(draw) % 2 == 1;
    if (has_nulls && type->num_buffers > 0)
        buffers[0] = buffer(draw, (count + 7) / 8, 1, 0);
    if (type->value_bytes == 0)
        buffers[1] = buffer(draw, (count + 7) / 8, 1, 0);
    else
        buffers[1] = buffer(draw, count + (type->shape == TEXT || type->shape == LIST), type->value_bytes,
            type->shape == TEXT ? TEXT_BYTES + 1 : 0);
    if (type->shape == TEXT)
        buffers[2] = buffer(draw, TEXT_BYTES, 1, 0);
    if (type->shape == VIEW) { /* one buffer of text, and its size */
        int64_t *sizes = piece(draw, sizeof *sizes);
        *sizes = TEXT_BYTES;
        buffers[2] = buffer(draw, TEXT_BYTES, 1, 0);
        buffers[3] = sizes;
    }
    array->buffers = buffers;
    array->n_buffers = next(draw) % 32 == 31 ? next(draw) % 4 : type->num_buffers;
    if (array->n_buffers > type->num_buffers)
        array->n_buffers = type->num_buffers;
    array->null_count = has_nulls ? -1 : next(draw) % 64 == 63;
}

static void fill_column(struct draw *draw, int depth, struct ArrowSchema *schema, struct ArrowArray *array);

static void fill_children(
    struct draw *draw, int depth, int64_t count, struct ArrowSchema *schema, struct ArrowArray *array)
{
    static const char *const names[NUM_COLUMNS] = {"c0", "c1", "c2"};
    schema->n_children = array->n_children = count;
    schema->children = piece(draw, (size_t)count * sizeof *schema->children);
    array->children = piece(draw, (size_t)count * sizeof *array->children);
    for (int64_t i = 0; i < count; i++) {
        schema->children[i] = piece(draw, sizeof **schema->children);
        array->children[i] = piece(draw, sizeof **array->children);
        fill_column(draw, depth + 1, schema->children[i], array->children[i]);
        schema->children[i]->name = names[i];
    }
}

static void fill_column(struct draw *draw, int depth, struct ArrowSchema *schema, struct ArrowArray *array)
{
    const struct type *type = &types[next(draw) % (sizeof types / sizeof *types)];
    *schema = (struct ArrowSchema){.format = type->format, .release = release_schema};
    *array =
        (struct ArrowArray){.length = next(draw) % 16, .offset = next(draw) % 4, .release = release_array};
    fill_buffers(draw, type, array);
    if ((type->shape == LIST || type->shape == FIXED_LIST) && depth < MAX_DEPTH)
        fill_children(draw, depth, 1, schema, array);
    if (next(draw) % 4 == 3 && depth < MAX_DEPTH) {
        schema->dictionary = piece(draw, sizeof *schema->dictionary);
        array->dictionary = piece(draw, sizeof *array->dictionary);
        fill_column(draw, depth + 1, schema->dictionary, array->dictionary);
    }
    if (next(draw) % 64 == 63) /* what no array can have */
        array->length = INT64_MIN + next(draw);
}

/* ---- reading ---- */

static void read_dataset(struct fuzz_schema *schema, const struct ph_dataset *dataset, unsigned flags)
{
    const struct ph_batches_options options = {.size = sizeof options,
        .batch_size = (flags & 1) != 0 ? 2 : 100,
        .reading.is_shuffled = (flags & 2) != 0,
        .reading.max_bad_rows = 2};
    struct ph_encoder *encoder = NULL;
    struct ph_batches *batches = NULL;
    char *fields = NULL;
    PH_IGNORE(ph_dataset_default_fields(dataset, NULL, 0, &fields)); /* names may be doubled */
    ph_text_free(fields);
    if (ph_encoder_create_from_dataset(fuzz_settings(schema, NULL), dataset, &encoder) != PH_OK)
        return;
    if (ph_dataset_batches_open(dataset, encoder, &options, &batches) == PH_OK)
        fuzz_check_batches(encoder, batches, &options);
    ph_batches_close(batches);
    ph_encoder_destroy(encoder);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct draw draw = {.at = data, .end = data + size};
    struct ArrowSchema schema = {.format = "+s", .release = release_schema};
    struct ArrowArray batch = {.release = release_array};
    struct ph_dataset *dataset = NULL;
    const unsigned choice = next(&draw);
    batch.length = next(&draw) % 8;
    batch.offset = next(&draw) % 4;
    const void *no_nulls[] = {NULL};
    batch.buffers = no_nulls;
    batch.n_buffers = 1;
    fill_children(&draw, 0, NUM_COLUMNS, &schema, &batch);
    fuzz_require(ph_dataset_create(&dataset) == PH_OK);
    if (ph_dataset_append_arrow(dataset, &batch, &schema) == PH_OK)
        read_dataset(&schemas[choice % 2], dataset, choice >> 1);
    ph_dataset_destroy(dataset);
    for (size_t i = 0; i < draw.num_pieces; i++)
        free(draw.pieces[i]);
    return 0;
}
