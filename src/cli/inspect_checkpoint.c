/* phloem inspect checkpoint: reads tensor by tensor, then compares the file with its seal. */
#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>

#include "cli/inspect.h"
#include "store/safetensors.h"
#include "tensor/float16.h"

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

/* min, mean, standard deviation and max of real tensors; others have none. */
static void print_statistics(const struct ph_tensor *tensor, const void *data)
{
    size_t count = ph_shape_elements(&tensor->shape);
    double min = INFINITY, max = -INFINITY, sum = 0, squares = 0;
    if (count == 0 || !is_real(tensor->dtype))
        return;
    for (size_t i = 0; i < count; i++) {
        double x = number_at(tensor->dtype, data, i);
        min = fmin(min, x);
        max = fmax(max, x);
        sum += x;
        squares += x * x;
    }
    double mean = sum / (double)count;
    double variance = fmax(0, squares / (double)count - mean * mean);
    printf(" %12.5g %12.5g %12.5g %12.5g", min, mean, sqrt(variance), max);
}

static ph_status inspect_tensor(const struct ph_safetensors *file, size_t index, uint64_t *elements)
{
    struct ph_tensor tensor = ph__safetensors_tensor(file, index);
    size_t count = ph_shape_elements(&tensor.shape);
    void *data = malloc(count * ph_dtype_size(tensor.dtype) + 1);
    if (data == NULL)
        return ph_fail(PH_ERROR_MEMORY, "no memory for tensor %s", tensor.name);
    ph_status status = ph__safetensors_read(file, index, data);
    if (status == PH_OK) {
        printf("%-32s %-4s ", tensor.name, ph_dtype_name(tensor.dtype));
        print_shape(&tensor.shape);
        print_statistics(&tensor, data);
        printf("\n");
        *elements += count;
    }
    free(data);
    return status;
}

static ph_status inspect_tensors(const struct ph_safetensors *file)
{
    uint64_t elements = 0;
    for (size_t i = 0; i < ph__safetensors_num_metadata(file); i++) {
        const char *key = ph__safetensors_metadata_key(file, i);
        printf("%s: %s\n", key, ph__safetensors_metadata(file, key));
    }
    printf("%-32s %-4s %-16s %12s %12s %12s %12s\n", "tensor", "type", "shape", "min", "mean", "deviation",
        "max");
    for (size_t i = 0; i < ph__safetensors_num_tensors(file); i++)
        PH_TRY(inspect_tensor(file, i, &elements));
    printf("%zu tensors, %" PRIu64 " elements\n", ph__safetensors_num_tensors(file), elements);
    return PH_OK;
}

/* A safetensors file of another program has no seal, and is none the worse for it. */
static ph_status inspect_seal(const struct ph_safetensors *file)
{
    if (!ph__safetensors_is_sealed(file)) {
        printf("seal: none\n");
        return PH_OK;
    }
    PH_TRY(ph__safetensors_check_seal(file));
    printf("seal: fits\n");
    return PH_OK;
}

ph_status cli_inspect_checkpoint(const char *path)
{
    struct ph_safetensors *file;
    PH_TRY(ph__safetensors_open(path, &file));
    ph_status status = inspect_tensors(file);
    if (status == PH_OK)
        status = inspect_seal(file);
    ph__safetensors_close(file);
    return status;
}
