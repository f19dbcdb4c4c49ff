#include "plan/plan_units.h"

#include <fnmatch.h>
#include <string.h>

#include "base/sizes.h"

#define MODE_TEXT(name, text) text,
static const char *const mode_names[] = {PH_DENSE_MODE_LIST(MODE_TEXT)};
#undef MODE_TEXT

const char *ph__dense_mode_name(enum ph__dense_mode mode)
{
    return mode_names[mode];
}

bool ph__dense_mode_groups(enum ph__dense_mode mode)
{
    return mode == PH_DENSE_HYBRID || mode == PH_DENSE_KEEP_AFTER_FORWARD;
}

/* A unit under construction takes its parameters from the facts. */
struct making {
    struct ph__plan *plan;
    const struct ph__dense_facts *dense;
    size_t num_dense, num_taken;
    bool *is_taken;                        /* (num_dense) */
    struct ph__unit_parameter *parameters; /* (num_dense) of all units, one behind the other */
};

/* ---- cuts ---- */

static size_t numbers_of(const struct ph__unit_parameter *parameter)
{
    return parameter->rows * parameter->columns;
}

/* Returns the row nearest to number `target` of the parameter where a block begins, or the last row's end. */
static size_t nearest_bound(const struct ph__unit_parameter *parameter, size_t target)
{
    const size_t block = ph__block_rows(parameter->columns);
    const size_t row = target / parameter->columns;
    return ph__min(parameter->rows, (row + block / 2) / block * block);
}

/* Cuts a unit into group_size parts: member m's end lies as near as blocks allow to m + 1 equal shares. */
static void cut(const struct ph__plan_unit *unit, size_t group_size, size_t *bounds)
{
    const size_t num_numbers = ph__unit_numbers(unit);
    for (size_t m = 1; m <= group_size; m++) {
        size_t target = ph__range_start(num_numbers, m, group_size);
        for (size_t k = 0; k < unit->num_parameters; k++) {
            const struct ph__unit_parameter *parameter = &unit->parameters[k];
            const size_t here = ph__min(target, numbers_of(parameter));
            size_t *bound = bounds + k * (group_size + 1) + m;
            *bound = here == numbers_of(parameter) ? parameter->rows : nearest_bound(parameter, here);
            target -= here;
        }
    }
}

size_t ph__unit_own_numbers(const struct ph__plan_unit *unit, size_t member)
{
    size_t count = 0;
    for (size_t k = 0; k < unit->num_parameters; k++)
        count += (unit->parameters[k].bounds[member + 1] - unit->parameters[k].bounds[member]) *
                 unit->parameters[k].columns;
    return count;
}

size_t ph__unit_numbers(const struct ph__plan_unit *unit)
{
    size_t count = 0;
    for (size_t k = 0; k < unit->num_parameters; k++)
        count += numbers_of(&unit->parameters[k]);
    return count;
}

/* ---- units ---- */

/* Begins a unit that will take parameters; its name is borrowed from the plan's arena. */
static struct ph__plan_unit *begin_unit(struct making *making, const char *name)
{
    const struct ph__dense_settings *settings = &making->plan->units.settings;
    struct ph__plan_unit *unit = &making->plan->units.units[making->plan->units.num_units++];
    *unit = (struct ph__plan_unit){
        .name = name, .wire = settings->wire, .parameters = making->parameters + making->num_taken};
    return unit;
}

static ph_status take(struct making *making, struct ph__plan_unit *unit, size_t index)
{
    const struct ph__dense_facts *facts = &making->dense[index];
    const char *name = ph__arena_strdup(&making->plan->arena, facts->name);
    if (name == NULL)
        return PH_ERROR_MEMORY;
    if (!facts->is_element_wise)
        return ph_fail(PH_ERROR_CONFIG,
            "mode '%s' cuts '%s', whose optimizer is not element-wise: use another optimizer for it, or "
            "mode: "
            "replicated",
            ph__dense_mode_name(making->plan->units.settings.mode), name);
    making->parameters[making->num_taken++] = (struct ph__unit_parameter){.name = name,
        .rows = facts->rows,
        .columns = facts->columns,
        .num_slots = facts->num_slots,
        .is_read_backward = facts->is_read_backward,
        .first_use = facts->first_use};
    making->is_taken[index] = true;
    unit->num_parameters++;
    return PH_OK;
}

static ph_status end_unit(struct making *making, struct ph__plan_unit *unit)
{
    const size_t group_size = making->plan->units.settings.group_size, count = unit->num_parameters;
    struct ph__unit_parameter *parameters = making->parameters + (making->num_taken - count);
    size_t *bounds = ph__arena_alloc_array(&making->plan->arena, count * (group_size + 1), sizeof *bounds);
    if (bounds == NULL)
        return PH_ERROR_MEMORY;
    for (size_t k = 0; k < count; k++)
        parameters[k].bounds = bounds + k * (group_size + 1);
    if (unit->name == NULL)
        unit->name = parameters[0].name;
    cut(unit, group_size, bounds);
    return PH_OK;
}

static ph_status make_named(struct making *making, const struct ph__unit_rule *rule)
{
    struct ph__plan_unit *unit = begin_unit(making, rule->pattern);
    if (rule->wire != PH_UNIT_WIRE_OF_JOB)
        unit->wire = rule->wire;
    for (size_t i = 0; i < making->num_dense; i++)
        if (!making->is_taken[i] && fnmatch(rule->pattern, making->dense[i].name, 0) == 0)
            PH_TRY(take(making, unit, i));
    if (unit->num_parameters == 0)
        return ph_fail(PH_ERROR_CONFIG, "unit '%s' fits no dense parameter that is left", rule->pattern);
    if (unit->num_parameters > PH_UNIT_MOST_PARAMETERS)
        return ph_fail(PH_ERROR_CONFIG,
            "unit '%s' has %zu parameters, but a unit has at most %d: name smaller ones", rule->pattern,
            unit->num_parameters, (int)PH_UNIT_MOST_PARAMETERS);
    return end_unit(making, unit);
}

