/* Checks the settings of a service, and clears those without effect: see protocol.h. */
#include <math.h>
#include <string.h>

#include "hub/layout/optimizer_slots.h"
#include "hub/wire/protocol.h"

/* ---- optimizers ---- */

static bool is_momentum(const struct ph_hub_optimizer *optimizer)
{
    return !optimizer->is_none && optimizer->rule.kind == PH_MOMENTUM;
}

/* Returns the optimizer with 0 for the members that its kind does not use. */
static struct ph_hub_optimizer used_members(const struct ph_hub_optimizer *optimizer)
{
    if (optimizer->is_none)
        return (struct ph_hub_optimizer){.is_none = true};
    struct ph_hub_optimizer used = *optimizer;
    if (!is_momentum(optimizer)) {
        used.rule.is_nesterov = false;
        used.rule.momentum = 0;
    }
    if (optimizer->rule.kind != PH_ADAMW)
        used.rule.weight_decay = 0;
    if (!ph__optimizer_has_s(optimizer))
        used.rule.epsilon = 0;
    if (!ph__optimizer_is_adam(optimizer))
        used.rule.beta1 = used.rule.beta2 = 0;
    return used;
}

static ph_status check_optimizer(const struct ph_hub_service *service, size_t index)
{
    const struct ph_hub_optimizer used = used_members(&service->optimizers[index]);
    const bool has_betas = ph__optimizer_is_adam(&used), has_epsilon = ph__optimizer_has_s(&used);
    const float beta1 = (float)used.rule.beta1, beta2 = (float)used.rule.beta2;
    const float epsilon = (float)used.rule.epsilon, momentum = (float)used.rule.momentum;
    const float weight_decay = (float)used.rule.weight_decay;
    const struct {
        const char *name;
        float value;
        bool is_good;
        const char *wanted;
    } members[] = {
        {"learning_rate", used.learning_rate, isfinite(used.learning_rate), "a finite number"},
        {"momentum", momentum, isfinite(momentum), "a finite number"},
        {"beta1", beta1, !has_betas || (beta1 >= 0 && beta1 < 1), "at least 0 and below 1"},
        {"beta2", beta2, !has_betas || (beta2 >= 0 && beta2 < 1), "at least 0 and below 1"},
        {"epsilon", epsilon, !has_epsilon || (epsilon > 0 && isfinite(epsilon)), "a finite number above 0"},
        {"l2", used.l2, isfinite(used.l2), "a finite number"},
        {"weight_decay", weight_decay, isfinite(weight_decay), "a finite number"},
    };
    if (!used.is_none && (used.rule.kind >= PH_OPTIMIZER_COUNT || used.rule.kind == PH_ROWWISE_ADAGRAD))
        return ph_fail(PH_ERROR_USAGE,
            "service '%s': optimizer %zu is of a kind that the hub does not support", service->name, index);
    for (size_t i = 0; i < sizeof members / sizeof *members; i++) {
        if (!members[i].is_good)
            return ph_fail(PH_ERROR_USAGE, "service '%s': optimizer %zu: %s is %g; it must be %s",
                service->name, index, members[i].name, (double)members[i].value, members[i].wanted);
    }
    return PH_OK;
}

/* ---- the rest ---- */

static ph_status check_words(const struct ph_hub_service *service)
{
    if (service->mode > PH_HUB_BOUNDED || service->order > PH_HUB_ARRIVAL_ORDER ||
        service->on_death > PH_HUB_SHRINK)
        return ph_fail(PH_ERROR_USAGE, "service '%s': unknown mode, order or on_death", service->name);
    if (!(service->clip_norm >= 0) || !isfinite(service->clip_norm))
        return ph_fail(PH_ERROR_USAGE,
            "service '%s': clip_norm is %g; it must be a finite number, at least 0", service->name,
            (double)service->clip_norm);
    if (service->clip_norm > 0 && service->mode != PH_HUB_SYNCHRONOUS)
        return ph_fail(PH_ERROR_USAGE, "service '%s': clip_norm needs the synchronous mode", service->name);
    return PH_OK;
}

ph_status ph__service_check_name(const char *name)
{
    if (name == NULL || *name == '\0' || strlen(name) > PH_HUB_MAX_NAME)
        return ph_fail(PH_ERROR_USAGE, "a service's name must have 1 to %d bytes", PH_HUB_MAX_NAME);
    return PH_OK;
}

