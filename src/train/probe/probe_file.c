/* The file of a probe: a safetensors file, whose metadata "probe" is a JSON document of the products and
 * weights in their order. */
#include <stdlib.h>
#include <string.h>

#include "base/format/json.h"
#include "base/sizes.h"
#include "store/tensor_list.h"
#include "train/probe/probe.h"

#define KEY "probe"

/* ---- tensors ---- */

static ph_status add(struct ph__tensor_list *list, const char *name, enum ph_dtype dtype, size_t rows,
    size_t columns, void *data)
{
    if (name == NULL)
        return PH_ERROR_MEMORY;
    return ph__tensor_list_add(
        list, &(struct ph_tensor){.name = name, .dtype = dtype, .shape = {2, {rows, columns}}, .data = data});
}

static ph_status add_product(
    const struct ph__probe *probe, const struct ph__probe_product *product, struct ph__tensor_list *list)
{
    const struct ph__row_statistics *statistics = &product->statistics;
    const size_t width = statistics->width;
    const struct {
        const char *part;
        double *numbers;
        size_t rows;
    } parts[] = {{"mean", statistics->mean, 1}, {"scatter", statistics->scatter, width},
        {"thirds", statistics->thirds, 1}, {"fourths", statistics->fourths, 1}};
    const char *prefix = ph__arena_printf(&list->arena, "%s/%s",
        product->is_backward ? "backward" : "forward", probe->weights[product->weight].name);
    PH_TRY(add(list, ph__arena_printf(&list->arena, "%s/rows", prefix), PH_REAL, PH_PROBE_ROWS,
        product->terms, product->rows));
    for (size_t i = 0; i < sizeof parts / sizeof *parts && width > 0; i++)
        PH_TRY(add(list, ph__arena_printf(&list->arena, "%s/%s", prefix, parts[i].part), PH_F64,
            parts[i].rows, width, parts[i].numbers));
    return PH_OK;
}

static ph_status add_weight(const struct ph__probe_weight *weight, struct ph__tensor_list *list)
{
    const struct ph__matrix_normal *normal = &weight->distribution;
    const struct {
        const char *part;
        double *numbers;
        size_t rows, columns;
    } parts[] = {{"mean", normal->mean, normal->rows, normal->columns},
        {"u", normal->u, normal->rows, normal->rows}, {"v", normal->v, normal->columns, normal->columns}};
    for (size_t i = 0; i < sizeof parts / sizeof *parts && normal->rows > 0; i++)
        PH_TRY(add(list, ph__arena_printf(&list->arena, "weight/%s/%s", weight->name, parts[i].part), PH_F64,
            parts[i].rows, parts[i].columns, parts[i].numbers));
    return PH_OK;
}

static ph_status list_tensors(const struct ph__probe *probe, struct ph__tensor_list *list)
{
    for (size_t i = 0; i < probe->num_products; i++)
        PH_TRY(add_product(probe, &probe->products[i], list));
    for (size_t i = 0; i < probe->num_weights; i++)
        PH_TRY(add_weight(&probe->weights[i], list));
    return PH_OK;
}

/* ---- writing ---- */

static struct ph__json *describe(const struct ph__probe *probe, uint64_t num_steps)
{
    struct ph__json *json = ph__json_object(), *products = ph__json_array(), *weights = ph__json_array();
    for (size_t i = 0; i < probe->num_products; i++) {
        const struct ph__probe_product *product = &probe->products[i];
        struct ph__json *entry = ph__json_object();
        ph__json_set_integer(entry, "weight", (int64_t)product->weight);
        ph__json_set_bool(entry, "is_backward", product->is_backward);
        ph__json_set_integer(entry, "num_seen", (int64_t)product->num_seen);
        ph__json_set_integer(entry, "num_rows", (int64_t)product->num_rows);
        ph__json_set_number(entry, "amax", product->amax);
        ph__json_append(products, entry);
    }
    for (size_t i = 0; i < probe->num_weights; i++) {
        const struct ph__probe_weight *weight = &probe->weights[i];
        struct ph__json *entry = ph__json_object();
        ph__json_set_text(entry, "name", weight->name);
        ph__json_set_integer(entry, "out_features", (int64_t)weight->out_features);
        ph__json_set_integer(entry, "in_features", (int64_t)weight->in_features);
        ph__json_set_integer(entry, "num_seen", (int64_t)weight->distribution.count);
        ph__json_append(weights, entry);
    }
    ph__json_set_integer(json, "num_steps", (int64_t)num_steps);
    ph__json_set_number(json, "seconds", probe->seconds);
    ph__json_set(json, "weights", weights);
    ph__json_set(json, "products", products);
    return json;
}

