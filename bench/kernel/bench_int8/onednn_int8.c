/* A matmul primitive on bytes, and the reorder of its weights: see onednn_int8.h. */
#include "onednn_int8.h"

#include "base/memory/memory.h"
#include "figures.h"
#include "kernel/onednn.h"

enum { MOST_ARGUMENTS = 4 };

struct onednn_int8 {
    dnnl_engine_t engine;
    dnnl_stream_t stream;
    dnnl_primitive_desc_t description;
    dnnl_primitive_t primitive;
    dnnl_exec_arg_t arguments[MOST_ARGUMENTS];
    int num_arguments;
    void *packed;
    size_t packed_bytes;
};

static void check(dnnl_status_t status, const char *what)
{
    if (status != dnnl_success)
        bench_check(ph_fail(PH_ERROR_BUG, "oneDNN cannot %s: status %d", what, (int)status));
}

static layout plain_layout(dnnl_data_type_t type, size_t rows, size_t columns)
{
    const dnnl_dims_t dims = {(dnnl_dim_t)rows, (dnnl_dim_t)columns}, strides = {(dnnl_dim_t)columns, 1};
    layout plain;
    check(layout_strided(&plain, dims, type, strides), "describe a matrix");
    return plain;
}

static dnnl_memory_t memory_of(const struct onednn_int8 *product, layout_view of, const void *data)
{
    dnnl_memory_t memory;
    check(dnnl_memory_create(&memory, of, product->engine, (void *)(uintptr_t)data), "make a memory");
    return memory;
}

static void add_argument(struct onednn_int8 *product, int name, dnnl_memory_t memory)
{
    product->arguments[product->num_arguments++] = (dnnl_exec_arg_t){.arg = name, .memory = memory};
}

/* ---- scales of columns, which version 2 copies beforehand and later ones read as an argument ---- */

#if DNNL_VERSION_MAJOR >= 3

static void scale_columns(dnnl_primitive_attr_t attributes, const struct onednn_int8_args *args)
{
    (void)args;
    check(dnnl_primitive_attr_set_scales_mask(attributes, DNNL_ARG_WEIGHTS, 1 << 1), "scale columns");
}

static void add_column_scales(struct onednn_int8 *product, const struct onednn_int8_args *args)
{
    const dnnl_dims_t dims = {(dnnl_dim_t)args->out_features};
    layout scales;
    check(dnnl_memory_desc_create_with_tag(&scales, 1, dims, dnnl_f32, dnnl_a), "describe scales");
    add_argument(product, DNNL_ARG_ATTR_SCALES | DNNL_ARG_WEIGHTS,
        memory_of(product, view(&scales), args->column_scales));
    layout_fini(&scales);
}

#else

static void scale_columns(dnnl_primitive_attr_t attributes, const struct onednn_int8_args *args)
{
    check(dnnl_primitive_attr_set_output_scales(
              attributes, (dnnl_dim_t)args->out_features, 1 << 1, args->column_scales),
        "scale columns");
}

static void add_column_scales(struct onednn_int8 *product, const struct onednn_int8_args *args)
{
    (void)product, (void)args;
}

#endif

/* ---- the primitive ---- */

static void describe(struct onednn_int8 *product, const struct onednn_int8_args *args)
{
    const dnnl_dims_t weight_dims = {(dnnl_dim_t)args->in_features, (dnnl_dim_t)args->out_features};
    layout x = plain_layout(args->is_unsigned ? dnnl_u8 : dnnl_s8, args->rows, args->in_features), weight;
    layout y = plain_layout(args->is_scaled ? dnnl_f32 : dnnl_s32, args->rows, args->out_features);
    check(layout_any(&weight, weight_dims, dnnl_s8), "describe a weight");
    dnnl_primitive_attr_t attributes;
    check(dnnl_primitive_attr_create(&attributes), "make attributes");
    if (args->is_scaled)
        scale_columns(attributes, args);
    check(matmul_describe(
              &product->description, product->engine, view(&x), view(&weight), NULL, view(&y), attributes),
        "describe a product of bytes");
    dnnl_primitive_attr_destroy(attributes);
    layout_fini(&x);
    layout_fini(&weight);
    layout_fini(&y);
}

