/* phloem inspect checkpoint: reads tensor by tensor, some rows at a time, then compares each file with its seal. Of a folder
 * that many ranks have written tensors are shown as they are put together, and the files that they lie in. */
#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>

#include "base/sizes.h"
#include "base/text/number.h"
#include "cli/verb/inspect.h"
#include "store/checkpoint_folder.h"
#include "store/checkpoint_folder_read.h"
#include "tensor/float16.h"

enum { BLOCK_BYTES = 1 << 20 };

static void print_shape(const struct ph_shape *shape)
{
    char text[96] = "(";
    size_t length = 1;
    for (size_t i = 0; i < shape->rank; i++)
        length +=
            (size_t)snprintf(text + length, sizeof text - length, "%s%zu", i > 0 ? "," : "", shape->dims[i]);
    snprintf(text + length, sizeof text - length, ")");
    printf("%-16s", text);
}

static bool is_real(enum ph_dtype dtype)
{
    return dtype == PH_F32 || dtype == PH_F64 || dtype == PH_F16 || dtype == PH_BF16;
}

static double number_at(enum ph_dtype dtype, const void *data, size_t i)
{
    switch (dtype) {
    case PH_F16:
        return (double)ph__float_from_half(((const uint16_t *)data)[i]);
    case PH_BF16:
        return (double)ph__float_from_bfloat(((const uint16_t *)data)[i]);
    case PH_F32:
        return (double)((const float *)data)[i];
    default:
        return ((const double *)data)[i];
    }
}

/* ---- tensors ----------------------------------------------------------------------------------------------- */

struct statistics {
    size_t count;
    double min, max, sum, squares;
};

static void add_numbers(struct statistics *statistics, enum ph_dtype dtype, const void *data, size_t count)
{
    for (size_t i = 0; i < count; i++) {
        const double x = number_at(dtype, data, i);
        statistics->min = fmin(statistics->min, x);
        statistics->max = fmax(statistics->max, x);
        statistics->sum += x;
        statistics->squares += x * x;
    }
    statistics->count += count;
}

/* Of real tensors; others have none, and their numbers are not looked at. */
static ph_status measure(
    const struct ph_folder *folder, size_t index, struct ph_tensor *tensor, struct statistics *statistics)
{
    const struct ph_area whole = ph__shape_area(&tensor->shape);
    const size_t row_bytes = ph__max(whole.num_columns * ph_dtype_size(tensor->dtype), 1);
    const size_t num_at_once = ph__max(BLOCK_BYTES / row_bytes, 1);
    ph_status status = PH_OK;
    if (!is_real(tensor->dtype) || whole.num_columns == 0)
        return PH_OK;
    void *block = malloc(ph__min(num_at_once, whole.num_rows + 1) * row_bytes);
    if (block == NULL)
        return ph_fail(PH_ERROR_MEMORY, "no memory for rows of tensor %s", tensor->name);
    for (size_t row = 0; row < whole.num_rows && status == PH_OK; row += num_at_once) {
        const struct ph_area rows = {row, ph__min(num_at_once, whole.num_rows - row), 0, whole.num_columns};
        status = ph__folder_read_area(folder, index, &rows, block);
        if (status == PH_OK)
            add_numbers(statistics, tensor->dtype, block, rows.num_rows * rows.num_columns);
    }
    free(block);
    return status;
}

/* min, mean, standard deviation and max. */
static void print_statistics(const struct statistics *statistics)
{
    if (statistics->count == 0)
        return;
    const double mean = statistics->sum / (double)statistics->count;
    const double variance = fmax(0, statistics->squares / (double)statistics->count - mean * mean);
    printf(" %12.5g %12.5g %12.5g %12.5g", statistics->min, mean, sqrt(variance), statistics->max);
}

static ph_status inspect_tensor(const struct ph_folder *folder, size_t index, uint64_t *elements)
{
    struct ph_tensor tensor = ph__folder_tensor(folder, index);
    struct statistics statistics = {.min = INFINITY, .max = -INFINITY};
    PH_TRY(measure(folder, index, &tensor, &statistics));
    printf("%-32s %-4s ", tensor.name, ph_dtype_name(tensor.dtype));
    print_shape(&tensor.shape);
    print_statistics(&statistics);
    printf("\n");
    *elements += ph_shape_elements(&tensor.shape);
    return PH_OK;
}

static ph_status inspect_tensors(const struct ph_folder *folder)
{
    uint64_t elements = 0;
    printf("%-32s %-4s %-16s %12s %12s %12s %12s\n", "tensor", "type", "shape", "min", "mean", "deviation",
        "max");
    for (size_t i = 0; i < ph__folder_num_tensors(folder); i++)
        PH_TRY(inspect_tensor(folder, i, &elements));
    printf("%zu tensors, %" PRIu64 " elements\n", ph__folder_num_tensors(folder), elements);
    return PH_OK;
}

/* ---- files ------------------------------------------------------------------------------------------------- */

static void print_metadata(const struct ph_folder *folder)
{
    struct ph_json_member member = {0};
    while (ph__folder_next_metadata(folder, &member)) {
        const char *text = ph__json_as_text(member.value, NULL);
        if (text != NULL)
            printf("%s: %s\n", member.key, text);
    }
}

static void print_files(const struct ph_folder *folder)
{
    char bytes[32];
    if (folder->index == NULL)
        return;
    printf("%-40s %8s %12s\n", "file", "tensors", "bytes");
    for (size_t i = 0; i < folder->num_files; i++)
        printf("%-40s %8zu %12s\n", folder->files[i].name,
            ph__safetensors_num_tensors(folder->files[i].tensors),
            ph__bytes_text(ph__safetensors_bytes(folder->files[i].tensors), bytes));
}

/* A safetensors file of another program has no seal, and is none the worse for it; one of a folder that was opened has one. */
static ph_status inspect_seals(const struct ph_folder *folder)
{
    if (folder->index == NULL && !ph__safetensors_is_sealed(folder->files[0].tensors)) {
        printf("seal: none\n");
        return PH_OK;
    }
    PH_TRY(ph__folder_check_seals(folder, 0, 1));
    if (folder->index == NULL)
        printf("seal: fits\n");
    else
        printf("seals: those of the index and of %zu files fit\n", folder->num_files);
    return PH_OK;
}

ph_status cli_inspect_checkpoint(const char *path)
{
    struct ph_folder *folder;
    PH_TRY(ph__folder_open(path, &folder));
    print_metadata(folder);
    print_files(folder);
    ph_status status = inspect_tensors(folder);
    if (status == PH_OK)
        status = inspect_seals(folder);
    ph__folder_close(folder);
    return status;
}
