#include "train/config/optimizer_groups.h"

#include <fnmatch.h>

static bool is_in_group(const struct ph_optimizer_group *group, const char *parameter)
{
    return fnmatch(group->pattern, parameter, 0) == 0;
}

static void apply_group(const struct ph_optimizer_group *group, struct ph_optimizer *optimizer)
{
    optimizer->learning_rate_factor *= group->learning_rate_factor;
    if (group->l2 >= 0)
        optimizer->l2 = group->l2;
    if (group->weight_decay >= 0)
        optimizer->rule.weight_decay = group->weight_decay;
}

/* Relies on both enums listing the kinds in one order. */
static enum ph_optimizer_kind table_kind(const struct ph_optimizer_settings *settings)
{
    _Static_assert(PH_EMBEDDING_ADAMW - PH_EMBEDDING_SGD == PH_ADAMW - PH_SGD, "other kinds of tables");
    if (settings->embedding_kind == PH_EMBEDDING_SAME)
        return settings->rule.kind;
    return (enum ph_optimizer_kind)(settings->embedding_kind - PH_EMBEDDING_SGD);
}

struct ph_optimizer ph__optimizer_for(
    const struct ph_optimizer_settings *settings, const char *parameter, bool is_table)
{
    struct ph_optimizer optimizer = {
        .rule = settings->rule,
        .l2 = settings->net_l2,
        .learning_rate_factor = 1,
    };
    if (is_table) {
        optimizer.rule.kind = table_kind(settings);
        optimizer.l2 = settings->embedding_l2;
        optimizer.learning_rate_factor = settings->embedding_learning_rate_factor;
        optimizer.is_whole_table = settings->embedding_scope == PH_SCOPE_WHOLE;
    } else if (optimizer.rule.kind == PH_ROWWISE_ADAGRAD) {
        optimizer.rule.kind = PH_ADAGRAD;
    }
    for (size_t i = 0; i < settings->num_groups; i++)
        if (is_in_group(&settings->groups[i], parameter))
            apply_group(&settings->groups[i], &optimizer);
    return optimizer;
}

ph_status ph__optimizer_groups_check(
    const struct ph_optimizer_settings *settings, const char *const *parameters, size_t num_parameters)
{
    for (size_t i = 0; i < settings->num_groups; i++) {
        bool is_any = false;
        for (size_t p = 0; p < num_parameters && !is_any; p++)
            is_any = is_in_group(&settings->groups[i], parameters[p]);
        if (!is_any)
            return ph_fail(PH_ERROR_CONFIG,
                "optimizer.groups[%zu].pattern: '%s' matches no parameter of the model (phloem inspect lists "
                "them)",
                i, settings->groups[i].pattern);
    }
    return PH_OK;
}
