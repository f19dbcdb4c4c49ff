#include "plan/order/order_pattern.h"

#include "base/memory/memory.h"
#include "base/sizes.h"

struct making {
    const struct ph__order_problem *problem;
    struct ph__arena *arena;
    struct ph__order_rounds *rounds;
    size_t ranks_per_host;
};

/* Adds a round in which no place sends yet. */
static ph_status add_round(
    struct making *making, double share, double times, struct ph__order_round **round_out)
{
    struct ph__order_rounds *rounds = making->rounds;
    struct ph__order_round *round = &rounds->rounds[rounds->num_rounds];
    *round = (struct ph__order_round){.share = share, .times = times, .num_messages = 1};
    round->to = ph__arena_alloc_array(making->arena, rounds->num_places, sizeof *round->to);
    round->from = ph__arena_alloc_array(making->arena, rounds->num_places, sizeof *round->from);
    if (round->to == NULL || round->from == NULL)
        return PH_ERROR_MEMORY;
    for (size_t place = 0; place < rounds->num_places; place++)
        round->to[place] = round->from[place] = PH_NO_PLACE;
    rounds->num_rounds++;
    *round_out = round;
    return PH_OK;
}

static void join(struct ph__order_round *round, size_t from, size_t to)
{
    round->to[from] = (uint32_t)to;
    round->from[to] = (uint32_t)from;
}

static ph_status make_ring(struct making *making)
{
    const size_t num_places = making->rounds->num_places, num_ranks = num_places * making->ranks_per_host;
    struct ph__order_round *round;
    PH_TRY(add_round(making, 1 / (double)num_ranks,
        making->problem->sums_edges ? 2 : 2 * (double)(num_ranks - 1), &round));
    for (size_t place = 0; place < num_places; place++)
        join(round, place, (place + 1) % num_places);
    return PH_OK;
}

/* Returns the place of a number among those that exchange: of 2 `surplus` places, the odd ones do. */
static size_t place_of(size_t number, size_t surplus)
{
    return number < surplus ? 2 * number + 1 : number + surplus;
}

/* Lets surplus places send to their neighbours, or get from them. */
static ph_status add_fold(struct making *making, size_t surplus, double share, bool is_first)
{
    struct ph__order_round *round;
    if (surplus == 0)
        return PH_OK;
    PH_TRY(add_round(making, share, 1, &round));
    for (size_t i = 0; i < surplus; i++)
        join(round, 2 * i + !is_first, 2 * i + is_first);
    return PH_OK;
}

/* Makes the rounds of halvings, or doubling, whose partners differ in one bit. */
static ph_status make_cube(struct making *making)
{
    const size_t num_places = making->rounds->num_places;
    const enum ph__order_pattern pattern = making->problem->pattern;
    const bool is_far = pattern == PH_ORDER_FAR_HALVING;
    struct ph__order_round *round;
    size_t count = 1;
    while (2 * count <= num_places)
        count *= 2;
    const size_t surplus = num_places - count;
    PH_TRY(add_fold(making, surplus, 1, true));
    PH_TRY(add_fold(making, surplus, is_far ? 1 / (double)num_places : 1, false));
    for (size_t parts = 2; parts <= count; parts *= 2) {
        const size_t bit = is_far ? count / parts : parts / 2;
        PH_TRY(add_round(making, pattern == PH_ORDER_DOUBLING ? 1 : 1 / (double)parts,
            pattern == PH_ORDER_HALVING ? 2 : 1, &round));
        for (size_t number = 0; number < count; number++)
            join(round, place_of(number, surplus), place_of(number ^ bit, surplus));
    }
    return PH_OK;
}

static ph_status make_tree(struct making *making)
{
    const size_t num_places = making->rounds->num_places;
    struct ph__order_round *round;
    making->rounds->is_tree = true;
    for (size_t bit = 1; bit < num_places; bit *= 2) {
        PH_TRY(add_round(making, 1, 1, &round));
        for (size_t place = bit; place < num_places; place += 2 * bit)
            join(round, place, place - bit);
    }
    return PH_OK;
}

/* Sets *size_out to the number of hosts that each group has. */
static ph_status size_of_groups(const struct ph__order_problem *problem, size_t num_places, size_t *size_out)
{
    const struct ph__fabric *fabric = problem->fabric;
    size_t size = problem->group_size;
    if (size == 0 && fabric->num_groups > 0)
        size = num_places / fabric->num_groups;
    if (size == 0 || num_places % size != 0)
        return ph_fail(PH_ERROR_CONFIG, "a hierarchy of %zu hosts needs groups of one size that divides them",
            num_places);
    for (size_t group = 0; problem->group_size == 0 && group < fabric->num_groups; group++) {
        size_t count = 0;
        for (size_t host = 0; host < num_places; host++)
            count += fabric->groups[host] == group;
        if (count != size)
            return ph_fail(PH_ERROR_CONFIG,
                "the topology's group %zu has %zu hosts, others %zu: give the size of groups", group, count,
                size);
    }
    *size_out = size;
    return PH_OK;
}

/* Lets each place send to each other one of its group of `size`, and the ranks of a host to each other. */
static ph_status add_exchange(struct making *making, size_t size)
{
    const size_t num_local = making->ranks_per_host;
    struct ph__order_round *round;
    for (size_t turn = 1; turn < size + (num_local > 1); turn++) {
        const double num_messages = (double)(turn < size ? num_local : num_local - 1);
        const double num_senders = (double)(turn < size ? num_local : 1); /* ranks of a host send at once */
        PH_TRY(add_round(making, num_senders * num_messages / (double)(size * num_local), 2, &round));
        round->num_messages = num_messages;
        round->is_joined = turn > 1;
        for (size_t place = 0; place < making->rounds->num_places; place++)
            join(round, place, place - place % size + (place % size + turn) % size);
    }
    return PH_OK;
}

static ph_status make_groups(struct making *making)
{
    const size_t num_places = making->rounds->num_places;
    struct ph__order_round *round;
    size_t size;
    PH_TRY(size_of_groups(making->problem, num_places, &size));
    PH_TRY(add_exchange(making, size));
    for (size_t turn = 1; turn < num_places / size; turn++) {
        PH_TRY(add_round(making, 1 / (double)num_places, 2, &round));
        round->is_joined = turn > 1;
        for (size_t place = 0; place < num_places; place++)
            join(round, place, (place + turn * size) % num_places);
    }
    return PH_OK;
}

static ph_status make_exchange(struct making *making)
{
    return add_exchange(making, making->rounds->num_places);
}

ph_status ph__order_rounds_make(
    const struct ph__order_problem *problem, struct ph__arena *arena, struct ph__order_rounds *rounds_out)
{
    static ph_status (*const make[])(struct making *) = {
        make_ring, make_cube, make_cube, make_cube, make_tree, make_groups, make_exchange};
    struct making making = {problem, arena, rounds_out, ph__max(problem->ranks_per_host, 1)};
    const size_t num_places = ph__order_num_hosts(problem);
    *rounds_out = (struct ph__order_rounds){.num_places = num_places};
    /* A pattern has no more rounds than places, but for two of surplus places. */
    rounds_out->rounds = ph__arena_alloc_array(arena, num_places + 2, sizeof *rounds_out->rounds);
    return rounds_out->rounds != NULL ? make[problem->pattern](&making) : PH_ERROR_MEMORY;
}
