/* oneDNN as the matrix library: every product is a matmul primitive.
 *
 * - A primitive is made for one thread and runs in a task; there the library asks OpenMP, which reports one
 *   thread (base/thread/parallel.h). Only a PH_PRODUCT_THREADED primitive is made for, and runs with, the
 *   threads of an OpenMP team.
 * - Packing copies, so its bits cannot depend on threads: it uses the threads of an OpenMP team, or, without
 *   one, the caller's alone.
 * - A packed B has the layout that oneDNN prefers for NOMINAL_ROWS rows; products of any other number of rows
 *   are made for that same layout. It is plain bytes, padded with zeros.
 * - A memory object carries its pointer, so workers cannot share one: each entry has one set of memory
 *   objects per worker. A pointer is set only when it changes. Setting the pointer of a padded B writes its
 *   zeros again, so prepare sets it for all workers before they run.
 * - Scratchpads are ours, one per worker, as large as the largest primitive made so far needs.
 * - After an entry is made nothing here allocates; dnnl_primitive_execute itself does (its table of
 *   arguments). */
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

#include "base/memory/memory.h"
#include "base/thread/cpu.h"
#include "base/thread/parallel.h"
#include "kernel/gemm.h"
#include "kernel/gemm_library.h"
#include "kernel/onednn.h"

#define NOMINAL_ROWS 128
#define NUM_BUCKETS 64 /* a power of two */

/* ---- the context ---- */

enum slot { SLOT_A, SLOT_B, SLOT_BIAS, SLOT_C, SLOT_SCRATCHPAD, NUM_SLOTS };
static const int slot_argument[NUM_SLOTS] = {
    DNNL_ARG_SRC, DNNL_ARG_WEIGHTS, DNNL_ARG_BIAS, DNNL_ARG_DST, DNNL_ARG_SCRATCHPAD};

/* Arguments with which one worker runs a primitive; only that worker touches them while a region runs. */
struct arguments {
    dnnl_memory_t memory[NUM_SLOTS]; /* NULL where the primitive takes none */
    void *pointer[NUM_SLOTS];        /* the pointer that memory[slot] has */
};

struct ph__library_entry {
    struct ph__product product;
    struct ph__gemm_library *library;
    dnnl_primitive_t primitive;
    struct arguments *workers; /* (num_workers) */
    struct ph__library_entry *next;
};

/* Layout of a packed B, and the reorder that makes it. */
struct packing {
    struct ph__packing key;
    layout packed;
    dnnl_primitive_t reorder;
    dnnl_memory_t from, to, scratchpad;
    void *scratchpad_bytes;
    struct packing *next;
};

struct ph__gemm_library {
    size_t num_workers;
    size_t num_threads; /* of packing, and of a PH_PRODUCT_THREADED product */
    dnnl_engine_t engine;
    dnnl_stream_t *streams; /* (num_workers) */
    struct ph__library_entry *buckets[NUM_BUCKETS];
    struct packing *packings;
    void **scratchpads; /* (num_workers), scratchpad_size each */
    size_t scratchpad_size;
    uint64_t creations;
};

#define TEXT_OF(number) #number
#define VERSION_TEXT(major, minor, patch) TEXT_OF(major) "." TEXT_OF(minor) "." TEXT_OF(patch)

const char *ph__gemm_library(void)
{
    return "oneDNN " VERSION_TEXT(DNNL_VERSION_MAJOR, DNNL_VERSION_MINOR, DNNL_VERSION_PATCH);
}

static ph_status failed(const char *what, size_t rows, size_t inner, size_t columns, dnnl_status_t status)
{
    return ph_fail(status == dnnl_out_of_memory ? PH_ERROR_MEMORY : PH_ERROR_BUG,
        "oneDNN cannot %s (%zu,%zu)(%zu,%zu): status %d", what, rows, inner, inner, columns, (int)status);
}

