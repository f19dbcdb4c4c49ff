/* Units of dense parameters on ranks that are threads: what forward reads is the whole parameter, gradients
 * are summed member by member, then group by group, and a gather that an update has overtaken is found. */
#include <stdio.h>
#include <string.h>

#include "base/rng.h"
#include "comm/wire/wire_format.h"
#include "plan/plan_choice.h"
#include "plan/plan_units.h"
#include "shard/units/units.h"
#include "unit/shard/rank_fixture.h"

enum { NUM_PARAMETERS = 3, MOST = 40000 };

static const char *const names[NUM_PARAMETERS] = {"a.weight", "a.bias", "b.weight"};
static const size_t sizes[NUM_PARAMETERS] = {21000, 300, MOST};

/* A trial: the units, and what a rank finds wrong. */
struct trial {
    struct ph__dense_settings settings;
    bool moves_start; /* the first gather starts in an entry of its own */
    bool updates;     /* parameters change behind that entry */
    enum ph_collective collective;
};

/* Groups of hierarchical: ranks of two hosts that lie among each other. */
static const uint32_t groups[] = {0, 1, 1, 0, 1, 0};

/* ---- values ---- */

static ph_real gradient_of(size_t rank, size_t parameter, size_t i)
{
    const struct ph__rng_key key = {test_seed(), rank, parameter};
    return (ph_real)((double)(int32_t)ph__rng_word(&key, i, 0) * 0x1p-30);
}

/* Rounds the gradient as it travels. */
static ph_real travelled(enum ph_wire_format wire, ph_real gradient)
{
    const struct ph__kernels *kernels = ph__kernels_for(PH_ISA_REF);
    char bytes[8];
    ph__wire_pack(kernels, wire, 1, 1, &gradient, 1, bytes);
    ph__wire_unpack(kernels, wire, 1, 1, bytes, &gradient, 1);
    return gradient;
}

/* The sum of one number by groups, each of which travels: s[g] = w(x) + w(x) + ...; s = w(s[0]) + w(s[1]). */
static ph_real sum_of_groups(size_t world_size, enum ph_wire_format wire, size_t parameter, size_t i)
{
    ph_real sums[2] = {0, 0};
    for (size_t rank = 0; rank < world_size; rank++) {
        const ph_real gradient = travelled(wire, gradient_of(rank, parameter, i));
        ph_real *sum = &sums[groups[rank]];
        *sum = rank == 0 || (rank == 1 && groups[1] != groups[0]) ? gradient : *sum + gradient;
    }
    return travelled(wire, sums[0]) + travelled(wire, sums[1]);
}

/* The sum around a ring for its owner m: s = x[m + 1]; s = w(s) + x[m + 2]; ...; s = w(s) + x[m]. */
static ph_real sum_around(
    size_t world_size, size_t owner, enum ph_wire_format wire, size_t parameter, size_t i)
{
    ph_real sum = gradient_of((owner + 1) % world_size, parameter, i);
    for (size_t k = 2; k <= world_size; k++)
        sum = travelled(wire, sum) + gradient_of((owner + k) % world_size, parameter, i);
    return sum;
}

/* The sum of one number: member by member in each group, then group by group. */
static ph_real sum_of(
    size_t world_size, size_t group_size, enum ph_wire_format wire, size_t parameter, size_t i)
{
    ph_real sum = 0;
    for (size_t first = 0; first < world_size; first += group_size) {
        ph_real group = travelled(wire, gradient_of(first, parameter, i));
        for (size_t rank = first + 1; rank < first + group_size; rank++)
            group += travelled(wire, gradient_of(rank, parameter, i));
        sum = first == 0 ? group : sum + group;
    }
    return sum;
}

/* ---- the program ---- */

static void output(struct ph_builder *builder, const char *prefix, size_t parameter, ph_value value)
{
    char name[64];
    snprintf(name, sizeof name, "%s.%s", prefix, names[parameter]);
    ph_output(builder, name, value);
}

