#include "train/optimizer_groups.h"

#include <fnmatch.h>

static void apply_group(const struct ph_optimizer_group *group, struct ph_optimizer *optimizer)
{
    optimizer->learning_rate_factor *= group->learning_rate_factor;
    if (group->l2 >= 0)
        optimizer->l2 = group->l2;
    if (group->weight_decay >= 0)
        optimizer->weight_decay = group->weight_decay;
}

struct ph_optimizer ph__optimizer_for(
    const struct ph_optimizer_settings *settings, const char *parameter, bool is_table)
{
    struct ph_optimizer optimizer = {
        .kind = (enum ph_optimizer_kind)settings->kind,
        .is_nesterov = settings->nesterov,
        .momentum = settings->momentum,
        .beta1 = settings->beta1,
        .beta2 = settings->beta2,
        .epsilon = settings->epsilon,
        .weight_decay = settings->weight_decay,
        .l2 = settings->net_l2,
        .learning_rate_factor = 1,
    };
    if (is_table) {
        if (settings->embedding_kind > 0)
            optimizer.kind = (enum ph_optimizer_kind)(settings->embedding_kind - 1);
        optimizer.l2 = settings->embedding_l2;
        optimizer.learning_rate_factor = settings->embedding_learning_rate_factor;
        optimizer.is_whole_table = settings->embedding_scope == PH_SCOPE_WHOLE;
    } else if (optimizer.kind == PH_ROWWISE_ADAGRAD) {
        optimizer.kind = PH_ADAGRAD;
    }
    for (size_t i = 0; i < settings->num_groups; i++)
        if (fnmatch(settings->groups[i].pattern, parameter, 0) == 0)
            apply_group(&settings->groups[i], &optimizer);
    return optimizer;
}