ph_status ph__gemm_library_create(
    size_t num_workers, size_t num_threads, struct ph__gemm_library **library_out)
{
    struct ph__gemm_library *library = calloc(1, sizeof *library);
    if (library == NULL)
        return ph__out_of_memory("gemm: the context");
    library->num_workers = num_workers;
    library->num_threads = num_threads;
    library->streams = calloc(num_workers, sizeof *library->streams);
    library->scratchpads = calloc(num_workers, sizeof *library->scratchpads);
    dnnl_status_t status =
        library->streams == NULL || library->scratchpads == NULL ? dnnl_out_of_memory : dnnl_success;
    if (status == dnnl_success)
        status = dnnl_engine_create(&library->engine, dnnl_cpu, 0);
    for (size_t i = 0; i < num_workers && status == dnnl_success; i++)
        status = dnnl_stream_create(&library->streams[i], library->engine, dnnl_stream_default_flags);
    if (status != dnnl_success) {
        ph__gemm_library_destroy(library);
        return ph_fail(PH_ERROR_MEMORY, "gemm: oneDNN cannot start: status %d", (int)status);
    }
    *library_out = library;
    return PH_OK;
}

static void destroy_memory(dnnl_memory_t memory)
{
    if (memory != NULL)
        dnnl_memory_destroy(memory);
}

static void destroy_entry(struct ph__library_entry *entry, size_t num_workers)
{
    for (size_t i = 0; entry->workers != NULL && i < num_workers; i++)
        for (size_t slot = 0; slot < NUM_SLOTS; slot++)
            destroy_memory(entry->workers[i].memory[slot]);
    free(entry->workers);
    if (entry->primitive != NULL)
        dnnl_primitive_destroy(entry->primitive);
    free(entry);
}

static void destroy_packing(struct packing *packing)
{
    destroy_memory(packing->from);
    destroy_memory(packing->to);
    destroy_memory(packing->scratchpad);
    free(packing->scratchpad_bytes);
    if (packing->reorder != NULL)
        dnnl_primitive_destroy(packing->reorder);
    layout_fini(&packing->packed);
    free(packing);
}

void ph__gemm_library_destroy(struct ph__gemm_library *library)
{
    if (library == NULL)
        return;
    for (size_t i = 0; i < NUM_BUCKETS; i++) {
        for (struct ph__library_entry *entry = library->buckets[i], *next; entry != NULL; entry = next) {
            next = entry->next;
            destroy_entry(entry, library->num_workers);
        }
    }
    for (struct packing *packing = library->packings, *next; packing != NULL; packing = next) {
        next = packing->next;
        destroy_packing(packing);
    }
    for (size_t i = 0; i < library->num_workers; i++) {
        if (library->scratchpads != NULL)
            ph__memory_free(library->scratchpads[i], library->scratchpad_size);
        if (library->streams != NULL && library->streams[i] != NULL)
            dnnl_stream_destroy(library->streams[i]);
    }
    free(library->scratchpads);
    free(library->streams);
    if (library->engine != NULL)
        dnnl_engine_destroy(library->engine);
    free(library);
}

uint64_t ph__gemm_library_creations(const struct ph__gemm_library *library)
{
    return library->creations;
}

bool ph__gemm_library_has_bf16(void)
{
    return ph__cpu_has_bf16();
}

/* ---- making a product ---- */

static dnnl_status_t make_attributes(dnnl_primitive_attr_t *attributes_out)
{
    dnnl_primitive_attr_t attributes;
    DNNL_TRY(dnnl_primitive_attr_create(&attributes));
    dnnl_status_t status = dnnl_primitive_attr_set_scratchpad_mode(attributes, dnnl_scratchpad_mode_user);
    if (status != dnnl_success)
        dnnl_primitive_attr_destroy(attributes);
    else
        *attributes_out = attributes;
    return status;
}

static dnnl_status_t layout_of(
    layout *out, dnnl_data_type_t type, size_t rows, size_t columns, size_t stride, bool is_transposed)
{
    const dnnl_dims_t dims = {(dnnl_dim_t)rows, (dnnl_dim_t)columns};
    const dnnl_dims_t plain = {(dnnl_dim_t)stride, 1}, transposed = {1, (dnnl_dim_t)stride};
    return layout_strided(out, dims, type, is_transposed ? transposed : plain);
}