/* Moves the first start into the current entry. */
static void move_start(struct ph_builder *builder)
{
    struct ph__node *node = builder->graph.nodes;
    while (node->op != &ph__op_gather_unit_start)
        node++;
    node->entry = builder->entry;
}

static void build(struct ph_builder *builder, const struct ph_distribution *distribution, const void *context)
{
    const struct trial *trial = context;
    ph_value parameters[NUM_PARAMETERS], gradients[NUM_PARAMETERS];
    const ph_value *more;
    size_t num_more;
    for (size_t p = 0; p < NUM_PARAMETERS; p++) {
        parameters[p] = ph_parameter(builder, names[p], 1, &sizes[p], (struct ph_init){PH_INIT_NORMAL, 1});
        output(builder, "twice", p, ph_scale(builder, parameters[p], 2));
        gradients[p] = ph_state_value(builder, names[p], sizes[p], 0);
    }
    if (distribution == NULL)
        return;
    distribution->spread(distribution->context, builder, &more, &num_more);
    ph_builder_begin_entry(builder, "backward");
    for (size_t p = 0; p < NUM_PARAMETERS; p++)
        gradients[p] = ph_scale(builder, gradients[p], 1);
    distribution->differentiated(distribution->context, builder, NUM_PARAMETERS, parameters, gradients);
    distribution->reduce(distribution->context, builder, NUM_PARAMETERS, parameters, gradients);
    for (size_t p = 0; p < NUM_PARAMETERS; p++)
        output(builder, "sum", p, gradients[p]);
    ph_builder_begin_entry(builder, "early");
    if (trial->moves_start)
        move_start(builder);
    distribution->complete(distribution->context, builder);
}

/* ---- ranks ---- */

static ph_status check_wholes(const struct rank_model *model, const struct rank_model *alone)
{
    for (size_t p = 0; p < NUM_PARAMETERS; p++) {
        const ph_real *twice;
        struct ph_shape shape;
        struct ph_tensor whole;
        char name[64];
        snprintf(name, sizeof name, "twice.%s", names[p]);
        PH_TRY(ph_workspace_output(model->workspace, name, &twice, &shape));
        PH_TRY(ph_store_find(alone->store, names[p], &whole));
        for (size_t i = 0; i < sizes[p]; i++)
            RANK_CHECK(twice[i] == 2 * ((const ph_real *)whole.data)[i]);
    }
    return PH_OK;
}

static ph_real wanted_sum(const struct trial *trial, const struct ph__plan *plan, size_t rank,
    enum ph_wire_format wire, size_t parameter, size_t i)
{
    const size_t world_size = plan->topology.world_size;
    switch (trial->collective) {
    case PH_COLLECTIVE_HIERARCHICAL:
        return sum_of_groups(world_size, wire, parameter, i);
    case PH_COLLECTIVE_RING:
        return sum_around(world_size, rank, wire, parameter, i);
    default:
        return sum_of(world_size, plan->units.settings.group_size, wire, parameter, i);
    }
}

static ph_status check_sums(
    const struct trial *trial, const struct rank_model *model, const struct ph__plan *plan, size_t rank)
{
    const size_t group_size = plan->units.settings.group_size, own = rank % group_size;
    const enum ph_wire_format wire =
        plan->units.settings.wire == PH_UNIT_WIRE_BF16 ? PH_WIRE_BF16 : PH_WIRE_FP32;
    for (size_t p = 0; p < NUM_PARAMETERS; p++) {
        const struct ph__plan_unit *unit;
        const struct ph__unit_parameter *parameter = ph__plan_units_find(&plan->units, names[p], &unit);
        const size_t first = parameter->bounds[own], end = parameter->bounds[own + 1];
        const ph_real *sums;
        struct ph_shape shape;
        char name[64];
        snprintf(name, sizeof name, "sum.%s", names[p]);
        PH_TRY(ph_workspace_output(model->workspace, name, &sums, &shape));
        RANK_CHECK(shape.dims[0] == end - first);
        for (size_t i = first; i < end; i++)
            RANK_CHECK(sums[i - first] == wanted_sum(trial, plan, rank, wire, p, i));
    }
    return PH_OK;
}

