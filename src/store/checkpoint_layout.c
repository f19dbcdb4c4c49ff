#include "store/checkpoint_layout.h"

#include <stdlib.h>
#include <string.h>

#include "base/format/json_fields.h"
#include "base/memory/memory.h"

/* ---- pieces ---- */

ph_status ph__layout_add(struct ph__layout *layout, const struct ph__layout_piece *piece)
{
    PH_TRY(ph__array_reserve(
        (void **)&layout->pieces, &layout->capacity, layout->num_pieces + 1, sizeof *layout->pieces));
    layout->pieces[layout->num_pieces++] = *piece;
    return PH_OK;
}

void ph__layout_fini(struct ph__layout *layout)
{
    free(layout->pieces);
    free(layout->tensors);
    *layout = (struct ph__layout){0};
}

static int compare_sizes(size_t a, size_t b)
{
    return (a > b) - (a < b);
}

static int compare_pieces(const void *a, const void *b)
{
    const struct ph__layout_piece *left = a, *right = b;
    const int by_name = strcmp(left->name, right->name);
    if (by_name != 0)
        return by_name;
    const int by_row = compare_sizes(left->area.first_row, right->area.first_row);
    return by_row != 0 ? by_row : compare_sizes(left->area.first_column, right->area.first_column);
}

/* ---- tensors ---- */

static ph_status check_agreement(
    const struct ph__layout_tensor *tensor, const char *where, ph_status error_status)
{
    const struct ph__layout_piece *first = &tensor->pieces[0];
    for (size_t i = 1; i < tensor->num_pieces; i++) {
        const struct ph__layout_piece *piece = &tensor->pieces[i];
        if (piece->dtype != first->dtype || !ph__shape_equal(&piece->shape, &first->shape))
            return ph_fail(error_status, "%s: the pieces '%s' and '%s' differ in dtype or shape", where,
                first->stored, piece->stored);
    }
    return PH_OK;
}

static ph_status fail_cover(const struct ph__layout_piece *piece, const struct ph__area *fault,
    bool is_missing, const char *where, ph_status error_status)
{
    struct ph__arena arena = {0};
    const char *range = ph__area_name(&arena, piece->name, &piece->shape, fault);
    const ph_status status = ph_fail(error_status, "%s: %s is %s", where, range != NULL ? range : piece->name,
        is_missing ? "missing" : "stored twice");
    ph__arena_fini(&arena);
    return status;
}

/* Checks a tensor's pieces. areas: scratch for at least as many areas as the tensor has pieces. */
static ph_status check_tensor(
    const struct ph__layout_tensor *tensor, struct ph__area *areas, const char *where, ph_status error_status)
{
    const struct ph__area whole = ph__shape_area(&tensor->pieces[0].shape);
    struct ph__area fault;
    bool is_missing;
    PH_TRY(check_agreement(tensor, where, error_status));
    for (size_t i = 0; i < tensor->num_pieces; i++)
        areas[i] = tensor->pieces[i].area;
    if (ph__areas_cover(&whole, areas, tensor->num_pieces, &fault, &is_missing))
        return PH_OK;
    return fail_cover(&tensor->pieces[0], &fault, is_missing, where, error_status);
}

static void find_tensors(struct ph__layout *layout)
{
    for (size_t i = 0; i < layout->num_pieces; i++) {
        const struct ph__layout_piece *piece = &layout->pieces[i];
        if (i == 0 || strcmp(piece->name, piece[-1].name) != 0)
            layout->tensors[layout->num_tensors++] = (struct ph__layout_tensor){.pieces = piece};
        layout->tensors[layout->num_tensors - 1].num_pieces++;
    }
}

ph_status ph__layout_finish(struct ph__layout *layout, const char *where, ph_status error_status)
{
    const size_t count = layout->num_pieces;
    layout->tensors = calloc(count + 1, sizeof *layout->tensors);
    struct ph__area *areas = calloc(count + 1, sizeof *areas);
    ph_status status = PH_OK;
    if (layout->tensors == NULL || areas == NULL)
        status = ph__out_of_memory("the tensors of %s", where);
    if (status == PH_OK && count > 0) {
        qsort(layout->pieces, count, sizeof *layout->pieces, compare_pieces);
        find_tensors(layout);
    }
    for (size_t i = 0; i < layout->num_tensors && status == PH_OK; i++)
        status = check_tensor(&layout->tensors[i], areas, where, error_status);
    free(areas);
    return status;
}

static int compare_with_name(const void *name, const void *tensor)
{
    return strcmp(name, ((const struct ph__layout_tensor *)tensor)->pieces[0].name);
}

size_t ph__layout_find(const struct ph__layout *layout, const char *name)
{
    if (layout->num_tensors == 0)
        return 0;
    const struct ph__layout_tensor *tensor =
        bsearch(name, layout->tensors, layout->num_tensors, sizeof *layout->tensors, compare_with_name);
    return tensor != NULL ? (size_t)(tensor - layout->tensors) : layout->num_tensors;
}

/* ---- as JSON ---- */

static const struct ph__json_field area_fields[] = {
    {"first_row", PH_JSON_SIZE, offsetof(struct ph__area, first_row), 0},
    {"num_rows", PH_JSON_SIZE, offsetof(struct ph__area, num_rows), 0},
    {"first_column", PH_JSON_SIZE, offsetof(struct ph__area, first_column), 0},
    {"num_columns", PH_JSON_SIZE, offsetof(struct ph__area, num_columns), 0},
};
enum { NUM_AREA_FIELDS = sizeof area_fields / sizeof *area_fields };

void ph__layout_set_area(struct ph__json *object, const struct ph__area *area)
{
    ph__json_set_fields(object, area_fields, NUM_AREA_FIELDS, area);
}

bool ph__layout_get_area(const struct ph__json *object, struct ph__area *area_out)
{
    return ph__json_get_fields(object, area_fields, NUM_AREA_FIELDS, area_out) == NULL;
}

struct ph__json *ph__layout_shape_json(const struct ph_shape *shape)
{
    struct ph__json *array = ph__json_array();
    for (size_t i = 0; i < shape->num_dims; i++)
        ph__json_append_integer(array, (int64_t)shape->dims[i]);
    return array;
}

bool ph__layout_get_shape(const struct ph__json *array, struct ph_shape *shape_out)
{
    struct ph_shape shape = {.num_dims = ph__json_size(array)};
    if (!ph__json_is_array(array) || shape.num_dims > PH_MAX_DIMS)
        return false;
    for (size_t i = 0; i < shape.num_dims; i++) {
        const int64_t extent = ph__json_as_integer(ph__json_at(array, i), -1);
        if (extent < 0)
            return false;
        shape.dims[i] = (size_t)extent;
    }
    *shape_out = shape;
    return true;
}
