#include "plan/search/cost_scaled.h"

/* ---- the model ---- */

static ph_status describe(
    void *context, const struct ph__cost_part *parts, size_t count, float *descriptions_out)
{
    const struct ph__cost_model *model = &((struct ph__scaled_cost *)context)->model;
    return model->describe(model->context, parts, count, descriptions_out);
}

static ph_status compute(void *context, const float *sets, size_t count, double *ms_out)
{
    const struct ph__scaled_cost *cost = context;
    PH_TRY(cost->model.compute(cost->model.context, sets, count, ms_out));
    for (size_t i = 0; i < count; i++)
        ms_out[i] *= cost->scale.compute;
    return PH_OK;
}

static ph_status exchange(void *context, enum ph__exchange_way way, const struct ph__topology *topology,
    const double *columns, const double *starts_ms, double *ms_out)
{
    const struct ph__scaled_cost *cost = context;
    const double scale = way == PH_EXCHANGE_FORWARD ? cost->scale.forward : cost->scale.backward;
    PH_TRY(cost->model.exchange(cost->model.context, way, topology, columns, starts_ms, ms_out));
    for (size_t rank = 0; rank < topology->world_size; rank++)
        ms_out[rank] *= scale;
    return PH_OK;
}

struct ph__cost_model ph__scaled_model(struct ph__scaled_cost *cost)
{
    return (struct ph__cost_model){.name = cost->model.name,
        .context = cost,
        .width = cost->model.width,
        .lookup_share = cost->model.lookup_share,
        .describe = describe,
        .compute = compute,
        .exchange = exchange};
}

/* ---- factors ---- */

static struct ph__measured_cost sum_of(const struct ph__measured_cost *measured, size_t world_size)
{
    struct ph__measured_cost sum = {0};
    for (size_t rank = 0; rank < world_size; rank++) {
        sum.compute_ms += measured[rank].compute_ms;
        sum.backward_ms += measured[rank].backward_ms;
        sum.forward_ms += measured[rank].forward_ms;
    }
    return sum;
}

/* Gives the sum over all ranks that the model predicts with these factors. */
static ph_status predict(const struct ph__pricing *pricing, const struct ph__plan *plan,
    const struct ph__cost_scale *scale, struct ph__rank_price *prices, struct ph__measured_cost *sum_out)
{
    struct ph__scaled_cost cost = {*pricing->model, *scale};
    const struct ph__cost_model model = ph__scaled_model(&cost);
    struct ph__pricing scaled = *pricing;
    double slowest_ms;
    scaled.model = &model;
    PH_TRY(ph__plan_price(&scaled, plan, prices, &slowest_ms));
    *sum_out = (struct ph__measured_cost){0};
    for (size_t rank = 0; rank < pricing->topology->world_size; rank++) {
        sum_out->compute_ms += prices[rank].compute_ms;
        sum_out->backward_ms += prices[rank].backward_ms;
        sum_out->forward_ms += prices[rank].forward_ms;
    }
    return PH_OK;
}

static double ratio(double measured, double predicted)
{
    return measured > 0 && predicted > 0 ? measured / predicted : 1;
}

/* Finds the forward factor last: that exchange depends on when each rank starts it, thus on the other times
 * as they are corrected. */
static ph_status find(const struct ph__pricing *pricing, const struct ph__plan *plan,
    const struct ph__measured_cost *sum, struct ph__rank_price *prices, struct ph__cost_scale *scale_out)
{
    struct ph__cost_scale scale = {1, 1, 1};
    struct ph__measured_cost predicted;
    PH_TRY(predict(pricing, plan, &scale, prices, &predicted));
    scale.compute = ratio(sum->compute_ms, predicted.compute_ms);
    scale.backward = ratio(sum->backward_ms, predicted.backward_ms);
    PH_TRY(predict(pricing, plan, &scale, prices, &predicted));
    scale.forward = ratio(sum->forward_ms, predicted.forward_ms);
    *scale_out = scale;
    return PH_OK;
}

ph_status ph__cost_scale_find(const struct ph__pricing *pricing, const struct ph__plan *plan,
    const struct ph__measured_cost *measured, struct ph__cost_scale *scale_out)
{
    const size_t world_size = pricing->topology->world_size;
    const struct ph__measured_cost sum = sum_of(measured, world_size);
    struct ph__arena arena = {0};
    struct ph__rank_price *prices = ph__arena_alloc_array(&arena, world_size, sizeof *prices);
    const ph_status status = prices != NULL ? find(pricing, plan, &sum, prices, scale_out) : PH_ERROR_MEMORY;
    ph__arena_fini(&arena);
    return status;
}
