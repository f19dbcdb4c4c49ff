/* Slots that an optimizer keeps beside each weight: m, a running mean of gradients; s, a running mean or sum
 * of their squares. */
#ifndef PH_HUB_OPTIMIZER_SLOTS_H
#define PH_HUB_OPTIMIZER_SLOTS_H

#include <stdbool.h>
#include <stddef.h>

#include "phloem/hub.h"

static inline bool ph__optimizer_is_adam(const struct ph_hub_optimizer *optimizer)
{
    return !optimizer->is_none && (optimizer->rule.kind == PH_ADAM || optimizer->rule.kind == PH_ADAMW);
}

static inline bool ph__optimizer_has_m(const struct ph_hub_optimizer *optimizer)
{
    return ph__optimizer_is_adam(optimizer) || (!optimizer->is_none && optimizer->rule.kind == PH_MOMENTUM);
}

static inline bool ph__optimizer_has_s(const struct ph_hub_optimizer *optimizer)
{
    return ph__optimizer_is_adam(optimizer) || (!optimizer->is_none && optimizer->rule.kind == PH_ADAGRAD);
}

static inline bool ph__service_has_m(const struct ph_hub_service *service)
{
    for (size_t i = 0; i < service->num_optimizers; i++) {
        if (ph__optimizer_has_m(&service->optimizers[i]))
            return true;
    }
    return false;
}

static inline bool ph__service_has_s(const struct ph_hub_service *service)
{
    for (size_t i = 0; i < service->num_optimizers; i++) {
        if (ph__optimizer_has_s(&service->optimizers[i]))
            return true;
    }
    return false;
}

#endif
