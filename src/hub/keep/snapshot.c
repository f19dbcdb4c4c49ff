/* Allocates and finishes snapshots; see snapshot.h. */
#include "hub/keep/snapshot.h"

#include <stdlib.h>
#include <string.h>

#include "base/memory/memory.h"
#include "hub/layout/optimizer_slots.h"

size_t ph__snapshot_bytes(const struct ph__service_settings *settings, const struct ph__layout_sizes *sizes)
{
    const size_t num_arrays =
        (size_t)1 + ph__service_has_m(&settings->service) + ph__service_has_s(&settings->service);
    return num_arrays * sizes->num_weights * sizeof(float) +
           sizes->num_chunks * (sizeof(struct ph__snapshot_chunk) + sizeof(struct ph__chunk_place));
}

ph_status ph__snapshot_measure(const struct ph__service_settings *settings, const struct ph__init_key *keys,
    size_t num_keys, size_t chunk_bytes, size_t *bytes_out)
{
    struct ph__layout_sizes sizes;
    struct ph__layout_key *wanted = ph__layout_keys(keys, num_keys);
    if (wanted == NULL)
        return ph__out_of_memory("%zu keys", num_keys);
    const ph_status status = ph__layout_measure(wanted, num_keys, chunk_bytes, &sizes);
    free(wanted);
    if (settings->share.num_hubs > 1)
        sizes.num_weights = 0;
    if (status == PH_OK)
        *bytes_out = ph__snapshot_bytes(settings, &sizes);
    return status;
}

static ph_status copy_keys(
    const struct ph__init_key *keys, size_t num_keys, size_t chunk_bytes, struct ph__snapshot *snapshot)
{
    struct ph__layout_key *wanted = ph__layout_keys(keys, num_keys);
    snapshot->keys = calloc(num_keys, sizeof *snapshot->keys);
    if (wanted == NULL || snapshot->keys == NULL) {
        free(wanted);
        return ph__out_of_memory("%zu keys", num_keys);
    }
    memcpy(snapshot->keys, keys, num_keys * sizeof *keys);
    snapshot->num_keys = num_keys;
    const ph_status status = ph__layout_create(wanted, num_keys, chunk_bytes, &snapshot->layout);
    free(wanted);
    return status;
}

/* Keeps room for the chunks of this hub alone. */
static ph_status keep_share(const struct ph__snapshot *snapshot)
{
    const size_t num_chunks = snapshot->layout->sizes.num_chunks;
    uint16_t *bins = calloc(num_chunks, sizeof *bins);
    if (bins == NULL)
        return ph__out_of_memory("%zu chunks", num_chunks);
    const ph_status status = ph__spread_share(snapshot->layout, &snapshot->settings.share, 1, bins);
    if (status == PH_OK)
        ph__layout_keep(snapshot->layout, bins);
    free(bins);
    return status;
}

static ph_status fill(
    struct ph__snapshot *snapshot, const struct ph__init_key *keys, size_t num_keys, size_t chunk_bytes)
{
    static const char what[] = "the snapshot of a job";
    if (num_keys == 0)
        return PH_OK;
    PH_TRY(copy_keys(keys, num_keys, chunk_bytes, snapshot));
    PH_TRY(keep_share(snapshot));
    snapshot->num_bytes = ph__snapshot_bytes(&snapshot->settings, &snapshot->layout->sizes);
    snapshot->chunks = calloc(snapshot->layout->sizes.num_chunks, sizeof *snapshot->chunks);
    if (snapshot->chunks == NULL)
        return ph__out_of_memory("%s", what);
    PH_TRY(ph__layout_alloc_weights(snapshot->layout, what, &snapshot->weights));
    if (ph__service_has_m(&snapshot->settings.service))
        PH_TRY(ph__layout_alloc_weights(snapshot->layout, what, &snapshot->m));
    return ph__service_has_s(&snapshot->settings.service)
               ? ph__layout_alloc_weights(snapshot->layout, what, &snapshot->s)
               : PH_OK;
}

ph_status ph__snapshot_create(const struct ph__service_settings *settings, const struct ph__init_key *keys,
    size_t num_keys, size_t chunk_bytes, struct ph__snapshot **snapshot_out)
{
    struct ph__snapshot *snapshot = calloc(1, sizeof *snapshot);
    if (snapshot == NULL)
        return ph__out_of_memory("the snapshot of a job");
    ph__service_copy(&settings->service, &settings->share, &snapshot->settings);
    for (size_t i = 0; i < settings->service.num_optimizers; i++)
        snapshot->learning_rates[i] = settings->optimizers[i].learning_rate;
    const ph_status status = fill(snapshot, keys, num_keys, chunk_bytes);
    if (status != PH_OK) {
        ph__snapshot_destroy(snapshot);
        return status;
    }
    *snapshot_out = snapshot;
    return PH_OK;
}

void ph__snapshot_destroy(struct ph__snapshot *snapshot)
{
    if (snapshot == NULL)
        return;
    ph__layout_free_weights(snapshot->layout, snapshot->weights);
    ph__layout_free_weights(snapshot->layout, snapshot->m);
    ph__layout_free_weights(snapshot->layout, snapshot->s);
    ph__layout_destroy(snapshot->layout);
    free(snapshot->chunks);
    free(snapshot->keys);
    free(snapshot);
}

/* Returns the iteration of all chunks. Synchronous: all chunks have made the updates of one iteration. In the
 * other modes each worker's push is an update; the result counts what each worker has done at least. */
static uint64_t iteration_of(const struct ph__snapshot *snapshot)
{
    uint64_t least = UINT64_MAX;
    for (size_t i = 0; i < snapshot->layout->sizes.num_chunks; i++) {
        if (ph__chunk_is_here(&snapshot->layout->chunks[i]) && snapshot->chunks[i].version < least)
            least = snapshot->chunks[i].version;
    }
    if (snapshot->layout->sizes.num_here == 0)
        return 0;
    const struct ph_hub_service *service = &snapshot->settings.service;
    return service->mode == PH_HUB_SYNCHRONOUS ? least : least / service->num_workers;
}

void ph__snapshot_finish(struct ph__snapshot *snapshot)
{
    snapshot->iteration = iteration_of(snapshot);
    for (size_t i = 0; i < snapshot->layout->sizes.num_chunks; i++) {
        const uint32_t key = snapshot->layout->chunks[i].key;
        if (!ph__chunk_is_here(&snapshot->layout->chunks[i]))
            continue;
        snapshot->learning_rates[snapshot->keys[key].optimizer] = snapshot->chunks[i].learning_rate;
    }
}