/* Describes the layouts of a product's operands, by slot. packed: layout of a packed B, or NULL: any. */
static dnnl_status_t describe_operands(
    const struct ph__product *p, const layout *packed, layout operands[NUM_SLOTS])
{
    const dnnl_data_type_t type = p->flags & PH_PRODUCT_BF16 ? dnnl_bf16 : dnnl_f32;
    DNNL_TRY(layout_of(
        &operands[SLOT_A], type, p->rows, p->inner, p->a_stride, p->flags & PH_PRODUCT_A_TRANSPOSED));
    DNNL_TRY(layout_of(&operands[SLOT_BIAS], dnnl_f32, 1, p->columns, p->columns, false));
    DNNL_TRY(layout_of(&operands[SLOT_C], dnnl_f32, p->rows, p->columns, p->c_stride, false));
    const dnnl_dims_t b_dims = {(dnnl_dim_t)p->inner, (dnnl_dim_t)p->columns};
    if (!(p->flags & PH_PRODUCT_B_PACKED))
        return layout_of(
            &operands[SLOT_B], type, p->inner, p->columns, p->b_stride, p->flags & PH_PRODUCT_B_TRANSPOSED);
    return packed != NULL ? layout_copy(&operands[SLOT_B], view(packed))
                          : layout_any(&operands[SLOT_B], b_dims, type);
}

static dnnl_status_t describe_product(struct ph__gemm_library *library, const struct ph__product *product,
    const layout *packed, dnnl_primitive_desc_t *description_out)
{
    layout operands[NUM_SLOTS];
    memset(operands, 0, sizeof operands);
    dnnl_primitive_attr_t attributes = NULL;
    dnnl_status_t status = describe_operands(product, packed, operands);
    if (status == dnnl_success)
        status = make_attributes(&attributes);
    if (status == dnnl_success)
        status = matmul_describe(description_out, library->engine, view(&operands[SLOT_A]),
            view(&operands[SLOT_B]), product->flags & PH_PRODUCT_BIAS ? view(&operands[SLOT_BIAS]) : NULL,
            view(&operands[SLOT_C]), attributes);
    if (attributes != NULL)
        dnnl_primitive_attr_destroy(attributes);
    for (size_t slot = 0; slot < NUM_SLOTS; slot++)
        layout_fini(&operands[slot]);
    return status;
}

static layout_view slot_layout(const_dnnl_primitive_desc_t description, enum slot slot)
{
    switch (slot) {
    case SLOT_A:
        return dnnl_primitive_desc_query_md(description, dnnl_query_src_md, 0);
    case SLOT_B:
        return dnnl_primitive_desc_query_md(description, dnnl_query_weights_md, 0);
    case SLOT_BIAS:
        return dnnl_primitive_desc_query_md(description, dnnl_query_weights_md, 1);
    case SLOT_C:
        return dnnl_primitive_desc_query_md(description, dnnl_query_dst_md, 0);
    default:
        return dnnl_primitive_desc_query_md(description, dnnl_query_scratchpad_md, 0);
    }
}

static dnnl_status_t make_arguments(struct ph__library_entry *entry, const_dnnl_primitive_desc_t description)
{
    for (size_t i = 0; i < entry->library->num_workers; i++) {
        for (int slot = 0; slot < NUM_SLOTS; slot++) {
            if (slot == SLOT_BIAS && !(entry->product.flags & PH_PRODUCT_BIAS))
                continue;
            DNNL_TRY(dnnl_memory_create(&entry->workers[i].memory[slot],
                slot_layout(description, (enum slot)slot), entry->library->engine, DNNL_MEMORY_NONE));
        }
    }
    return dnnl_success;
}