/* Returns the length of a name's scope: "top.0" of "top.0.weight". */
static size_t scope_length(const char *name)
{
    const char *dot = strrchr(name, '.');
    return dot != NULL ? (size_t)(dot - name) : 0;
}

/* Finds the run of parameters from `first` on that have its scope: a layer is not cut. */
static size_t end_of_layer(const struct making *making, size_t first, uint64_t *bytes_out)
{
    const char *name = making->dense[first].name;
    const size_t length = scope_length(name);
    size_t end = first;
    *bytes_out = 0;
    while (end < making->num_dense && !making->is_taken[end] && end - first < PH_UNIT_MOST_PARAMETERS &&
           (end == first || (length > 0 && scope_length(making->dense[end].name) == length &&
                                strncmp(making->dense[end].name, name, length) == 0))) {
        *bytes_out += (uint64_t)making->dense[end].rows * making->dense[end].columns * sizeof(float);
        end++;
    }
    return end;
}

/* Makes units of the parameters that no rule has taken: layer by layer, up to unit_bytes. */
static ph_status make_rest(struct making *making)
{
    const uint64_t most_bytes = making->plan->units.settings.unit_bytes;
    struct ph__plan_unit *unit = NULL;
    uint64_t bytes = 0, more;
    for (size_t i = 0, end; i < making->num_dense; i = end) {
        end = i + 1;
        if (making->is_taken[i])
            continue;
        end = end_of_layer(making, i, &more);
        const bool is_full = unit != NULL && (bytes + more > most_bytes ||
                                                 unit->num_parameters + (end - i) > PH_UNIT_MOST_PARAMETERS);
        if (is_full)
            PH_TRY(end_unit(making, unit));
        if (unit == NULL || is_full) {
            unit = begin_unit(making, NULL);
            bytes = 0;
        }
        for (size_t k = i; k < end; k++)
            PH_TRY(take(making, unit, k));
        bytes += more;
    }
    return unit != NULL ? end_unit(making, unit) : PH_OK;
}

static ph_status check_group(const struct ph__topology *topology, const struct ph__dense_settings *settings)
{
    if (topology->world_size % settings->group_size == 0)
        return PH_OK;
    return ph_fail(PH_ERROR_CONFIG, "a group of %zu ranks does not divide the %zu ranks evenly",
        settings->group_size, topology->world_size);
}

/* Copies the settings, with their defaults filled in. */
static ph_status settle(struct ph__plan *plan, const struct ph__dense_settings *given)
{
    struct ph__dense_settings *settings = &plan->units.settings;
    struct ph__unit_rule *rules = ph__arena_alloc_array(&plan->arena, given->num_rules, sizeof *rules);
    if (rules == NULL)
        return PH_ERROR_MEMORY;
    *settings = *given;
    settings->rules = rules;
    for (size_t i = 0; i < given->num_rules; i++) {
        rules[i] = given->rules[i];
        rules[i].pattern = ph__arena_strdup(&plan->arena, given->rules[i].pattern);
        if (rules[i].pattern == NULL)
            return PH_ERROR_MEMORY;
    }
    if (settings->unit_bytes == 0)
        settings->unit_bytes = PH_UNIT_BYTES;
    if (!ph__dense_mode_groups(settings->mode))
        settings->group_size = plan->topology.world_size;
    else if (settings->group_size == 0)
        settings->group_size =
            settings->mode == PH_DENSE_HYBRID ? plan->topology.ranks_per_host : plan->topology.world_size;
    return check_group(&plan->topology, settings);
}

ph_status ph__plan_units_make(struct ph__plan *plan, const struct ph__dense_settings *settings,
    const struct ph__dense_facts *dense, size_t num_dense)
{
    struct making making = {.plan = plan, .dense = dense, .num_dense = num_dense};
    PH_TRY(settle(plan, settings));
    plan->units.num_units = 0;
    if (settings->mode == PH_DENSE_REPLICATED)
        return PH_OK;
    plan->units.units =
        ph__arena_alloc_array(&plan->arena, num_dense + settings->num_rules, sizeof *plan->units.units);
    making.parameters = ph__arena_alloc_array(&plan->arena, num_dense, sizeof *making.parameters);
    making.is_taken = ph__arena_alloc_array(&plan->arena, num_dense, sizeof *making.is_taken);
    if (plan->units.units == NULL || making.parameters == NULL || making.is_taken == NULL)
        return PH_ERROR_MEMORY;
    for (size_t i = 0; i < num_dense; i++)
        making.is_taken[i] = dense[i].is_of_tower && plan->num_towers > 0;
    for (size_t i = 0; i < settings->num_rules; i++)
        PH_TRY(make_named(&making, &plan->units.settings.rules[i]));
    return make_rest(&making);
}

const struct ph__unit_parameter *ph__plan_units_find(
    const struct ph__plan_units *units, const char *name, const struct ph__plan_unit **unit_out)
{
    for (size_t u = 0; u < units->num_units; u++)
        for (size_t k = 0; k < units->units[u].num_parameters; k++)
            if (strcmp(units->units[u].parameters[k].name, name) == 0) {
                *unit_out = &units->units[u];
                return &units->units[u].parameters[k];
            }
    return NULL;
}
