#include "sim/mail.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/memory/absent.h"
#include "base/memory/memory.h"
#include "base/rng.h"
#include "sim/heap.h"
#include "sim/network.h"

enum { NONE = UINT32_MAX, FIRST_BUCKETS = 1024 };

/* A way through the network that some pairs of ranks use. */
struct way {
    uint32_t links[PH_FABRIC_MAX_HOPS], route;
    size_t num_links;
    double latency_ns;
};

struct message {
    struct ph__letter letter; /* at_ns: when it was sent, or asked for, whichever was first */
    uint32_t next;            /* in the bucket of those that wait for their other side, or in the free list */
    uint32_t way;
    bool is_sent, is_asked, is_eager; /* is_sent, is_asked: that side has come */
    bool has_left, has_arrived;
    bool is_over_for_sender, is_over_for_receiver;
    const void *data; /* the sender's, or `copy` */
    void *copy, *into;
};

struct bucket {
    uint32_t first, last;
};

struct ph__mail {
    const struct ph__fabric *fabric;
    size_t world_size;
    struct ph__network *network;
    struct way *ways;
    size_t num_ways, ways_capacity;
    uint32_t *way_of; /* (world_size, world_size) 1 + the way; 0: not known yet */

    struct message *messages;
    size_t num_messages, messages_capacity;
    uint32_t free;
    struct bucket *buckets; /* (num_buckets) a power of two */
    size_t num_buckets, num_waiting;
    uint32_t *by_flow; /* message */
    size_t flows_capacity;
    struct ph__heap_items arrival_keys; /* messages, by the time of their arrival */
    struct ph__heap arriving;
    uint64_t num_sent;
};

/* ---- creating ---- */

/* Returns what a message takes besides its bytes, at least. */
static double besides_ns(const struct ph__fabric *fabric)
{
    double least_ns = fabric->messages.host_latency_us * 1e3;
    for (size_t i = 0; i < fabric->num_links; i++)
        least_ns = fmin(least_ns, 2 * fabric->links[i].latency_ns);
    return (fabric->messages.send_us + fabric->messages.receive_us) * 1e3 + least_ns;
}

/* Creates the network: the links of the fabric, and behind them two for each rank, which carry what it sends
 * to, and gets from, other ranks of its host. */
static ph_status create_network(struct ph__mail *mail, double slack)
{
    const struct ph__fabric *fabric = mail->fabric;
    const size_t num_links = fabric->num_links + 2 * mail->world_size;
    double *capacities = malloc((num_links + 1) * sizeof *capacities);
    if (capacities == NULL)
        return ph__out_of_memory("a network of %zu links", num_links);
    for (size_t i = 0; i < num_links; i++)
        capacities[i] =
            i < fabric->num_links ? fabric->links[i].bytes_per_ns : fabric->machine.host_bytes_per_s * 1e-9;
    const struct ph__network_options options = {capacities, num_links, slack, besides_ns(fabric)};
    const ph_status status = ph__network_create(&options, &mail->network);
    free(capacities);
    return status;
}

static void clear_buckets(struct bucket *buckets, size_t count)
{
    memset(buckets, 0xff, count * sizeof *buckets); /* NONE */
}

ph_status ph__mail_create(
    const struct ph__fabric *fabric, size_t world_size, double slack, struct ph__mail **mail_out)
{
    struct ph__mail *mail = calloc(1, sizeof *mail);
    if (mail == NULL)
        return ph__out_of_memory("messages");
    *mail = (struct ph__mail){.fabric = fabric,
        .world_size = world_size,
        .free = NONE,
        .num_buckets = FIRST_BUCKETS,
        .buckets = malloc(FIRST_BUCKETS * sizeof *mail->buckets),
        .way_of = calloc(world_size * world_size, sizeof *mail->way_of)};
    ph_status status = mail->buckets != NULL && mail->way_of != NULL
                           ? create_network(mail, slack)
                           : ph__out_of_memory("messages between %zu ranks", world_size);
    if (status != PH_OK) {
        ph__mail_destroy(mail);
        return status;
    }
    clear_buckets(mail->buckets, mail->num_buckets);
    *mail_out = mail;
    return PH_OK;
}

void ph__mail_destroy(struct ph__mail *mail)
{
    if (mail == NULL)
        return;
    ph__network_destroy(mail->network);
    for (size_t i = 0; i < mail->num_messages; i++)
        free(mail->messages[i].copy);
    ph__heap_fini(&mail->arriving);
    ph__heap_items_fini(&mail->arrival_keys);
    free(mail->ways);
    free(mail->way_of);
    free(mail->messages);
    free(mail->buckets);
    free(mail->by_flow);
    free(mail);
}

/* ---- ways ---- */

