#include "serve/speculation/speculated.h"

#include <string.h>

#include "base/memory/memory.h"
#include "base/rng.h"
#include "base/sizes.h"
#include "base/text/number.h"

/* ---- a request ---- */

static uint64_t key_of(const struct ph__tensor *tensor, size_t row)
{
    char digits[PH_INTEGER_TEXT_BYTES];
    if (ph__tensor_is_text(tensor)) {
        const struct ph__bytes text = ph__tensor_text(tensor, row);
        return ph__hash_bytes(text.bytes, text.size);
    }
    return ph__hash_bytes(digits, ph__integer_write(ph__tensor_integer(tensor, row), digits));
}

/* Tells whether integers repeat, as a slate's user does. */
static bool is_as_before(const struct ph__tensor *tensor, size_t row)
{
    return !ph__tensor_is_text(tensor) &&
           ph__tensor_integer(tensor, row) == ph__tensor_integer(tensor, row - 1);
}

static const struct ph__tensor *find_tensor(
    const struct ph__tensor *tensors, size_t num_tensors, const char *name)
{
    for (size_t i = 0; i < num_tensors; i++)
        if (ph__bytes_are(tensors[i].name, name))
            return &tensors[i];
    return NULL;
}

/* Hashes a column's values: keys_out (count). */
static ph_status hash_column(const struct ph__speculated *speculated, const char *name,
    struct ph__arena *arena, uint64_t **keys_out, size_t *count_out)
{
    const struct ph__tensor *tensor = find_tensor(speculated->tensors, speculated->num_tensors, name);
    if (tensor == NULL)
        return ph_fail(PH_ERROR_DATA, "the request has no input '%s', by which pairs are looked up", name);
    if (!ph__tensor_is_text(tensor) && !ph__tensor_is_integer(tensor))
        return ph_fail(PH_ERROR_DATA, "tensor '%s': it must be BYTES or whole numbers", name);
    *count_out = tensor->count;
    *keys_out = ph__arena_alloc_array(arena, tensor->count, sizeof **keys_out);
    if (*keys_out == NULL)
        return PH_ERROR_MEMORY;
    for (size_t i = 0; i < tensor->count; i++)
        (*keys_out)[i] = i > 0 && is_as_before(tensor, i) ? (*keys_out)[i - 1] : key_of(tensor, i);
    return PH_OK;
}

/* Copies the tensors that are the student's. */
static ph_status pick_tensors(const struct ph__speculated_source *source,
    const struct ph__speculated *speculated, struct ph__tensor *picked, size_t *num_picked_out)
{
    const struct ph__name_index *own = ph__speculation_columns(source->core);
    size_t count = 0;
    for (size_t i = 0; i < speculated->num_tensors; i++) {
        const struct ph__tensor *tensor = &speculated->tensors[i];
        if (ph__name_index_find_bytes(own, tensor->name.bytes, tensor->name.size) != PH_NO_NAME)
            return ph_fail(PH_ERROR_DATA, "tensor '%.*s': the server fills this column",
                (int)tensor->name.size, tensor->name.bytes);
        if (ph__tensor_rows_has(&source->student->inputs.index, tensor->name))
            picked[count++] = *tensor;
        else if (!ph__tensor_rows_has(source->columns, tensor->name))
            return ph_fail(PH_ERROR_DATA, "neither the model nor its foundation model has an input '%.*s'",
                (int)ph__min(tensor->name.size, 64), tensor->name.bytes);
    }
    *num_picked_out = count;
    return PH_OK;
}

/* Adds the columns of pairs that the student reads, behind the picked tensors. */
static ph_status add_features(const struct ph__speculated_source *source,
    const struct ph__speculated *speculated, struct ph__arena *arena, struct ph__tensor *picked,
    size_t *num_picked)
{
    const size_t width = ph__speculation_columns(source->core)->count, count = speculated->count;
    float *columns = ph__arena_alloc_array(arena, width * count, sizeof *columns);
    if (columns == NULL)
        return PH_ERROR_MEMORY;
    for (size_t k = 0; k < width; k++, columns += count) {
        const char *name = ph__name_index_text(ph__speculation_columns(source->core), k);
        if (ph_session_find_column(source->student, name) == SIZE_MAX)
            continue;
        for (size_t i = 0; i < count; i++)
            columns[i] = speculated->features[i * width + k];
        picked[(*num_picked)++] = (struct ph__tensor){.name = ph__bytes_of(name),
            .type = PH_TENSOR_FP32,
            .num_dims = 1,
            .dims = {(int64_t)count},
            .count = count,
            .held = PH_TENSOR_FP32,
            .values = columns};
    }
    return PH_OK;
}

