/* Allocates and frees a job's memory; see job_memory.h. */
#include "hub/layout/job_memory.h"

#include <stdlib.h>

#include "base/memory/memory.h"
#include "base/sizes.h"
#include "net/link/shared_link.h"

_Static_assert(
    sizeof(struct ph__chunk_state) == 64, "core threads write chunks side by side: one cache line each");

/* ---- layout of the region that a worker shares with the hub ---- */

struct ph__worker_region ph__worker_region(const struct ph__worker_region_sizes *sizes)
{
    struct ph__worker_region region = {.ring_bytes = ph__shared_link_bytes(sizes->ring_capacity)};
    region.gradients = ph__size_align(region.ring_bytes * sizes->num_cores);
    region.parameters = region.gradients + sizes->gradient_bytes * sizes->depth;
    region.size = region.parameters + (sizes->has_own_parameters ? sizes->gradient_bytes * sizes->depth : 0);
    return region;
}

static void place_worker(
    struct ph__worker_memory *worker, const struct ph__worker_region_sizes *sizes, char *memory)
{
    const struct ph__worker_region region = ph__worker_region(sizes);
    for (size_t i = 0; i < sizes->depth; i++) {
        worker->gradients[i] = memory + region.gradients + i * sizes->gradient_bytes;
        if (sizes->has_own_parameters)
            worker->parameters[i] = memory + region.parameters + i * sizes->gradient_bytes;
    }
}

ph_status ph__job_memory_add_worker(struct ph__job_memory *memory, uint32_t worker, bool is_shared,
    const struct ph__worker_region_sizes *sizes)
{
    struct ph__worker_memory *place = &memory->workers[worker];
    if (is_shared) {
        PH_TRY(ph__region_create("phloem-hub-worker", ph__worker_region(sizes).size, &place->region));
        place_worker(place, sizes, place->region.memory);
        return PH_OK;
    }
    PH_TRY(
        ph__memory_alloc(memory->gradient_bytes * memory->depth, "a worker's gradients", &place->received));
    for (size_t i = 0; i < memory->depth; i++)
        place->gradients[i] = (char *)place->received + i * memory->gradient_bytes;
    return PH_OK;
}

static void remove_worker(const struct ph__job_memory *memory, struct ph__worker_memory *place)
{
    ph__region_close(&place->region);
    if (place->received != NULL)
        ph__memory_free(place->received, memory->gradient_bytes * memory->depth);
    *place = (struct ph__worker_memory){.region.descriptor = -1};
}

/* ---- all of it ---- */

/* Returns the number of arrays of num_weights. */
static size_t count_weight_arrays(
    const struct ph__job_memory_options *options, const struct ph__layout_sizes *sizes)
{
    const size_t weights = sizes->num_narrow_keys == 0 ? 0 : options->num_versions;
    return weights + options->has_m + options->has_s + (options->has_sums ? options->depth : 0);
}

size_t ph__job_memory_bytes(
    const struct ph__job_memory_options *options, const struct ph__layout_sizes *sizes)
{
    return sizes->gradient_bytes * options->num_versions +
           count_weight_arrays(options, sizes) * sizes->num_weights * sizeof(float) +
           sizes->num_chunks *
               (sizeof(struct ph__chunk_state) + options->num_workers * sizeof(struct ph__chunk_worker));
}

static ph_status allocate_versions(struct ph__job_memory *memory)
{
    const bool is_weights = memory->layout->sizes.num_narrow_keys == 0;
    PH_TRY(ph__region_create(
        "phloem-hub-parameters", memory->gradient_bytes * memory->num_versions, &memory->region));
    for (uint32_t i = 0; i < memory->num_versions; i++) {
        memory->results[i] = (char *)memory->region.memory + i * memory->gradient_bytes;
        if (is_weights)
            memory->weights[i] = (float *)(void *)memory->results[i];
        else
            PH_TRY(ph__layout_alloc_weights(memory->layout, "a job's parameters", &memory->weights[i]));
    }
    return ph__region_seal_read_only(&memory->region);
}

static ph_status allocate_slots(struct ph__job_memory *memory, const struct ph__job_memory_options *options)
{
    if (options->has_m)
        PH_TRY(ph__layout_alloc_weights(memory->layout, "an optimizer's slots", &memory->m));
    if (options->has_s)
        PH_TRY(ph__layout_alloc_weights(memory->layout, "an optimizer's slots", &memory->s));
    for (uint32_t i = 0; options->has_sums && i < memory->depth; i++)
        PH_TRY(ph__layout_alloc_weights(memory->layout, "a job's sums", &memory->sums[i]));
    return PH_OK;
}

static ph_status allocate_books(struct ph__job_memory *memory)
{
    const size_t num_chunks = memory->layout->sizes.num_chunks;
    void *chunks, *requests;
    memory->workers = calloc(memory->num_workers, sizeof *memory->workers);
    if (memory->workers == NULL)
        return ph__out_of_memory("the books of %zu chunks", num_chunks);
    for (uint32_t i = 0; i < memory->num_workers; i++)
        memory->workers[i].region.descriptor = -1;
    PH_TRY(ph__memory_alloc(num_chunks * sizeof *memory->chunks, "the books of chunks", &chunks));
    memory->chunks = chunks;
    PH_TRY(ph__memory_alloc(
        num_chunks * memory->num_workers * sizeof *memory->requests, "the books of workers", &requests));
    memory->requests = requests;
    return PH_OK;
}

ph_status ph__job_memory_create(
    const struct ph__job_memory_options *options, struct ph__job_memory **memory_out)
{
    struct ph__job_memory *memory = calloc(1, sizeof *memory);
    if (memory == NULL)
        return ph__out_of_memory("a job");
    memory->layout = options->layout;
    memory->gradient_bytes = options->layout->sizes.gradient_bytes;
    memory->num_workers = options->num_workers;
    memory->depth = options->depth;
    memory->num_versions = options->num_versions;
    memory->region.descriptor = -1;
    ph_status status = allocate_books(memory);
    if (status == PH_OK)
        status = allocate_versions(memory);
    if (status == PH_OK)
        status = allocate_slots(memory, options);
    if (status != PH_OK) {
        ph__job_memory_destroy(memory);
        return status;
    }
    *memory_out = memory;
    return PH_OK;
}

void ph__job_memory_destroy(struct ph__job_memory *memory)
{
    if (memory == NULL)
        return;
    for (uint32_t i = 0; memory->workers != NULL && i < memory->num_workers; i++)
        remove_worker(memory, &memory->workers[i]);
    for (uint32_t i = 0; i < PH_HUB_MAX_DEPTH; i++) {
        if ((char *)memory->weights[i] != memory->results[i])
            ph__layout_free_weights(memory->layout, memory->weights[i]);
        ph__layout_free_weights(memory->layout, memory->sums[i]);
    }
    ph__layout_free_weights(memory->layout, memory->m);
    ph__layout_free_weights(memory->layout, memory->s);
    ph__region_close(&memory->region);
    if (memory->chunks != NULL)
        ph__memory_free(memory->chunks, memory->layout->sizes.num_chunks * sizeof *memory->chunks);
    if (memory->requests != NULL)
        ph__memory_free(memory->requests,
            memory->layout->sizes.num_chunks * memory->num_workers * sizeof *memory->requests);
    free(memory->workers);
    free(memory);
}