static void find_links(const struct ph__mail *mail, size_t from, size_t to, struct way *way)
{
    const struct ph__fabric *fabric = mail->fabric;
    if (from == to)
        return;
    if (from / fabric->ranks_per_host == to / fabric->ranks_per_host) {
        way->links[way->num_links++] = (uint32_t)(fabric->num_links + 2 * from);
        way->links[way->num_links++] = (uint32_t)(fabric->num_links + 2 * to + 1);
        way->latency_ns = fabric->messages.host_latency_us * 1e3;
        return;
    }
    way->num_links = ph__fabric_route(fabric, from, to, way->links);
    for (size_t i = 0; i < way->num_links; i++)
        way->latency_ns += fabric->links[way->links[i]].latency_ns;
}

size_t ph__mail_find_way(const struct ph__mail *mail, size_t from, size_t to,
    uint32_t links_out[PH_FABRIC_MAX_HOPS], double *latency_ns_out)
{
    struct way way = {.num_links = 0};
    find_links(mail, from, to, &way);
    memcpy(links_out, way.links, sizeof way.links);
    *latency_ns_out = way.latency_ns;
    return way.num_links;
}

/* Gives the way between two ranks. All ranks of a host share those to another host, so that the network has
 * few routes. */
static ph_status find_way(struct ph__mail *mail, size_t from, size_t to, uint32_t *way_out)
{
    uint32_t *known = &mail->way_of[from * mail->world_size + to];
    struct way way = {.num_links = 0};
    if (*known != 0) {
        *way_out = *known - 1;
        return PH_OK;
    }
    find_links(mail, from, to, &way);
    const size_t host = from - from % mail->fabric->ranks_per_host;
    const size_t other = to - to % mail->fabric->ranks_per_host;
    for (size_t i = host; i < host + mail->fabric->ranks_per_host && i < mail->world_size; i++)
        for (size_t k = other; k < other + mail->fabric->ranks_per_host && k < mail->world_size; k++) {
            const uint32_t used = mail->way_of[i * mail->world_size + k];
            if (used != 0 && mail->ways[used - 1].num_links == way.num_links &&
                memcmp(mail->ways[used - 1].links, way.links, sizeof way.links) == 0)
                *known = used;
        }
    if (*known == 0) {
        PH_TRY(ph__array_reserve(
            (void **)&mail->ways, &mail->ways_capacity, mail->num_ways + 1, sizeof *mail->ways));
        PH_TRY(ph__network_add_route(mail->network, way.links, way.num_links, &way.route));
        mail->ways[mail->num_ways++] = way;
        *known = (uint32_t)mail->num_ways;
    }
    *way_out = *known - 1;
    return PH_OK;
}

/* ---- messages that wait for their other side ---- */

static size_t bucket_of(const struct ph__mail *mail, const struct ph__letter *letter)
{
    const uint64_t key[] = {(uint64_t)letter->from << 32 | letter->to, (uint64_t)(unsigned)letter->tag};
    return ph__hash_bytes(key, sizeof key) & (mail->num_buckets - 1);
}

static bool are_alike(const struct ph__letter *a, const struct ph__letter *b)
{
    return a->from == b->from && a->to == b->to && a->tag == b->tag;
}

static void put_last(struct ph__mail *mail, uint32_t index)
{
    struct bucket *bucket = &mail->buckets[bucket_of(mail, &mail->messages[index].letter)];
    mail->messages[index].next = NONE;
    if (bucket->first == NONE)
        bucket->first = index;
    else
        mail->messages[bucket->last].next = index;
    bucket->last = index;
}

static ph_status more_buckets(struct ph__mail *mail)
{
    struct bucket *former = mail->buckets;
    const size_t num_former = mail->num_buckets;
    mail->buckets = malloc(2 * num_former * sizeof *mail->buckets);
    if (mail->buckets == NULL) {
        mail->buckets = former;
        return ph__out_of_memory("%zu messages", mail->num_waiting);
    }
    mail->num_buckets = 2 * num_former;
    clear_buckets(mail->buckets, mail->num_buckets);
    for (size_t i = 0; i < num_former; i++)
        for (uint32_t index = former[i].first, next; index != NONE; index = next) {
            next = mail->messages[index].next;
            put_last(mail, index);
        }
    free(former);
    return PH_OK;
}

/* Takes the first message of the same ranks and tag whose other side has come out of its bucket; NONE: there
 * is none. */
