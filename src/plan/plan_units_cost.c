/* Bytes that units take in memory and on the wire, and the choice of a mode by the former. */
#include "base/sizes.h"
#include "plan/plan_units.h"

enum { NUMBER_BYTES = sizeof(float) };

static bool frees_parameters(enum ph__dense_mode mode)
{
    return mode == PH_DENSE_FULL || mode == PH_DENSE_HYBRID;
}

/* Returns the place in forward of a unit's first use. */
static size_t first_use(const struct ph__plan_unit *unit)
{
    size_t first = SIZE_MAX;
    for (size_t k = 0; k < unit->num_parameters; k++)
        first = ph__min(first, unit->parameters[k].first_use);
    return first;
}

/* Returns the unit that forward uses last, which keeps its parameters for backward; num_units: none. */
static size_t last_unit(const struct ph__plan_units *units)
{
    size_t last = units->num_units;
    for (size_t u = 0; u < units->num_units; u++) {
        const size_t first = first_use(&units->units[u]);
        if (first < SIZE_MAX && (last == units->num_units || first > first_use(&units->units[last])))
            last = u;
    }
    return last;
}

/* ---- memory ---- */

/* Counts what a member holds of all units, in numbers of weights and of slots. */
static void count_held(
    const struct ph__plan_units *units, size_t member, uint64_t *weights_out, uint64_t *slots_out)
{
    *weights_out = *slots_out = 0;
    for (size_t u = 0; u < units->num_units; u++)
        for (size_t k = 0; k < units->units[u].num_parameters; k++) {
            const struct ph__unit_parameter *parameter = &units->units[u].parameters[k];
            const uint64_t own =
                (uint64_t)(parameter->bounds[member + 1] - parameter->bounds[member]) * parameter->columns;
            *weights_out += own;
            *slots_out += own * parameter->num_slots;
        }
}

static uint64_t largest_unit(const struct ph__plan_units *units)
{
    uint64_t largest = 0;
    for (size_t u = 0; u < units->num_units; u++)
        largest = ph__max(largest, ph__unit_numbers(&units->units[u]));
    return largest;
}

/* Replicated parameters: packed copies for forward and backward; beside the gradients their sums, and the
 * staging memory of these. */
static struct ph__dense_bytes replicated_bytes(const struct ph__dense_facts *dense, size_t num_dense)
{
    struct ph__dense_bytes bytes = {0};
    for (size_t i = 0; i < num_dense; i++) {
        const uint64_t weights = (uint64_t)dense[i].rows * dense[i].columns * NUMBER_BYTES;
        bytes.parameters += weights;
        bytes.slots += weights * dense[i].num_slots;
        bytes.gradients += 3 * weights;
        bytes.gathered += 2 * weights;
    }
    return bytes;
}

static struct ph__dense_bytes bytes_of(const struct ph__plan_units *units,
    const struct ph__dense_facts *dense, size_t num_dense, size_t num_micro_batches)
{
    const struct ph__dense_settings *settings = &units->settings;
    struct ph__dense_bytes bytes = {0};
    uint64_t weights, slots, all = 0;
    if (settings->mode == PH_DENSE_REPLICATED)
        return replicated_bytes(dense, num_dense);
    for (size_t member = 0; member < settings->group_size; member++) {
        count_held(units, member, &weights, &slots);
        bytes.parameters = ph__max(bytes.parameters, weights * NUMBER_BYTES);
        bytes.slots = ph__max(bytes.slots, slots * NUMBER_BYTES);
    }
    for (size_t u = 0; u < units->num_units; u++)
        all += ph__unit_numbers(&units->units[u]) * NUMBER_BYTES;
    const uint64_t two_units = 2 * largest_unit(units) * NUMBER_BYTES;
    bytes.gradients = bytes.parameters + two_units;
    if (num_micro_batches > 1 && !settings->reduces_often)
        bytes.gradients += all; /* summed whole until the step's last micro-batch */
    bytes.gathered = frees_parameters(settings->mode) ? two_units : all + two_units / 2;
    return bytes;
}

uint64_t ph__dense_bytes_sum(const struct ph__dense_bytes *bytes)
{
    return bytes->parameters + bytes->slots + bytes->gradients + bytes->gathered;
}

/* ---- the choice ---- */

bool ph__dense_may_be_cut(const struct ph__dense_facts *dense, size_t num_dense)
{
    bool is_fine = true;
    for (size_t i = 0; i < num_dense; i++)
        is_fine = is_fine && dense[i].is_element_wise;
    return is_fine;
}

ph_status ph__dense_bytes_in_mode(const struct ph__plan *plan, enum ph__dense_mode mode,
    const struct ph__dense_facts *dense, size_t num_dense, size_t num_micro_batches,
    struct ph__dense_bytes *bytes_out)
{
    struct ph__dense_settings settings = plan->units.settings;
    struct ph__plan trial = {.topology = plan->topology};
    if (mode != settings.mode)
        settings.group_size = 0;
    settings.mode = mode;
    const ph_status status = ph__plan_units_make(&trial, &settings, dense, num_dense);
    *bytes_out = bytes_of(&trial.units, dense, num_dense, num_micro_batches);
    ph__plan_fini(&trial);
    return status;
}

