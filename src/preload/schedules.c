#include "preload/schedules.h"

#include <string.h>

const char *const schedule_names[SCHEDULE_KINDS] = {"ring", "doubling", "rabenseifner", "pairwise", "at_once",
    "ring_alltoall", "bruck", "tree", "pipeline", "gather", "gather_bruck", "reduce", "reduce_scatter",
    "pingpong"};
const char *const schedule_order_names[SCHEDULE_ORDERS] = {"grouped", "interleaved", "random"};

static size_t find(const char *const *names, size_t count, const char *name)
{
    size_t i = 0;
    while (i < count && strcmp(names[i], name) != 0)
        i++;
    return i;
}

enum schedule_kind schedule_find(const char *name)
{
    return (enum schedule_kind)find(schedule_names, SCHEDULE_KINDS, name);
}

enum schedule_order schedule_order_find(const char *name)
{
    return (enum schedule_order)find(schedule_order_names, SCHEDULE_ORDERS, name);
}

bool schedule_is_alltoall(enum schedule_kind kind)
{
    return kind == SCHEDULE_PAIRWISE || kind == SCHEDULE_AT_ONCE || schedule_passes_on(kind);
}

bool schedule_passes_on(enum schedule_kind kind)
{
    return kind == SCHEDULE_RING_ALLTOALL || kind == SCHEDULE_BRUCK;
}

/* ---- lists ---- */

struct list {
    const struct schedule *schedule;
    uint32_t place;
    struct schedule_message *messages;
    size_t count;
};

static void post(struct list *list, uint32_t place, struct schedule_message message)
{
    message.peer = list->schedule->order != NULL ? list->schedule->order[place] : place;
    if (message.stride == 0)
        message.run_bytes = message.stride = message.bytes;
    list->messages[list->count++] = message;
}

/* Adds a message of parts [first, first + count) of the vector, which has a part a rank. */
static void post_parts(
    struct list *list, uint32_t place, uint32_t first, uint32_t count, struct schedule_message kind)
{
    const struct schedule *schedule = list->schedule;
    kind.offset = schedule->bytes * first / schedule->num_ranks;
    kind.bytes = schedule->bytes * (first + count) / schedule->num_ranks - kind.offset;
    post(list, place, kind);
}

static const struct schedule_message a_send = {0}, a_copy = {.is_receive = true},
                                     a_sum = {.is_receive = true, .is_sum = true};

/* ---- algorithms ---- */

static uint32_t log2_above(uint32_t count)
{
    uint32_t log = 0;
    while (1u << log < count)
        log++;
    return log;
}

/* Passes a part on by one rank: first those that are summed up, then the sums. `lead`: 0 sends the own part
 * first; 1 that of the next rank. */
static void ring_step(struct list *list, uint32_t step, uint32_t lead, struct schedule_message receive)
{
    const uint32_t n = list->schedule->num_ranks, own = list->place + lead + n;
    post_parts(list, (list->place + n - 1) % n, (own - step - 1) % n, 1, receive);
    post_parts(list, (list->place + 1) % n, (own - step) % n, 1, a_send);
}

static void ring(struct list *list, uint32_t step)
{
    const uint32_t num_sums = list->schedule->num_ranks - 1;
    if (step < num_sums)
        ring_step(list, step, 0, a_sum);
    else
        ring_step(list, step - num_sums, 1, a_copy);
}

static void reduce_scatter(struct list *list, uint32_t step)
{
    ring_step(list, step, 0, a_sum);
}

static void gather(struct list *list, uint32_t step)
{
    ring_step(list, step, 0, a_copy);
}

/* Sends all blocks that have come so far; they follow the own one. */
static void gather_bruck(struct list *list, uint32_t step)
{
    const uint32_t n = list->schedule->num_ranks, have = 1u << step;
    const size_t block = list->schedule->bytes / n, bytes = block * (have < n - have ? have : n - have);
    post(list, (list->place + have) % n,
        (struct schedule_message){.is_receive = true, .offset = block * have, .bytes = bytes});
    post(list, (list->place + n - have) % n, (struct schedule_message){.bytes = bytes});
}