/* ---- operands ---- */

/* Copies the weights into the layout that the primitive prefers. */
static dnnl_memory_t pack(struct onednn_int8 *product, const struct onednn_int8_args *args)
{
    const layout_view packed_layout =
        dnnl_primitive_desc_query_md(product->description, dnnl_query_weights_md, 0);
    layout plain = plain_layout(dnnl_s8, args->in_features, args->out_features);
    product->packed_bytes = dnnl_memory_desc_get_size(packed_layout);
    bench_check(ph__memory_alloc(product->packed_bytes, "a packed weight", &product->packed));
    dnnl_memory_t from = memory_of(product, view(&plain), args->weight);
    dnnl_memory_t packed = memory_of(product, packed_layout, product->packed);
    dnnl_primitive_desc_t description;
    dnnl_primitive_t reorder;
    check(dnnl_reorder_primitive_desc_create(
              &description, view(&plain), product->engine, packed_layout, product->engine, NULL),
        "describe the packing of a weight");
    check(dnnl_primitive_create(&reorder, description), "make the packing of a weight");
    const dnnl_exec_arg_t arguments[] = {{DNNL_ARG_FROM, from}, {DNNL_ARG_TO, packed}};
    check(dnnl_primitive_execute(reorder, product->stream, 2, arguments), "pack a weight");
    check(dnnl_stream_wait(product->stream), "pack a weight");
    dnnl_primitive_destroy(reorder);
    dnnl_primitive_desc_destroy(description);
    dnnl_memory_destroy(from);
    layout_fini(&plain);
    return packed;
}

static void add_operand(
    struct onednn_int8 *product, int name, dnnl_query_t query, int index, const void *data)
{
    add_argument(product, name,
        memory_of(product, dnnl_primitive_desc_query_md(product->description, query, index), data));
}

/* ---- the product ---- */

struct onednn_int8 *onednn_int8_create(const struct onednn_int8_args *args)
{
    void *memory;
    bench_check(ph__memory_alloc(sizeof(struct onednn_int8), "oneDNN's product", &memory));
    struct onednn_int8 *product = memory;
    check(dnnl_engine_create(&product->engine, dnnl_cpu, 0), "start");
    check(dnnl_stream_create(&product->stream, product->engine, dnnl_stream_default_flags), "start");
    describe(product, args);
    check(dnnl_primitive_create(&product->primitive, product->description), "make a product of bytes");
    add_operand(product, DNNL_ARG_SRC, dnnl_query_src_md, 0, args->x);
    add_argument(product, DNNL_ARG_WEIGHTS, pack(product, args));
    add_operand(product, DNNL_ARG_DST, dnnl_query_dst_md, 0, args->y);
    if (args->is_scaled)
        add_column_scales(product, args);
    return product;
}

void onednn_int8_destroy(struct onednn_int8 *product)
{
    for (int i = 0; i < product->num_arguments; i++)
        dnnl_memory_destroy(product->arguments[i].memory);
    dnnl_primitive_destroy(product->primitive);
    dnnl_primitive_desc_destroy(product->description);
    dnnl_stream_destroy(product->stream);
    dnnl_engine_destroy(product->engine);
    ph__memory_free(product->packed, product->packed_bytes);
    ph__memory_free(product, sizeof *product);
}

void onednn_int8_run(const struct onednn_int8 *product)
{
    check(dnnl_primitive_execute(
              product->primitive, product->stream, product->num_arguments, product->arguments),
        "multiply bytes");
    check(dnnl_stream_wait(product->stream), "multiply bytes");
}