ph_status ph__dense_mode_choose(const struct ph__plan *plan, const struct ph__table_facts *tables,
    const struct ph__dense_facts *dense, size_t num_dense, size_t num_micro_batches, uint64_t rank_bytes,
    enum ph__dense_mode *mode_out)
{
    static const enum ph__dense_mode modes[] = {
        PH_DENSE_REPLICATED, PH_DENSE_ZERO1, PH_DENSE_HYBRID, PH_DENSE_FULL};
    const size_t num_modes = ph__dense_may_be_cut(dense, num_dense) ? sizeof modes / sizeof *modes : 1;
    size_t fullest;
    uint64_t table_bytes;
    struct ph__dense_bytes bytes;
    PH_TRY(ph__plan_fullest(plan, tables, &fullest, &table_bytes));
    for (size_t i = 0; i < num_modes; i++) {
        PH_TRY(ph__dense_bytes_in_mode(plan, modes[i], dense, num_dense, num_micro_batches, &bytes));
        if (table_bytes + ph__dense_bytes_sum(&bytes) <= rank_bytes) {
            *mode_out = modes[i];
            return PH_OK;
        }
    }
    *mode_out = modes[num_modes - 1];
    return PH_OK;
}

/* ---- traffic ---- */

struct traffic {
    const struct ph__topology *topology;
    const struct ph__dense_settings *settings;
    ph__traffic_visit visit;
    void *context;
};

/* Returns the bytes of a number of a unit; of_job: where the unit leaves them to the job. */
static double number_bytes(const struct ph__plan_unit *unit, double of_job)
{
    if (unit->wire == PH_UNIT_WIRE_OF_JOB)
        return of_job;
    return unit->wire == PH_UNIT_WIRE_FP32 ? 4 : 2;
}

/* Counts a member's numbers of a unit, or of those parameters alone that backward reads. */
static double own_numbers(const struct ph__plan_unit *unit, size_t member, bool is_backward)
{
    double count = 0;
    for (size_t k = 0; k < unit->num_parameters; k++) {
        const struct ph__unit_parameter *parameter = &unit->parameters[k];
        if (!is_backward || parameter->is_read_backward)
            count += (double)(parameter->bounds[member + 1] - parameter->bounds[member]) *
                     (double)parameter->columns;
    }
    return count;
}

/* Visits `times` gathers of a unit in each group: every member sends its shards to all others. */
static void visit_gather(
    const struct traffic *traffic, const struct ph__plan_unit *unit, bool is_backward, double times)
{
    const size_t size = traffic->settings->group_size;
    for (size_t rank = 0; rank < traffic->topology->world_size; rank++)
        for (size_t k = 1; k < size; k++) {
            const size_t place = rank % size, to = rank - place + (place + k) % size;
            traffic->visit(traffic->context, PH_TRAFFIC_PARAMETERS, rank, to,
                times * number_bytes(unit, 4) * own_numbers(unit, place, is_backward));
        }
}

/* Visits `times` reductions of a unit in each group: every member sends each other one the gradients of its
 * shards, of `each` bytes. */
static void visit_reduction(
    const struct traffic *traffic, const struct ph__plan_unit *unit, double each, double times)
{
    const size_t size = traffic->settings->group_size;
    for (size_t rank = 0; rank < traffic->topology->world_size; rank++)
        for (size_t k = 1; k < size; k++) {
            const size_t place = rank % size, member = (place + k) % size;
            traffic->visit(traffic->context, PH_TRAFFIC_DENSE, rank, rank - place + member,
                times * each * own_numbers(unit, member, false));
        }
}

/* Visits the sums of all shards' gradients over the groups. */
static void visit_peers(
    const struct traffic *traffic, const struct ph__plan_units *units, const struct ph__plan_dense *dense)
{
    const size_t size = traffic->settings->group_size;
    for (size_t member = 0; member < size; member++) {
        const struct ph__plan_group group = {member, size, traffic->topology->world_size / size};
        size_t count = 0;
        for (size_t u = 0; u < units->num_units; u++)
            count += ph__unit_own_numbers(&units->units[u], member);
        ph__sum_traffic(&group, dense, count, traffic->visit, traffic->context);
    }
}

void ph__units_traffic(
    const struct ph__plan *plan, const struct ph__plan_dense *dense, ph__traffic_visit visit, void *context)
{
    const struct ph__plan_units *units = &plan->units;
    const struct ph__dense_settings *settings = &units->settings;
    const struct traffic traffic = {&plan->topology, settings, visit, context};
    const size_t last = last_unit(units);
    const double often = (double)dense->num_micro_batches;
    for (size_t u = 0; u < units->num_units; u++) {
        const struct ph__plan_unit *unit = &units->units[u];
        if (first_use(unit) == SIZE_MAX)
            continue;
        visit_gather(&traffic, unit, false, settings->mode == PH_DENSE_ZERO1 ? 1 : often);
        if (frees_parameters(settings->mode) && u != last)
            visit_gather(&traffic, unit, true, often);
        visit_reduction(&traffic, unit, number_bytes(unit, (double)dense->wire.number_bytes),
            settings->reduces_often ? often : 1);
    }
    visit_peers(&traffic, units, dense);
}