static void doubling(struct list *list, uint32_t step)
{
    const uint32_t n = list->schedule->num_ranks, partner = list->place ^ 1u << step;
    post_parts(list, partner, 0, n, a_sum);
    post_parts(list, partner, 0, n, a_send);
}

/* Gives the first part of the 2^-level of the vector that a place has after as many halvings: bit by bit the
 * place chooses the lower or the upper half. */
static uint32_t first_part(uint32_t num_ranks, uint32_t place, uint32_t level)
{
    uint32_t first = 0;
    for (uint32_t bit = 0; bit < level; bit++)
        first += (place >> bit & 1) * (num_ranks >> (bit + 1));
    return first;
}

static void rabenseifner(struct list *list, uint32_t step)
{
    const uint32_t n = list->schedule->num_ranks, halvings = log2_above(n);
    const bool is_sum = step < halvings;
    const uint32_t level = is_sum ? step : 2 * halvings - 1 - step, partner = list->place ^ 1u << level;
    const uint32_t count = n >> (level + 1);
    const uint32_t own = first_part(n, list->place, level + 1), other = first_part(n, partner, level + 1);
    post_parts(list, partner, is_sum ? own : other, count, is_sum ? a_sum : a_copy);
    post_parts(list, partner, is_sum ? other : own, count, a_send);
}

static void post_block(struct list *list, uint32_t place, struct schedule_message kind)
{
    kind.bytes = list->schedule->bytes / list->schedule->num_ranks;
    kind.offset = kind.bytes * place;
    post(list, place, kind);
}

static void pairwise(struct list *list, uint32_t step)
{
    const uint32_t n = list->schedule->num_ranks, distance = step + 1;
    post_block(list, (list->place + n - distance) % n, a_copy);
    post_block(list, (list->place + distance) % n, a_send);
}

static void at_once(struct list *list, uint32_t step)
{
    const uint32_t n = list->schedule->num_ranks;
    for (uint32_t distance = step + 1; distance < n; distance++)
        post_block(list, (list->place + n - distance) % n, a_copy);
    for (uint32_t distance = step + 1; distance < n; distance++)
        post_block(list, (list->place + distance) % n, a_send);
}

/* Receives from the place `distance` behind where it sends from to the place as far ahead. */
static void pass_on(struct list *list, uint32_t distance, struct schedule_message message)
{
    const uint32_t n = list->schedule->num_ranks;
    message.is_receive = true;
    post(list, (list->place + n - distance) % n, message);
    message.is_receive = false;
    post(list, (list->place + distance) % n, message);
}

static void ring_alltoall(struct list *list, uint32_t step)
{
    const uint32_t n = list->schedule->num_ranks, first = step + 1;
    const size_t block = list->schedule->bytes / n;
    pass_on(list, 1, (struct schedule_message){.offset = block * first, .bytes = block * (n - first)});
}

/* Blocks whose number has bit `step` form runs of 2^step; the last run may be shorter. */
static void bruck(struct list *list, uint32_t step)
{
    const uint32_t n = list->schedule->num_ranks, run = 1u << step, rest = n % (2 * run);
    const uint32_t count = n / (2 * run) * run + (rest > run ? rest - run : 0);
    const size_t block = list->schedule->bytes / n;
    const struct schedule_message message = {
        .offset = block * run, .bytes = block * count, .run_bytes = block * run, .stride = block * 2 * run};
    pass_on(list, run, message);
}

/* Sends from places that are multiples of twice the step's distance to those at that distance. */
static void tree(struct list *list, uint32_t step)
{
    const uint32_t n = list->schedule->num_ranks, distance = 1u << (log2_above(n) - 1 - step);
    const uint32_t above = list->place % (2 * distance);
    if (above == distance)
        post_parts(list, list->place - distance, 0, n, a_copy);
    else if (above == 0 && list->place + distance < n)
        post_parts(list, list->place + distance, 0, n, a_send);
}