static uint32_t take_other_side(struct ph__mail *mail, const struct ph__letter *letter, bool is_send)
{
    struct bucket *bucket = &mail->buckets[bucket_of(mail, letter)];
    for (uint32_t before = NONE, index = bucket->first; index != NONE; index = mail->messages[index].next) {
        const struct message *message = &mail->messages[index];
        if (are_alike(&message->letter, letter) && message->is_asked == is_send) {
            if (before == NONE)
                bucket->first = message->next;
            else
                mail->messages[before].next = message->next;
            if (bucket->last == index)
                bucket->last = before;
            mail->num_waiting--;
            return index;
        }
        before = index;
    }
    return NONE;
}

static ph_status add_message(struct ph__mail *mail, const struct ph__letter *letter, uint32_t *index_out)
{
    uint32_t index = mail->free;
    if (index != NONE) {
        mail->free = mail->messages[index].next;
    } else {
        PH_TRY(ph__array_reserve((void **)&mail->messages, &mail->messages_capacity, mail->num_messages + 1,
            sizeof *mail->messages));
        PH_TRY(ph__heap_reserve(&mail->arriving, mail->num_messages + 1));
        PH_TRY(ph__heap_items_add(&mail->arrival_keys));
        index = (uint32_t)mail->num_messages++;
    }
    mail->messages[index] = (struct message){.letter = *letter};
    if (++mail->num_waiting > mail->num_buckets)
        PH_TRY(more_buckets(mail));
    put_last(mail, index);
    *index_out = index;
    return PH_OK;
}

static void give_up(struct ph__mail *mail, uint32_t index)
{
    struct message *message = &mail->messages[index];
    if (!message->is_over_for_sender || !message->is_over_for_receiver)
        return;
    free(message->copy);
    message->copy = NULL;
    message->next = mail->free;
    mail->free = index;
}

/* ---- sending and receiving ---- */

static const struct ph__fabric_sizes *sizes_of(const struct ph__mail *mail, size_t bytes)
{
    static const struct ph__fabric_sizes plain = {0, 1, 1};
    const struct ph__record_list *list = &mail->fabric->messages.sizes;
    const struct ph__fabric_sizes *items = list->items, *found = &plain;
    for (size_t i = 0; i < list->count && (size_t)items[i].from_bytes <= bytes; i++)
        found = &items[i];
    return found;
}

static ph_status leave(struct ph__mail *mail, uint32_t index, double at_ns)
{
    const struct message *message = &mail->messages[index];
    const double bytes = (double)message->letter.bytes / sizes_of(mail, message->letter.bytes)->bandwidth;
    uint32_t flow;
    PH_TRY(ph__network_start(mail->network, mail->ways[message->way].route, at_ns, bytes, &flow));
    PH_TRY(ph__array_reserve(
        (void **)&mail->by_flow, &mail->flows_capacity, (size_t)flow + 1, sizeof *mail->by_flow));
    mail->by_flow[flow] = index;
    return PH_OK;
}

static double latency_of(const struct ph__mail *mail, const struct message *message)
{
    return mail->ways[message->way].latency_ns * sizes_of(mail, message->letter.bytes)->latency;
}

/* Lets a message leave that was sent at sent_ns and asked for at asked_ns. */
static ph_status answer(struct ph__mail *mail, uint32_t index, double sent_ns, double asked_ns)
{
    const double latency_ns = latency_of(mail, &mail->messages[index]);
    return leave(mail, index, fmax(sent_ns + latency_ns, asked_ns) + latency_ns);
}

static void deliver(const struct message *message)
{
    if (message->data != NULL)
        ph__numbers_move(message->into, message->data, message->letter.bytes);
}

static ph_status check_bytes(const struct message *message, const struct ph__letter *letter)
{
    if (message->letter.bytes == letter->bytes)
        return PH_OK;
    return ph_fail(PH_ERROR_PEER, "a message of %zu bytes was sent for one of %zu",
        message->is_sent ? message->letter.bytes : letter->bytes,
        message->is_sent ? letter->bytes : message->letter.bytes);
}

static ph_status copy_data(struct message *message, const void *data)
{
    if (!message->is_eager || message->letter.bytes == 0 || data == NULL || ph__memory_is_absent(data)) {
        message->data = data;
        return PH_OK;
    }
    message->copy = malloc(message->letter.bytes);
    if (message->copy == NULL)
        return ph__out_of_memory("a message of %zu bytes", message->letter.bytes);
    memcpy(message->copy, data, message->letter.bytes);
    message->data = message->copy;
    return PH_OK;
}