static ph_status set_gradients(const struct rank_model *model, size_t rank)
{
    for (size_t p = 0; p < NUM_PARAMETERS; p++) {
        struct ph__state_array *array;
        PH_TRY(ph__state_add(model->state, names[p], sizes[p], 0, &array));
        for (size_t i = 0; i < sizes[p]; i++)
            array->data[i] = gradient_of(rank, p, i);
    }
    return PH_OK;
}

static ph_status run_entries(
    struct rank_model *model, const struct trial *trial, size_t rank, size_t world_size)
{
    const struct ph_batch batch = {.num_samples = 1, .num_global_samples = world_size, .first_sample = rank};
    PH_TRY(rank_model_run(model, &batch, 0, (const char *const[]){"early", NULL}));
    if (trial->updates)
        ph_store_touch(model->store);
    return rank_model_run(model, &batch, 0, (const char *const[]){"forward", "backward", NULL});
}

static ph_status make_plan(const struct trial *trial, struct ph_comm *comm, struct ph__plan *plan_out)
{
    static const struct ph__dense_facts facts[NUM_PARAMETERS] = {
        {"a.weight", 21000, 1, 0, true, true, 0, false}, {"a.bias", 300, 1, 0, true, true, 0, false},
        {"b.weight", MOST, 1, 0, true, true, 1, false}};
    const struct ph__topology topology = {ph_comm_world_size(comm), ph_comm_ranks_per_host(comm)};
    PH_TRY(ph__plan_build(&topology, NULL, 0, NULL, plan_out));
    return ph__plan_units_make(plan_out, &trial->settings, facts, NUM_PARAMETERS);
}

static ph_status run_rank(struct ph_comm *comm, void *context)
{
    const struct trial *trial = context;
    const size_t rank = ph_comm_rank(comm);
    struct ph__plan plan = {0};
    struct ph_distribution *distribution;
    struct rank_model model, alone;
    PH_TRY(make_plan(trial, comm, &plan));
    PH_TRY(ph__comm_set_collectives(comm, &(struct ph__collective_choice){0, trial->collective}, 1,
        trial->collective == PH_COLLECTIVE_HIERARCHICAL ? groups : NULL));
    PH_TRY(rank_distribution_create(comm, &plan, &distribution));
    PH_TRY(rank_model_init(&alone, build, trial, NULL));
    ph_status status = rank_model_init(&model, build, trial, distribution);
    if (status == PH_OK)
        status = set_gradients(&model, rank);
    if (status == PH_OK)
        status = run_entries(&model, trial, rank, ph_comm_world_size(comm));
    if (status == PH_OK && trial->settings.wire == PH_UNIT_WIRE_OF_JOB)
        status = check_wholes(&model, &alone);
    if (status == PH_OK)
        status = check_sums(trial, &model, &plan, rank);
    rank_model_fini(&model);
    rank_model_fini(&alone);
    ph__distribution_destroy(distribution);
    ph__plan_fini(&plan);
    return status;
}

static void run(struct trial trial, size_t world_size, struct thread_rank_end *ends_out)
{
    const struct thread_ranks ranks = {.world_size = world_size, .options = {.ranks_per_host = world_size}};
    thread_ranks_run(&ranks, run_rank, &trial, ends_out);
}

/* Creates a distribution of sharded parameters for ranks that sum whole gradients. */
static ph_status refuse_whole_sums(struct ph_comm *comm, void *context)
{
    const struct ph_reducer reducer = {0};
    struct ph__plan plan = {0};
    struct ph_distribution *distribution = NULL;
    PH_TRY(make_plan(context, comm, &plan));
    struct ph__distribution_options options = {.comm = comm, .plan = &plan, .dense = PH_WIRE_INT8};
    RANK_CHECK(ph__distribution_create(&options, &distribution) == PH_ERROR_CONFIG);
    RANK_CHECK(strstr(ph_error_text(), "with dense mode 'full' use fp32, fp16 or bf16") != NULL);
    options = (struct ph__distribution_options){.comm = comm, .plan = &plan, .reducer = &reducer};
    RANK_CHECK(ph__distribution_create(&options, &distribution) == PH_ERROR_CONFIG);
    RANK_CHECK(strstr(ph_error_text(), "parallel.sync: hub sums whole gradients") != NULL);
    ph__plan_fini(&plan);
    return PH_OK;
}