/* Passes on what has come in the step before; byte i comes to place p in step i + p - 1. */
static void pipeline(struct list *list, uint32_t step)
{
    const size_t coming = (size_t)step + 1 - list->place, leaving = (size_t)step - list->place;
    if (list->place > 0 && coming < list->schedule->bytes)
        post(list, list->place - 1,
            (struct schedule_message){.is_receive = true, .offset = coming, .bytes = 1});
    if (list->place + 1 < list->schedule->num_ranks && leaving < list->schedule->bytes)
        post(list, list->place + 1, (struct schedule_message){.offset = leaving, .bytes = 1});
}

/* Receives from places at 1, 2, 4, ..., and sends what has come of them to the place that asks for it. */
static void reduce(struct list *list, uint32_t step)
{
    const uint32_t n = list->schedule->num_ranks, distance = 1u << step;
    const uint32_t above = list->place % (2 * distance);
    if (above == distance)
        post_parts(list, list->place - distance, 0, n, a_send);
    else if (above == 0 && list->place + distance < n)
        post_parts(list, list->place + distance, 0, n, a_sum);
}

static void pingpong(struct list *list, uint32_t step)
{
    if (list->place < 2)
        post_parts(
            list, 1 - list->place, 0, list->schedule->num_ranks, list->place == step ? a_send : a_copy);
}

/* ---- steps ---- */

size_t schedule_num_steps(const struct schedule *schedule)
{
    const uint32_t n = schedule->num_ranks, log = log2_above(n);
    const size_t steps[SCHEDULE_KINDS] = {[SCHEDULE_RING] = 2 * (n - 1),
        [SCHEDULE_DOUBLING] = log,
        [SCHEDULE_RABENSEIFNER] = 2 * log,
        [SCHEDULE_PAIRWISE] = n - 1,
        [SCHEDULE_AT_ONCE] = 1,
        [SCHEDULE_RING_ALLTOALL] = n - 1,
        [SCHEDULE_BRUCK] = log,
        [SCHEDULE_TREE] = log,
        [SCHEDULE_PIPELINE] = schedule->bytes + n - 2,
        [SCHEDULE_GATHER] = n - 1,
        [SCHEDULE_GATHER_BRUCK] = log,
        [SCHEDULE_REDUCE] = log,
        [SCHEDULE_REDUCE_SCATTER] = n - 1,
        [SCHEDULE_PINGPONG] = 2};
    return steps[schedule->kind];
}

size_t schedule_most_messages(const struct schedule *schedule)
{
    return schedule->kind == SCHEDULE_AT_ONCE ? 2 * ((size_t)schedule->num_ranks - 1) : 2;
}

size_t schedule_step(
    const struct schedule *schedule, uint32_t place, size_t step, struct schedule_message *messages_out)
{
    static void (*const algorithms[SCHEDULE_KINDS])(struct list * list, uint32_t step) = {ring, doubling,
        rabenseifner, pairwise, at_once, ring_alltoall, bruck, tree, pipeline, gather, gather_bruck, reduce,
        reduce_scatter, pingpong};
    struct list list = {schedule, place, messages_out, 0};
    algorithms[schedule->kind](&list, (uint32_t)step);
    return list.count;
}

/* ---- orders ---- */

/* Shuffles by a linear congruential generator (Knuth's MMIX), so that the order is the same everywhere. */
static void shuffle(uint32_t *order, uint32_t count)
{
    uint64_t random = 1;
    for (uint32_t i = count; i-- > 1;) {
        random = random * 6364136223846793005u + 1442695040888963407u;
        const uint32_t other = (uint32_t)((random >> 33) % (i + 1)), kept = order[i];
        order[i] = order[other];
        order[other] = kept;
    }
}

void schedule_fill_order(enum schedule_order order, uint32_t num_ranks, uint32_t rack, uint32_t *order_out)
{
    const uint32_t num_racks = (num_ranks + rack - 1) / rack;
    uint32_t place = 0;
    for (uint32_t i = 0; i < num_ranks; i++)
        order_out[i] = i;
    if (order == ORDER_RANDOM)
        shuffle(order_out, num_ranks);
    for (uint32_t i = 0; i < rack && order == ORDER_INTERLEAVED; i++)
        for (uint32_t k = 0; k < num_racks; k++)
            if (k * rack + i < num_ranks)
                order_out[place++] = k * rack + i;
}
