/* The door to oneDNN: its C API, and names for what differs between versions 2 and 3 of it. */
#ifndef PH_KERNEL_ONEDNN_H
#define PH_KERNEL_ONEDNN_H

#include <dnnl.h>

#if DNNL_VERSION_MAJOR >= 3

typedef dnnl_memory_desc_t layout;
typedef const_dnnl_memory_desc_t layout_view;

static inline layout_view view(const layout *of)
{
    return *of;
}

#define layout_strided(out, dims, type, strides) \
    dnnl_memory_desc_create_with_strides(out, 2, dims, type, strides)
#define layout_any(out, dims, type) dnnl_memory_desc_create_with_tag(out, 2, dims, type, dnnl_format_tag_any)

static inline dnnl_status_t layout_copy(layout *out, layout_view from)
{
    return dnnl_memory_desc_clone(out, from);
}

static inline void layout_fini(layout *of)
{
    if (*of != NULL)
        dnnl_memory_desc_destroy(*of);
}

static inline dnnl_status_t matmul_describe(dnnl_primitive_desc_t *out, dnnl_engine_t engine, layout_view a,
    layout_view b, layout_view bias, layout_view c, const_dnnl_primitive_attr_t attributes)
{
    return dnnl_matmul_primitive_desc_create(out, engine, a, b, bias, c, attributes);
}

#else

typedef dnnl_memory_desc_t layout;
typedef const dnnl_memory_desc_t *layout_view;

static inline layout_view view(const layout *of)
{
    return of;
}

#define layout_strided(out, dims, type, strides) dnnl_memory_desc_init_by_strides(out, 2, dims, type, strides)
#define layout_any(out, dims, type) dnnl_memory_desc_init_by_tag(out, 2, dims, type, dnnl_format_tag_any)

static inline dnnl_status_t layout_copy(layout *out, layout_view from)
{
    *out = *from;
    return dnnl_success;
}

static inline void layout_fini(layout *of)
{
    (void)of;
}

static inline dnnl_status_t matmul_describe(dnnl_primitive_desc_t *out, dnnl_engine_t engine, layout_view a,
    layout_view b, layout_view bias, layout_view c, const_dnnl_primitive_attr_t attributes)
{
    dnnl_matmul_desc_t description;
    const dnnl_status_t status = dnnl_matmul_desc_init(&description, a, b, bias, c);
    return status != dnnl_success ? status
                                  : dnnl_primitive_desc_create(out, &description, attributes, engine, NULL);
}

#endif

#define DNNL_TRY(call)                                \
    do {                                              \
        const dnnl_status_t dnnl_try_status = (call); \
        if (dnnl_try_status != dnnl_success)          \
            return dnnl_try_status;                   \
    } while (0)

#endif