/* ---- tests ---- */

static void wholes_and_sums_are_those_of_the_members(void **state)
{
    (void)state;
    static const size_t worlds[] = {1, 2, 3, 5, 8};
    for (size_t w = 0; w < sizeof worlds / sizeof *worlds; w++)
        for (enum ph__dense_mode mode = PH_DENSE_ZERO1; mode <= PH_DENSE_FULL; mode++) {
            run((struct trial){{.mode = mode, .unit_bytes = 1, .prefetch = 1}, false, false, 0}, worlds[w],
                NULL);
            run((struct trial){{.mode = mode}, false, false, 0}, worlds[w], NULL);
        }
}

static void a_hybrid_sum_has_two_levels(void **state)
{
    (void)state;
    run((struct trial){{.mode = PH_DENSE_HYBRID, .group_size = 2, .unit_bytes = 1}, false, false, 0}, 4,
        NULL);
    run((struct trial){{.mode = PH_DENSE_HYBRID, .group_size = 2, .unit_bytes = 1}, false, false, 0}, 6,
        NULL);
    run((struct trial){{.mode = PH_DENSE_HYBRID, .group_size = 1, .unit_bytes = 1}, false, false, 0}, 3,
        NULL);
}

static void sums_are_those_of_the_collective(void **state)
{
    (void)state;
    for (enum ph__unit_wire wire = PH_UNIT_WIRE_OF_JOB; wire <= PH_UNIT_WIRE_BF16; wire += 3) {
        const struct ph__dense_settings settings = {
            .mode = PH_DENSE_FULL, .wire = wire, .unit_bytes = wire == PH_UNIT_WIRE_BF16 ? 1 : 0};
        run((struct trial){settings, false, false, PH_COLLECTIVE_HIERARCHICAL}, 6, NULL);
        run((struct trial){settings, false, false, PH_COLLECTIVE_HIERARCHICAL}, 4, NULL);
        run((struct trial){settings, false, false, PH_COLLECTIVE_RING}, 2, NULL);
        run((struct trial){settings, false, false, PH_COLLECTIVE_RING}, 5, NULL);
    }
}

static void contributions_are_rounded_once_on_their_way(void **state)
{
    (void)state;
    run((struct trial){{.mode = PH_DENSE_FULL, .wire = PH_UNIT_WIRE_BF16, .unit_bytes = 1}, false, false, 0},
        3, NULL);
}

static void a_gather_that_an_update_has_overtaken_is_refused(void **state)
{
    (void)state;
    struct thread_rank_end ends[2];
    struct trial trial = {{.mode = PH_DENSE_FULL, .unit_bytes = 1}, true, false, 0};
    run(trial, 2, NULL);
    trial.updates = true;
    run(trial, 2, ends);
    for (size_t rank = 0; rank < 2; rank++)
        assert_int_equal(ends[rank].status, PH_ERROR_BUG);
    assert_non_null(
        strstr(ends[0].text, "unit 'a.weight' was updated after its parameters had been gathered"));
}

static void hubs_and_int8_which_sum_whole_gradients_are_refused(void **state)
{
    (void)state;
    struct trial trial = {{.mode = PH_DENSE_FULL}, false, false, 0};
    const struct thread_ranks ranks = {.world_size = 2, .options = {.ranks_per_host = 2}};
    thread_ranks_run(&ranks, refuse_whole_sums, &trial, NULL);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(wholes_and_sums_are_those_of_the_members),
        cmocka_unit_test(a_hybrid_sum_has_two_levels),
        cmocka_unit_test(sums_are_those_of_the_collective),
        cmocka_unit_test(contributions_are_rounded_once_on_their_way),
        cmocka_unit_test(a_gather_that_an_update_has_overtaken_is_refused),
        cmocka_unit_test(hubs_and_int8_which_sum_whole_gradients_are_refused),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
