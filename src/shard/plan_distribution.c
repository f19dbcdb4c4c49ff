#include "shard/plan_distribution.h"

#include <stdlib.h>

#include "base/sizes.h"
#include "shard/dense/global_loss.h"
#include "shard/dense/global_norm.h"
#include "shard/dense/gradient_reduce.h"
#include "shard/dense/share_squares.h"
#include "shard/dense/sync_batch_norm.h"
#include "shard/lookup/host_sums.h"
#include "shard/lookup/request_exchange.h"
#include "shard/lookup/vector_exchange.h"
#include "shard/start_early.h"
#include "shard/wait_late.h"

/* What is on its way to this rank for a lookup of which it has no shards: nothing of its own reaches that, and yet its gradient
 * goes to others. 0: it has some. */
static ph_value only_in_flight(const struct ph_vector_exchange *exchange)
{
    if (exchange->sums != NULL && exchange->sums->own_count == 0)
        return exchange->sums->in_flight;
    return exchange->own_count == 0 && exchange->num_blocks > 0 ? exchange->in_flight : 0;
}

/* A rank that has no shards for a lookup sends its gradients all the same: it differentiates by what is on its way to it. */
static void list_in_flight(
    struct ph_sharding *sharding, struct ph_builder *builder, const ph_value **more_out, size_t *num_more_out)
{
    ph_value *more = ph__arena_alloc_array(&sharding->arena, sharding->num_exchanges + 1, sizeof *more);
    *num_more_out = 0;
    *more_out = more;
    if (more == NULL)
        ph_builder_fail(builder, PH_ERROR_MEMORY, "no memory for a program's shards");
    for (size_t i = 0; more != NULL && i < sharding->num_exchanges; i++)
        if (only_in_flight(sharding->exchanges[i]) != 0)
            more[(*num_more_out)++] = only_in_flight(sharding->exchanges[i]);
}

static void spread(void *context, struct ph_builder *builder, const ph_value **more_out, size_t *num_more_out)
{
    ph__shard_lookups(context, builder);
    ph__sync_batch_norms(context, builder);
    ph__share_losses(context, builder);
    list_in_flight(context, builder, more_out, num_more_out);
}

/* Gradients on their way from a rank without shards: nothing reads them, and the rank waits until they have gone. */
static void wait_for_gradients(
    struct ph_sharding *sharding, struct ph_builder *builder, ph_value in_flight, ph_value sent)
{
    for (size_t i = 0; i < sharding->num_exchanges; i++) {
        const struct ph_vector_exchange *exchange = sharding->exchanges[i];
        const struct ph_exchange_attributes attributes = {sharding->exchanges[i], exchange->own_count};
        const struct ph_host_attributes of_host = {exchange->sums, 0};
        if (only_in_flight(exchange) != in_flight)
            continue;
        if (exchange->sums != NULL)
            ph__host_gradient_wait(builder, &of_host, sent);
        else
            ph__gradient_wait(builder, &attributes, sent);
    }
}

static void reduce(
    void *context, struct ph_builder *builder, size_t count, const ph_value *parameters, ph_value *gradients)
{
    const struct ph_sharding *sharding = context;
    if (sharding->overlaps)
        ph__start_early(builder);
    for (size_t i = 0; i < count; i++)
        if (gradients[i] != 0 && ph__builder_declaration(builder, parameters[i]) == NULL)
            wait_for_gradients(context, builder, parameters[i], gradients[i]);
    ph__reduce_gradients(context, builder, count, parameters, gradients);
}

static void complete(void *context, struct ph_builder *builder)
{
    const struct ph_sharding *sharding = context;
    ph__share_norms(context, builder);
    ph__share_squares(context, builder);
    if (sharding->overlaps)
        ph__wait_late(builder);
}

static ph_status poll(void *context)
{
    return ph__comm_progress(context);
}

/* Requests of the first batch are not known yet: as many as this rank's own ids, and all ranks have as many; they grow. */
static ph_status create_workspace(void *context, struct ph_executor *executor, size_t batch_size,
    size_t num_ids, struct ph_workspace **workspace_out)
{
    const struct ph_sharding *sharding = context;
    const struct ph_requests requests = {
        .num_samples = batch_size, .num_global_ids = num_ids * sharding->world_size, .num_ids = num_ids};
    ph__executor_poll(executor, poll, sharding->comm);
    return ph__workspace_create(
        executor, ph__divide_up(batch_size, sharding->world_size), num_ids, &requests, workspace_out);
}

static ph_status bind(
    void *context, struct ph_workspace *workspace, const struct ph_batch *batch, uint64_t seed, uint64_t step)
{
    struct ph_requests requests;
    PH_TRY(ph__requests_exchange(context, batch, &requests));
    return ph__workspace_bind(workspace, batch, &requests, seed, step);
}

ph_status ph__distribution_create(
    const struct ph_distribution_options *options, struct ph_distribution **distribution_out)
{
    struct ph_distribution *distribution = calloc(1, sizeof *distribution);
    struct ph_sharding *sharding;
    if (distribution == NULL)
        return ph_fail(PH_ERROR_MEMORY, "no memory for a program's shards");
    const ph_status status = ph__sharding_create(options, &sharding);
    if (status != PH_OK) {
        free(distribution);
        return status;
    }
    *distribution = (struct ph_distribution){sharding, spread, reduce, complete, create_workspace, bind};
    *distribution_out = distribution;
    return PH_OK;
}

void ph__distribution_destroy(struct ph_distribution *distribution)
{
    if (distribution == NULL)
        return;
    ph__sharding_destroy(distribution->context);
    free(distribution);
}