static ph_status grow_scratchpads(struct ph__gemm_library *library, size_t size)
{
    if (size <= library->scratchpad_size)
        return PH_OK;
    for (size_t i = 0; i < library->num_workers; i++) {
        ph__memory_free(library->scratchpads[i], library->scratchpad_size);
        library->scratchpads[i] = NULL;
    }
    library->scratchpad_size = size;
    for (size_t i = 0; i < library->num_workers; i++)
        PH_TRY(ph__memory_alloc(size, "the scratch memory of matrix products", &library->scratchpads[i]));
    return PH_OK;
}

static dnnl_status_t finish_entry(
    struct ph__library_entry *entry, const layout *packed, size_t *scratchpad_size_out)
{
    dnnl_primitive_desc_t description;
    DNNL_TRY(describe_product(entry->library, &entry->product, packed, &description));
    dnnl_status_t status = dnnl_primitive_create(&entry->primitive, description);
    if (status == dnnl_success)
        status = make_arguments(entry, description);
    *scratchpad_size_out = dnnl_memory_desc_get_size(slot_layout(description, SLOT_SCRATCHPAD));
    dnnl_primitive_desc_destroy(description);
    return status;
}

static ph_status make_entry(struct ph__gemm_library *library, const struct ph__product *product,
    const layout *packed, struct ph__library_entry **entry_out)
{
    struct ph__library_entry *entry = calloc(1, sizeof *entry);
    struct arguments *workers = calloc(library->num_workers, sizeof *workers);
    if (entry == NULL || workers == NULL) {
        free(workers);
        free(entry);
        return ph__out_of_memory("gemm: a product");
    }
    *entry = (struct ph__library_entry){.product = *product, .library = library, .workers = workers};
    const size_t threads =
        ph__parallel_set_library_threads(product->flags & PH_PRODUCT_THREADED ? library->num_threads : 1);
    size_t scratchpad_size = 0;
    const dnnl_status_t made = finish_entry(entry, packed, &scratchpad_size);
    ph__parallel_set_library_threads(threads);
    ph_status status = made == dnnl_success
                           ? grow_scratchpads(library, scratchpad_size)
                           : failed("multiply", product->rows, product->inner, product->columns, made);
    if (status != PH_OK) {
        destroy_entry(entry, library->num_workers);
        return status;
    }
    library->creations++;
    *entry_out = entry;
    return PH_OK;
}

/* ---- packing ---- */

static dnnl_status_t make_reorder(struct ph__gemm_library *library, struct packing *packing, layout_view from)
{
    dnnl_primitive_desc_t description;
    dnnl_primitive_attr_t attributes;
    DNNL_TRY(make_attributes(&attributes));
    dnnl_status_t status = dnnl_reorder_primitive_desc_create(
        &description, from, library->engine, view(&packing->packed), library->engine, attributes);
    dnnl_primitive_attr_destroy(attributes);
    DNNL_TRY(status);
    const layout_view scratchpad = slot_layout(description, SLOT_SCRATCHPAD);
    const size_t scratchpad_size = dnnl_memory_desc_get_size(scratchpad);
    status = dnnl_primitive_create(&packing->reorder, description);
    if (status == dnnl_success && scratchpad_size > 0) {
        packing->scratchpad_bytes = aligned_alloc(PH_ALIGNMENT, ph__size_align(scratchpad_size));
        status = packing->scratchpad_bytes != NULL ? dnnl_success : dnnl_out_of_memory;
    }
    if (status == dnnl_success)
        status =
            dnnl_memory_create(&packing->scratchpad, scratchpad, library->engine, packing->scratchpad_bytes);
    if (status == dnnl_success)
        status = dnnl_memory_create(&packing->from, from, library->engine, DNNL_MEMORY_NONE);
    if (status == dnnl_success)
        status = dnnl_memory_create(&packing->to, view(&packing->packed), library->engine, DNNL_MEMORY_NONE);
    dnnl_primitive_desc_destroy(description);
    return status;
}