ph_status ph__mail_send(
    struct ph__mail *mail, const struct ph__letter *letter, const void *data, uint32_t *message_out)
{
    uint32_t index = take_other_side(mail, letter, true);
    const bool is_asked = index != NONE;
    double asked_ns = 0;
    if (is_asked) {
        PH_TRY(check_bytes(&mail->messages[index], letter));
        asked_ns = mail->messages[index].letter.at_ns;
    } else {
        PH_TRY(add_message(mail, letter, &index));
    }
    struct message *message = &mail->messages[index];
    message->is_sent = true;
    message->is_eager = letter->is_untimed || (!letter->is_synchronous &&
                                                  letter->bytes < (size_t)mail->fabric->messages.eager_bytes);
    message->is_over_for_sender = message->is_eager;
    PH_TRY(copy_data(message, data));
    mail->num_sent++;
    *message_out = message->is_eager ? PH_MAIL_DONE : index;
    if (letter->is_untimed) {
        message->has_left = true;
        ph__heap_put(&mail->arriving, &mail->arrival_keys, index, letter->at_ns);
        return PH_OK;
    }
    PH_TRY(find_way(mail, letter->from, letter->to, &message->way));
    if (message->is_eager)
        return leave(mail, index, letter->at_ns);
    return is_asked ? answer(mail, index, letter->at_ns, asked_ns) : PH_OK;
}

ph_status ph__mail_receive(
    struct ph__mail *mail, const struct ph__letter *letter, void *data_out, uint32_t *message_out)
{
    uint32_t index = take_other_side(mail, letter, false);
    const bool is_sent = index != NONE;
    if (is_sent)
        PH_TRY(check_bytes(&mail->messages[index], letter));
    else
        PH_TRY(add_message(mail, letter, &index));
    struct message *message = &mail->messages[index];
    message->is_asked = true;
    message->into = data_out;
    *message_out = index;
    if (message->has_arrived)
        deliver(message);
    return is_sent && !message->is_eager ? answer(mail, index, message->letter.at_ns, letter->at_ns) : PH_OK;
}

bool ph__mail_is_sent(struct ph__mail *mail, uint32_t index)
{
    if (index == PH_MAIL_DONE)
        return true;
    if (!mail->messages[index].has_left)
        return false;
    mail->messages[index].is_over_for_sender = true;
    give_up(mail, index);
    return true;
}

bool ph__mail_is_received(struct ph__mail *mail, uint32_t index)
{
    if (!mail->messages[index].has_arrived)
        return false;
    mail->messages[index].is_over_for_receiver = true;
    give_up(mail, index);
    return true;
}

bool ph__mail_has_arrived(const struct ph__mail *mail, uint32_t message)
{
    return mail->messages[message].has_arrived;
}

/* ---- time ---- */

double ph__mail_next_ns(const struct ph__mail *mail)
{
    return fmin(ph__network_next_ns(mail->network), ph__heap_least(&mail->arriving));
}

static void arrive(struct ph__mail *mail, struct ph__mail_news *news_out)
{
    const uint32_t index = ph__heap_first(&mail->arriving);
    struct message *message = &mail->messages[index];
    *news_out = (struct ph__mail_news){.is_any = message->is_asked,
        .is_receive = true,
        .rank = message->letter.to,
        .tag = message->letter.tag,
        .at_ns = mail->arrival_keys.keys[index]};
    ph__heap_take(&mail->arriving, &mail->arrival_keys, index);
    message->has_arrived = true;
    if (message->is_asked && message->is_eager)
        deliver(message);
}

ph_status ph__mail_step(struct ph__mail *mail, double until_ns, struct ph__mail_news *news_out)
{
    const double arrival_ns = ph__heap_least(&mail->arriving);
    struct ph__network_end end;
    bool has_ended = false;
    *news_out = (struct ph__mail_news){0};
    if (arrival_ns <= ph__network_next_ns(mail->network)) {
        arrive(mail, news_out);
        return PH_OK;
    }
    PH_TRY(ph__network_next_end(mail->network, fmin(arrival_ns, until_ns), &has_ended, &end));
    if (!has_ended)
        return PH_OK;
    const uint32_t index = mail->by_flow[end.flow];
    if (index == NONE) /* it ended before: a flow began at that very time, so the network went back to it */
        return PH_OK;
    mail->by_flow[end.flow] = NONE;
    struct message *message = &mail->messages[index];
    message->has_left = true;
    if (!message->is_eager) /* the sender may reuse its data from now on; the receiver does not look yet */
        deliver(message);
    ph__heap_put(&mail->arriving, &mail->arrival_keys, index, end.at_ns + latency_of(mail, message));
    *news_out = (struct ph__mail_news){.is_any = !message->is_eager,
        .rank = message->letter.from,
        .tag = message->letter.tag,
        .at_ns = end.at_ns};
    return PH_OK;
}

void ph__mail_forget(struct ph__mail *mail, double now_ns)
{
    ph__network_forget(mail->network, now_ns);
}

uint64_t ph__mail_num_sent(const struct ph__mail *mail)
{
    return mail->num_sent;
}