ph_status ph__speculated_look_up(const struct ph__speculated_source *source, struct ph__arena *arena,
    struct ph__speculated *speculated, struct ph__tensor_rows *rows_out)
{
    const struct ph_speculation_settings *settings = ph__speculation_settings(source->core);
    const size_t width = ph__speculation_columns(source->core)->count;
    struct ph__tensor *picked = ph__arena_alloc_array(arena, speculated->num_tensors + width, sizeof *picked);
    size_t num_picked = 0, num_items, num_features;
    if (picked == NULL)
        return PH_ERROR_MEMORY;
    PH_TRY(hash_column(speculated, settings->user, arena, &speculated->users, &speculated->count));
    PH_TRY(hash_column(speculated, settings->item, arena, &speculated->items, &num_items));
    if (num_items != speculated->count)
        return ph_fail(PH_ERROR_DATA, "tensor '%s' has %zu rows, but '%s' has %zu", settings->item, num_items,
            settings->user, speculated->count);
    if (!ph__size_mul(speculated->count, width, &num_features))
        return ph__out_of_memory("%zu rows", speculated->count);
    speculated->features = ph__arena_alloc_array(arena, num_features, sizeof *speculated->features);
    if (speculated->features == NULL)
        return PH_ERROR_MEMORY;
    PH_TRY(pick_tensors(source, speculated, picked, &num_picked));
    ph__pair_cache_look_up(ph__speculation_cache(source->core), speculated->now, speculated->count,
        speculated->users, speculated->items, speculated->features, NULL);
    PH_TRY(add_features(source, speculated, arena, picked, &num_picked));
    return ph__tensor_rows_match(source->student, picked, num_picked, arena, rows_out);
}

/* ---- notes ---- */

static void *copy_bytes(struct ph__note *note, const void *bytes, size_t size)
{
    void *copy = ph__arena_alloc(&note->arena, size + 1);
    if (copy != NULL && size > 0)
        memcpy(copy, bytes, size);
    note->bytes += size;
    return copy;
}

static bool copy_text(struct ph__note *note, struct ph__bytes *text)
{
    return (text->bytes = copy_bytes(note, text->bytes, text->size)) != NULL;
}

static bool copy_tensor(struct ph__note *note, const struct ph__tensor *tensor, struct ph__tensor *copy)
{
    static const size_t sizes[] = {0,
#define X(name, bytes, list) bytes,
        PH_TENSOR_TYPES(X)
#undef X
    };
    *copy = *tensor;
    if (!copy_text(note, &copy->name))
        return false;
    if (!ph__tensor_is_text(tensor))
        return (copy->values = copy_bytes(note, tensor->values, tensor->count * sizes[tensor->held])) != NULL;
    struct ph__bytes *texts = ph__arena_alloc_array(&note->arena, tensor->count, sizeof *texts);
    copy->values = texts;
    for (size_t i = 0; i < tensor->count && texts != NULL; i++) {
        texts[i] = ph__tensor_text(tensor, i);
        if (!copy_text(note, &texts[i]))
            return false;
    }
    return texts != NULL;
}

/* Makes a cell of each row's user. */
static bool list_users(struct ph__note *note, const struct ph__tensor *users)
{
    note->user_cells = ph__arena_alloc_array(&note->arena, users->count, sizeof *note->user_cells);
    for (size_t i = 0; i < users->count && note->user_cells != NULL; i++) {
        struct ph_cell *cell = &note->user_cells[i];
        if (ph__tensor_is_text(users)) {
            const struct ph__bytes text = ph__tensor_text(users, i);
            *cell = (struct ph_cell){.kind = PH_CELL_TEXT, .text = text.bytes, .length = text.size};
        } else {
            *cell = (struct ph_cell){.kind = PH_CELL_INTEGER, .integer = ph__tensor_integer(users, i)};
        }
    }
    return note->user_cells != NULL;
}

static bool copy_tensors(struct ph__note *note, const struct ph__name_index *columns, const char *user,
    const struct ph__speculated *speculated)
{
    note->tensors = ph__arena_alloc_array(&note->arena, speculated->num_tensors, sizeof *note->tensors);
    for (size_t i = 0; i < speculated->num_tensors && note->tensors != NULL; i++) {
        const struct ph__tensor *tensor = &speculated->tensors[i];
        if (!ph__tensor_rows_has(columns, tensor->name))
            continue;
        struct ph__tensor *copy = &note->tensors[note->num_tensors];
        if (!copy_tensor(note, tensor, copy))
            return false;
        note->num_tensors++;
        if (ph__bytes_are(copy->name, user) && !list_users(note, copy))
            return false;
    }
    return note->tensors != NULL;
}

bool ph__note_fill(struct ph__note *note, const struct ph__speculation *core,
    const struct ph__name_index *columns, const struct ph__speculated *speculated, struct ph__bytes request,
    const float *probabilities, size_t stride)
{
    const size_t count = speculated->count, width = ph__speculation_columns(core)->count;
    *note =
        (struct ph__note){.arena = note->arena, .count = count, .now = speculated->now, .request = request};
    note->users = copy_bytes(note, speculated->users, count * sizeof *note->users);
    note->items = copy_bytes(note, speculated->items, count * sizeof *note->items);
    note->features = copy_bytes(note, speculated->features, count * width * sizeof *note->features);
    note->scores = ph__arena_alloc_array(&note->arena, count, sizeof *note->scores);
    if (note->users == NULL || note->items == NULL || note->features == NULL || note->scores == NULL)
        return false;
    for (size_t i = 0; i < count; i++)
        note->scores[i] = probabilities != NULL ? probabilities[i * stride] : .5f;
    return copy_text(note, &note->request) &&
           copy_tensors(note, columns, ph__speculation_settings(core)->user, speculated);
}