static dnnl_status_t make_packing(struct ph__gemm_library *library, struct packing *packing)
{
    const struct ph__packing *key = &packing->key;
    const struct ph__product nominal = {.rows = NOMINAL_ROWS,
        .columns = key->columns,
        .inner = key->inner,
        .a_stride = key->inner,
        .c_stride = key->columns,
        .flags = PH_PRODUCT_B_PACKED | (key->is_bf16 ? PH_PRODUCT_BF16 : 0)};
    dnnl_primitive_desc_t description;
    DNNL_TRY(describe_product(library, &nominal, NULL, &description));
    dnnl_status_t status = layout_copy(&packing->packed, slot_layout(description, SLOT_B));
    dnnl_primitive_desc_destroy(description);
    DNNL_TRY(status);
    layout from;
    DNNL_TRY(layout_of(&from, dnnl_f32, key->inner, key->columns,
        key->is_transposed ? key->inner : key->columns, key->is_transposed));
    status = make_reorder(library, packing, view(&from));
    layout_fini(&from);
    return status;
}

static bool is_equal(const struct ph__packing *a, const struct ph__packing *b)
{
    return a->inner == b->inner && a->columns == b->columns && a->is_transposed == b->is_transposed &&
           a->is_bf16 == b->is_bf16;
}

static ph_status find_packing(
    struct ph__gemm_library *library, const struct ph__packing *key, struct packing **packing_out)
{
    for (struct packing *packing = library->packings; packing != NULL; packing = packing->next) {
        if (is_equal(&packing->key, key)) {
            *packing_out = packing;
            return PH_OK;
        }
    }
    struct packing *packing = calloc(1, sizeof *packing);
    if (packing == NULL)
        return ph__out_of_memory("gemm: a packing");
    packing->key = *key;
    const size_t threads = ph__parallel_set_library_threads(library->num_threads);
    const dnnl_status_t status = make_packing(library, packing);
    ph__parallel_set_library_threads(threads);
    if (status != dnnl_success) {
        destroy_packing(packing);
        return failed("pack", NOMINAL_ROWS, key->inner, key->columns, status);
    }
    library->creations++;
    packing->next = library->packings;
    library->packings = packing;
    *packing_out = packing;
    return PH_OK;
}

ph_status ph__gemm_library_packed_bytes(
    struct ph__gemm_library *library, const struct ph__packing *key, size_t *bytes_out)
{
    struct packing *packing;
    PH_TRY(find_packing(library, key, &packing));
    *bytes_out = dnnl_memory_desc_get_size(view(&packing->packed));
    return PH_OK;
}

static dnnl_status_t run_reorder(
    struct ph__gemm_library *library, struct packing *packing, void *from, void *to)
{
    DNNL_TRY(dnnl_memory_set_data_handle(packing->from, from));
    DNNL_TRY(dnnl_memory_set_data_handle(packing->to, to));
    const dnnl_exec_arg_t arguments[] = {{DNNL_ARG_FROM, packing->from}, {DNNL_ARG_TO, packing->to},
        {DNNL_ARG_SCRATCHPAD, packing->scratchpad}};
    return dnnl_primitive_execute(packing->reorder, library->streams[0], 3, arguments);
}

ph_status ph__gemm_library_pack(
    struct ph__gemm_library *library, const struct ph__packing *key, const ph_real *matrix, void *packed)
{
    struct packing *packing;
    PH_TRY(find_packing(library, key, &packing));
    const size_t threads = ph__parallel_set_library_threads(library->num_threads);
    const dnnl_status_t status = run_reorder(library, packing, (void *)matrix, packed);
    ph__parallel_set_library_threads(threads);
    return status == dnnl_success ? PH_OK : failed("pack", NOMINAL_ROWS, key->inner, key->columns, status);
}

/* ---- finding and running a product ---- */

static size_t bucket_of(const struct ph__product *product)
{
    uint64_t hash = product->rows;
    hash = hash * 0x9e3779b97f4a7c15u + product->columns;
    hash = hash * 0x9e3779b97f4a7c15u + product->inner;
    hash = hash * 0x9e3779b97f4a7c15u + product->flags;
    return (size_t)((hash * 0x9e3779b97f4a7c15u) >> 58) % NUM_BUCKETS;
}