ph_status ph__probe_write(const struct ph__probe *probe, uint64_t num_steps, const char *path)
{
    struct ph__tensor_list list = {.count = 0};
    struct ph__json *json = describe(probe, num_steps);
    char *text = NULL;
    ph_status status = ph__json_text(json, 0, &text);
    if (status == PH_OK)
        status = list_tensors(probe, &list);
    if (status == PH_OK)
        status =
            ph__safetensors_write(path, list.count, list.tensors, (const char *const[]){KEY, text, NULL});
    free(text);
    ph__json_destroy(json);
    ph__tensor_list_fini(&list);
    return status;
}

/* ---- reading ---- */

static size_t size_of(const struct ph__json *entry, const char *key)
{
    return (size_t)ph__json_as_integer(ph__json_get(entry, key), 0);
}

static ph_status make_product(
    struct ph__probe *probe, struct ph__gemm *gemm, const struct ph__json *json, const struct ph__json *entry)
{
    const struct ph__json *from = ph__json_at(ph__json_get(json, "weights"), size_of(entry, "weight"));
    const struct ph__probe_weight weight = {ph__json_as_text(ph__json_get(from, "name"), ""),
        size_of(from, "out_features"), size_of(from, "in_features"), {0}};
    struct ph__probe_product *product;
    const bool is_backward = ph__json_as_bool(ph__json_get(entry, "is_backward"), false);
    PH_TRY(ph__probe_add_product(probe, gemm, &weight, is_backward, &product));
    product->num_seen = size_of(entry, "num_seen");
    product->statistics.count = product->statistics.width > 0 ? product->num_seen : 0;
    product->amax = ph__json_as_number(ph__json_get(entry, "amax"), 0);
    product->num_rows = ph__min(size_of(entry, "num_rows"), PH_PROBE_ROWS);
    struct ph__matrix_normal *normal = &probe->weights[product->weight].distribution;
    const size_t num_seen = size_of(from, "num_seen");
    if (normal->rows == 0 && num_seen > 0)
        PH_TRY(ph__matrix_normal_open(normal, weight.out_features, weight.in_features, PH_PROBE_MOMENTUM));
    normal->count = num_seen;
    return PH_OK;
}

/* Makes a probe of the products that the file describes, whose arrays are still empty. */
static ph_status make(
    const struct ph__safetensors *file, const char *path, struct ph__gemm *gemm, struct ph__probe **probe_out)
{
    const char *text = ph__safetensors_metadata(file, KEY);
    struct ph__json *json;
    if (text == NULL)
        return ph_fail(
            PH_ERROR_CHECKPOINT, "%s is not the file of a probe: train with train.probe_steps", path);
    PH_TRY(ph__json_parse(text, strlen(text), path, PH_ERROR_CHECKPOINT, &json));
    const struct ph__json *products = ph__json_get(json, "products");
    ph_status status = ph__probe_make(ph__json_size(products), probe_out);
    for (size_t i = 0; status == PH_OK && i < ph__json_size(products); i++)
        status = make_product(*probe_out, gemm, json, ph__json_at(products, i));
    if (status == PH_OK)
        (*probe_out)->seconds = ph__json_as_number(ph__json_get(json, "seconds"), 0);
    ph__json_destroy(json);
    return status;
}

ph_status ph__probe_read(const char *path, struct ph__gemm *gemm, struct ph__probe **probe_out)
{
    struct ph__tensor_list list = {.count = 0};
    struct ph__safetensors *file;
    struct ph__probe *probe = NULL;
    PH_TRY(ph__safetensors_open_metadata(path, &file));
    ph_status status = make(file, path, gemm, &probe);
    ph__safetensors_close(file);
    if (status == PH_OK)
        status = list_tensors(probe, &list);
    if (status == PH_OK)
        status = ph__tensor_list_load(&list, path);
    ph__tensor_list_fini(&list);
    if (status == PH_OK)
        *probe_out = probe;
    else
        ph__probe_destroy(probe);
    return status;
}