ph_status ph__service_check(const struct ph_hub_service *service)
{
    PH_TRY(ph__service_check_name(service->name));
    if (service->num_workers < 1 || service->num_workers > PH_HUB_MAX_WORKERS)
        return ph_fail(PH_ERROR_USAGE, "service '%s': num_workers is %u; it must be 1 to %d", service->name,
            service->num_workers, PH_HUB_MAX_WORKERS);
    if (service->chunk_bytes % PH_ALIGNMENT != 0 || service->chunk_bytes > PH_HUB_MAX_CHUNK_BYTES)
        return ph_fail(PH_ERROR_USAGE,
            "service '%s': chunk_bytes is %u; it must be a multiple of %d up to %u, or 0 for the hub's "
            "choice",
            service->name, service->chunk_bytes, PH_ALIGNMENT, PH_HUB_MAX_CHUNK_BYTES);
    if (service->checkpoint_every > PH_HUB_MAX_PERIOD)
        return ph_fail(PH_ERROR_USAGE, "service '%s': checkpoint_every is %llu; it must be at most %llu",
            service->name, (unsigned long long)service->checkpoint_every, PH_HUB_MAX_PERIOD);
    if (service->depth > 2)
        return ph_fail(
            PH_ERROR_USAGE, "service '%s': depth is %u; it must be 1 or 2", service->name, service->depth);
    if (service->num_optimizers < 1 || service->num_optimizers > PH_HUB_MAX_OPTIMIZERS)
        return ph_fail(PH_ERROR_USAGE, "service '%s': num_optimizers is %zu; it must be 1 to %d",
            service->name, service->num_optimizers, PH_HUB_MAX_OPTIMIZERS);
    if (service->optimizers == NULL)
        return ph_fail(PH_ERROR_USAGE, "service '%s': optimizers is NULL", service->name);
    for (size_t i = 0; i < service->num_optimizers; i++)
        PH_TRY(check_optimizer(service, i));
    return check_words(service);
}

ph_status ph__service_check_share(const struct ph_hub_service *service, const struct ph__hub_share *share)
{
    if (share->num_hubs > PH_HUB_MAX_HUBS || share->hub >= share->num_hubs)
        return ph_fail(PH_ERROR_USAGE, "hub %u of %u: a job must have 1 to %d hubs", share->hub + 1u,
            share->num_hubs, PH_HUB_MAX_HUBS);
    if (share->num_hubs > 1 && service->clip_norm > 0)
        return ph_fail(PH_ERROR_USAGE,
            "service '%s': clip_norm needs all keys on one hub: set it to 0, or do not use several hubs",
            service->name);
    return PH_OK;
}

void ph__service_copy(const struct ph_hub_service *service, const struct ph__hub_share *share,
    struct ph__service_settings *settings_out)
{
    struct ph__service_settings settings = {.service = *service, .share = *share};
    strcpy(settings.name, service->name); /* length was checked */
    for (size_t i = 0; i < service->num_optimizers; i++)
        settings.optimizers[i] = used_members(&service->optimizers[i]);
    if (service->mode != PH_HUB_BOUNDED)
        settings.service.staleness = 0;
    *settings_out = settings;
    settings_out->service.name = settings_out->name;
    settings_out->service.optimizers = settings_out->optimizers;
    if (settings_out->service.depth == 0)
        settings_out->service.depth = 1;
}

bool ph__service_is_same(const struct ph__service_settings *a, const struct ph__service_settings *b)
{
    unsigned char bytes[2][PH_HUB_MAX_BODY];
    struct ph__wire_writer writers[2];
    ph__wire_writer_init(&writers[0], bytes[0], sizeof bytes[0]);
    ph__wire_writer_init(&writers[1], bytes[1], sizeof bytes[1]);
    ph__put_service(&writers[0], &a->service, &a->share);
    ph__put_service(&writers[1], &b->service, &b->share);
    return writers[0].used == writers[1].used && memcmp(bytes[0], bytes[1], writers[0].used) == 0;
}

const char *ph__service_mode_name(enum ph_hub_mode mode)
{
    static const char *const names[] = {[PH_HUB_SYNCHRONOUS] = "synchronous",
        [PH_HUB_ASYNCHRONOUS] = "asynchronous",
        [PH_HUB_BOUNDED] = "bounded"};
    return names[mode];
}