static dnnl_status_t set_pointer(struct arguments *arguments, enum slot slot, const void *pointer)
{
    if (arguments->memory[slot] == NULL || arguments->pointer[slot] == pointer)
        return dnnl_success;
    arguments->pointer[slot] = (void *)pointer;
    return dnnl_memory_set_data_handle(arguments->memory[slot], (void *)pointer);
}

ph_status ph__gemm_library_prepare(struct ph__gemm_library *library, const struct ph__product *product,
    const void *packed, struct ph__prepared *prepared_out)
{
    const size_t bucket = bucket_of(product);
    struct ph__library_entry *entry = library->buckets[bucket];
    while (entry != NULL && memcmp(&entry->product, product, sizeof *product) != 0)
        entry = entry->next;
    if (entry == NULL) {
        struct packing *packing = NULL;
        const struct ph__packing key = {.inner = product->inner,
            .columns = product->columns,
            .is_transposed = (product->flags & PH_PRODUCT_B_TRANSPOSED) != 0,
            .is_bf16 = (product->flags & PH_PRODUCT_BF16) != 0};
        if (product->flags & PH_PRODUCT_B_PACKED)
            PH_TRY(find_packing(library, &key, &packing));
        PH_TRY(make_entry(library, product, packing == NULL ? NULL : &packing->packed, &entry));
        entry->next = library->buckets[bucket];
        library->buckets[bucket] = entry;
    }
    const size_t threads = ph__parallel_set_library_threads(1);
    dnnl_status_t status = dnnl_success;
    for (size_t i = 0; i < library->num_workers && packed != NULL && status == dnnl_success; i++)
        status = set_pointer(&entry->workers[i], SLOT_B, packed);
    ph__parallel_set_library_threads(threads);
    if (status != dnnl_success)
        return failed("use the packed matrix of", product->rows, product->inner, product->columns, status);
    *prepared_out = (struct ph__prepared){.product = *product, .entry = entry};
    return PH_OK;
}

static dnnl_status_t run_entry(
    struct ph__library_entry *entry, size_t worker, const struct ph__product_operands *operands)
{
    struct ph__gemm_library *library = entry->library;
    struct arguments *own = &entry->workers[worker];
    DNNL_TRY(set_pointer(own, SLOT_A, operands->a));
    DNNL_TRY(set_pointer(own, SLOT_B, operands->b));
    DNNL_TRY(set_pointer(own, SLOT_BIAS, operands->bias));
    DNNL_TRY(set_pointer(own, SLOT_C, operands->c));
    DNNL_TRY(set_pointer(own, SLOT_SCRATCHPAD, library->scratchpads[worker]));
    dnnl_exec_arg_t arguments[NUM_SLOTS];
    int count = 0;
    for (size_t slot = 0; slot < NUM_SLOTS; slot++)
        if (own->memory[slot] != NULL)
            arguments[count++] = (dnnl_exec_arg_t){.arg = slot_argument[slot], .memory = own->memory[slot]};
    DNNL_TRY(dnnl_primitive_execute(entry->primitive, library->streams[worker], count, arguments));
    return dnnl_stream_wait(library->streams[worker]);
}

ph_status ph__gemm_library_run(
    const struct ph__prepared *prepared, size_t worker, const struct ph__product_operands *operands)
{
    struct ph__library_entry *entry = prepared->entry;
    dnnl_status_t status;
    if (entry->product.flags & PH_PRODUCT_THREADED) {
        const size_t threads = ph__parallel_set_library_threads(entry->library->num_threads);
        status = run_entry(entry, worker, operands);
        ph__parallel_set_library_threads(threads);
    } else {
        status = run_entry(entry, worker, operands);
    }
    return status == dnnl_success ? PH_OK : PH_ERROR_BUG;
}
