#include "sim/players.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/memory/memory.h"
#include "sim/heap.h"
#include "sim/mail.h"

#define POLL_NS 1000. /* taken by a test that fails, and a second look at the clock, so that loops end */
enum { FORGET_EVERY = 4096, NONE = UINT32_MAX, CHECK_NS = 50000000 };

struct message {
    uint32_t from, to, context;
    int32_t tag;
    uint64_t bytes, payload;
    int32_t send, receive;   /* requests; send: PH_RUN_NO_REQUEST if none */
    uint32_t sent, received; /* numbers of the mail */
    uint32_t next;           /* in the free list */
};

struct request {
    bool is_watched, is_paid;
    struct ph__run_record record; /* as it was posted */
    struct ph__run_result result;
};

/* A list in the order of posting, or of arrival. */
struct list {
    uint32_t *items;
    size_t count, capacity;
};

struct player {
    uint32_t index;
    struct ph__run_rank *shared;
    double slowness, now_ns, waits_since_ns;
    bool has_ended, has_record, is_waiting;
    struct ph__run_record record; /* has_record: to be performed; is_waiting: WAIT or PROBE */
    enum ph__run_kind last_kind;
    struct request *requests;
    size_t num_requests, requests_capacity;
    struct list watched, posted; /* requests */
    size_t num_pending;          /* of those watched, not done */
    struct list unexpected;      /* messages whose envelopes have come */
    struct ph__player_figures *figures;
};

struct players {
    const struct ph__players_options *options;
    struct ph__run_memory *memory;
    double send_ns, receive_ns;
    struct ph__mail *mail;
    struct player *ranks;
    struct ph__heap_items rank_keys, envelope_keys;
    struct ph__heap ready;     /* ranks that do not wait, by their clocks */
    struct ph__heap envelopes; /* messages, by when their envelopes come */
    struct message *messages;
    size_t num_messages, messages_capacity;
    uint32_t free;
    size_t num_running;
    uint64_t num_steps;
};

/* ---- lists ---- */

static ph_status append(struct list *list, uint32_t item)
{
    PH_TRY(ph__array_reserve((void **)&list->items, &list->capacity, list->count + 1, sizeof *list->items));
    list->items[list->count++] = item;
    return PH_OK;
}

static void take_out(struct list *list, size_t at)
{
    memmove(&list->items[at], &list->items[at + 1], (--list->count - at) * sizeof *list->items);
}

static bool fits(const struct ph__run_record *receive, const struct message *message)
{
    return receive->context == message->context &&
           (receive->peer == PH_RUN_ANY || (uint32_t)receive->peer == message->from) &&
           (receive->tag == PH_RUN_ANY || receive->tag == message->tag);
}

/* Returns the place of the first message among those that have come which fits; their number: none does. */
static size_t find_unexpected(
    const struct players *players, const struct player *player, const struct ph__run_record *receive)
{
    size_t at = 0;
    while (at < player->unexpected.count && !fits(receive, &players->messages[player->unexpected.items[at]]))
        at++;
    return at;
}

/* ---- waiting ---- */

static void make_ready(struct players *players, struct player *player)
{
    ph__heap_put(&players->ready, &players->rank_keys, player->index, player->now_ns);
}

static void answer(struct player *player)
{
    if (player->is_waiting)
        player->figures->waited_seconds += (player->now_ns - player->waits_since_ns) * 1e-9;
    player->is_waiting = false;
    player->shared->now_ns = player->now_ns;
    atomic_fetch_add(&player->shared->answered, 1);
    ph__run_wake(&player->shared->answered);
}

/* Lets the rank take the time for a message that it has received. */
static void pay(const struct players *players, struct player *player, struct request *request)
{
    if (request->record.kind == PH_RUN_RECEIVE && !request->is_paid)
        player->now_ns += players->receive_ns;
    request->is_paid = true;
}

static bool is_over(const struct player *player)
{
    return player->record.mode == PH_RUN_ALL ? player->num_pending == 0
                                             : player->num_pending < player->watched.count;
}

/* Ends a wait, and gives out the results of requests that are done; of one, where one is asked for. */
static void end_wait(struct players *players, struct player *player, bool takes)
{
    for (size_t i = 0; i < player->watched.count; i++) {
        const uint32_t number = player->watched.items[i];
        struct request *request = &player->requests[number];
        request->is_watched = false;
        player->shared->results[number] = (struct ph__run_result){0};
        if (!takes || !request->result.is_done)
            continue;
        pay(players, player, request);
        player->shared->results[number] = request->result;
        takes = player->record.mode != PH_RUN_ONE;
    }
    player->watched.count = player->num_pending = 0;
    answer(player);
}

static void request_is_done(
    struct players *players, struct player *player, struct request *request, double at_ns)
{
    request->result.is_done = true;
    player->num_pending -= request->is_watched;
    if (!player->is_waiting || !request->is_watched)
        return;
    player->now_ns = fmax(player->now_ns, at_ns);
    pay(players, player, request);
    if (is_over(player)) {
        end_wait(players, player, true);
        make_ready(players, player);
    }
}

/* Waits, or looks; a look that finds nothing takes time, so that a loop of them ends. */
static ph_status perform_wait(struct players *players, struct player *player)
{
    const bool ends = is_over(player);
    if (ends || player->record.is_test) {
        player->now_ns += ends ? 0 : POLL_NS;
        end_wait(players, player, ends);
        return PH_OK;
    }
    player->is_waiting = true;
    for (size_t i = 0; i < player->watched.count; i++)
        if (player->requests[player->watched.items[i]].result.is_done)
            pay(players, player, &player->requests[player->watched.items[i]]);
    return PH_OK;
}

static struct ph__run_result result_of(const struct message *message)
{
    return (struct ph__run_result){.is_done = true,
        .source = (int32_t)message->from,
        .tag = message->tag,
        .bytes = message->bytes,
        .payload = message->payload};
}

static ph_status perform_probe(struct players *players, struct player *player)
{
    const size_t at = find_unexpected(players, player, &player->record);
    const bool is_there = at < player->unexpected.count;
    if (!is_there && !player->record.is_test) {
        player->is_waiting = true;
        return PH_OK;
    }
    player->shared->probed = (struct ph__run_result){0};
    if (is_there)
        player->shared->probed = result_of(&players->messages[player->unexpected.items[at]]);
    else
        player->now_ns += POLL_NS;
    answer(player);
    return PH_OK;
}

static ph_status perform_time(struct players *players, struct player *player)
{
    (void)players;
    if (player->last_kind == PH_RUN_TIME && player->record.computed_ns + player->record.slept_ns <= 0)
        player->now_ns += POLL_NS;
    answer(player);
    return PH_OK;
}

/* ---- messages ---- */

static ph_status add_message(struct players *players, uint32_t *index_out)
{
    if (players->free != NONE) {
        *index_out = players->free;
        players->free = players->messages[players->free].next;
        return PH_OK;
    }
    PH_TRY(ph__array_reserve((void **)&players->messages, &players->messages_capacity,
        players->num_messages + 1, sizeof *players->messages));
    PH_TRY(ph__heap_reserve(&players->envelopes, players->num_messages + 1));
    PH_TRY(ph__heap_items_add(&players->envelope_keys));
    *index_out = (uint32_t)players->num_messages++;
    return PH_OK;
}

/* Ends a message that has been received; its number may be used again. */
static void receive_is_done(struct players *players, uint32_t index, double at_ns)
{
    struct message *message = &players->messages[index];
    struct player *player = &players->ranks[message->to];
    struct request *request = &player->requests[message->receive];
    request->result = result_of(message);
    (void)ph__mail_is_received(players->mail, message->received);
    message->next = players->free;
    players->free = index;
    request_is_done(players, player, request, at_ns);
}

/* Lets a message meet a receive. */
static ph_status meet(struct players *players, uint32_t index, uint32_t receive, double at_ns)
{
    struct message *message = &players->messages[index];
    const struct ph__run_record *asked = &players->ranks[message->to].requests[receive].record;
    if (message->bytes > asked->bytes)
        return ph_fail(PH_ERROR_PEER,
            "rank %u receives at most %llu bytes, but rank %u has sent %llu (tag %d)", message->to,
            (unsigned long long)asked->bytes, message->from, (unsigned long long)message->bytes,
            message->tag);
    const struct ph__letter letter = {
        .from = message->from, .to = message->to, .tag = (int)index, .bytes = message->bytes, .at_ns = at_ns};
    message->receive = (int32_t)receive;
    PH_TRY(ph__mail_receive(players->mail, &letter, NULL, &message->received));
    if (ph__mail_has_arrived(players->mail, message->received))
        receive_is_done(players, index, at_ns);
    return PH_OK;
}

static ph_status let_envelope_come(struct players *players)
{
    const uint32_t index = ph__heap_first(&players->envelopes);
    const double at_ns = ph__heap_least(&players->envelopes);
    const struct message *message = &players->messages[index];
    struct player *player = &players->ranks[message->to];
    ph__heap_take(&players->envelopes, &players->envelope_keys, index);
    for (size_t i = 0; i < player->posted.count; i++) {
        const uint32_t request = player->posted.items[i];
        if (!fits(&player->requests[request].record, message))
            continue;
        take_out(&player->posted, i);
        return meet(players, index, request, at_ns);
    }
    PH_TRY(append(&player->unexpected, index));
    if (player->is_waiting && player->record.kind == PH_RUN_PROBE && fits(&player->record, message)) {
        player->now_ns = fmax(player->now_ns, at_ns);
        make_ready(players, player);
        return perform_probe(players, player);
    }
    return PH_OK;
}

static ph_status open_request(struct player *player)
{
    const size_t number = (size_t)player->record.request;
    if (number >= PH_RUN_REQUESTS)
        return ph_fail(PH_ERROR_BUG, "rank %u: request %zu", player->index, number);
    PH_TRY(ph__array_reserve(
        (void **)&player->requests, &player->requests_capacity, number + 1, sizeof *player->requests));
    player->num_requests = player->num_requests > number ? player->num_requests : number + 1;
    player->requests[number] = (struct request){.record = player->record};
    return PH_OK;
}

static double count_way(const struct players *players, const struct message *message)
{
    uint32_t links[PH_FABRIC_MAX_HOPS];
    double latency_ns;
    const size_t num_links = ph__mail_find_way(players->mail, message->from, message->to, links, &latency_ns);
    for (size_t i = 0; i < num_links; i++)
        if (links[i] < players->options->fabric->num_links)
            players->options->link_bytes_out[links[i]] += message->bytes;
    return latency_ns;
}

static ph_status perform_send(struct players *players, struct player *player)
{
    const struct ph__run_record *record = &player->record;
    uint32_t index;
    player->now_ns += players->send_ns;
    if (record->request != PH_RUN_NO_REQUEST)
        PH_TRY(open_request(player));
    PH_TRY(add_message(players, &index));
    struct message *message = &players->messages[index];
    *message = (struct message){.from = player->index,
        .to = (uint32_t)record->peer,
        .context = record->context,
        .tag = record->tag,
        .bytes = record->bytes,
        .payload = record->payload,
        .send = record->request};
    const struct ph__letter letter = {.from = message->from,
        .to = message->to,
        .tag = (int)index,
        .bytes = record->bytes,
        .at_ns = player->now_ns,
        .is_synchronous = record->is_synchronous};
    PH_TRY(ph__mail_send(players->mail, &letter, NULL, &message->sent));
    if (message->sent == PH_MAIL_DONE && record->request != PH_RUN_NO_REQUEST)
        request_is_done(players, player, &player->requests[record->request], player->now_ns);
    player->figures->num_messages++;
    player->figures->sent_bytes += record->bytes;
    ph__heap_put(
        &players->envelopes, &players->envelope_keys, index, player->now_ns + count_way(players, message));
    return PH_OK;
}

static ph_status perform_receive(struct players *players, struct player *player)
{
    PH_TRY(open_request(player));
    const size_t at = find_unexpected(players, player, &player->record);
    const uint32_t request = (uint32_t)player->record.request;
    if (at == player->unexpected.count) {
        PH_TRY(append(&player->posted, request));
    } else {
        const uint32_t message = player->unexpected.items[at];
        take_out(&player->unexpected, at);
        PH_TRY(meet(players, message, request, player->now_ns));
    }
    return PH_OK;
}

/* Ends a message of MPI_PROC_NULL at once. */
static ph_status perform_nothing(struct player *player)
{
    if (player->record.request == PH_RUN_NO_REQUEST)
        return PH_OK;
    PH_TRY(open_request(player));
    struct request *request = &player->requests[player->record.request];
    request->result = (struct ph__run_result){.is_done = true, .source = PH_RUN_ANY, .tag = PH_RUN_ANY};
    request->is_paid = true;
    return PH_OK;
}

static ph_status perform_watch(struct players *players, struct player *player)
{
    const size_t number = (size_t)player->record.request;
    (void)players;
    if (number >= player->num_requests)
        return ph_fail(PH_ERROR_BUG, "rank %u waits for request %zu", player->index, number);
    player->requests[number].is_watched = true;
    player->num_pending += !player->requests[number].result.is_done;
    return append(&player->watched, (uint32_t)number);
}

static ph_status perform_end(struct players *players, struct player *player)
{
    player->has_ended = true;
    player->figures->seconds = player->now_ns * 1e-9;
    players->num_running--;
    return PH_OK;
}

/* ---- records ---- */

/* Waits until the process has written a record. */
static ph_status await_record(const struct players *players, const struct player *player)
{
    const struct timespec limit = {.tv_nsec = CHECK_NS};
    struct ph__run_rank *shared = player->shared;
    const uint32_t taken = atomic_load(&shared->taken);
    ph_status status = PH_OK;
    while (atomic_load(&shared->written) == taken && status == PH_OK) {
        atomic_store(&shared->is_awaited, 1);
        if (atomic_load(&shared->written) == taken)
            ph__run_sleep(&shared->written, taken, &limit);
        atomic_store(&shared->is_awaited, 0);
        if (atomic_load(&shared->written) == taken)
            status = players->options->check(players->options->check_context, player->index);
    }
    return atomic_load(&shared->written) != taken ? PH_OK : status;
}

/* Takes the next record, and lets the rank compute until it does what the record says. */
static ph_status take_record(struct players *players, struct player *player)
{
    struct ph__run_rank *shared = player->shared;
    PH_TRY(await_record(players, player));
    player->last_kind = player->record.kind;
    player->record = shared->records[atomic_load(&shared->taken) % PH_RUN_RECORDS];
    atomic_fetch_add(&shared->taken, 1);
    ph__run_wake(&shared->taken);
    if (player->record.peer >= (int32_t)players->memory->num_ranks || player->record.peer < PH_RUN_NOBODY ||
        (player->record.kind == PH_RUN_SEND && player->record.peer == PH_RUN_ANY))
        return ph_fail(PH_ERROR_BUG, "rank %u has a message for rank %d", player->index, player->record.peer);
    const double computed_ns = player->record.computed_ns * player->slowness / players->options->speed;
    player->has_record = true;
    player->now_ns += computed_ns;
    if (player->record.slept_ns > 0)
        player->now_ns = rint(player->now_ns + player->record.slept_ns); /* clocks have whole nanoseconds */
    player->figures->computed_seconds += computed_ns * 1e-9;
    make_ready(players, player);
    return PH_OK;
}

/* Lets the rank whose clock is behind all others' take a record, or perform it. */
static ph_status play(struct players *players)
{
    static ph_status (*const performs[])(struct players *, struct player *) = {[PH_RUN_SEND] = perform_send,
        [PH_RUN_RECEIVE] = perform_receive,
        [PH_RUN_WATCH] = perform_watch,
        [PH_RUN_WAIT] = perform_wait,
        [PH_RUN_PROBE] = perform_probe,
        [PH_RUN_TIME] = perform_time,
        [PH_RUN_END] = perform_end};
    struct player *player = &players->ranks[ph__heap_first(&players->ready)];
    ph__heap_take(&players->ready, &players->rank_keys, player->index);
    if (!player->has_record)
        return take_record(players, player);
    player->has_record = false;
    player->waits_since_ns = player->now_ns;
    if ((unsigned)player->record.kind > PH_RUN_END)
        return ph_fail(PH_ERROR_BUG, "rank %u has a record of kind %u", player->index, player->record.kind);
    PH_TRY(player->record.peer == PH_RUN_NOBODY ? perform_nothing(player)
                                                : performs[player->record.kind](players, player));
    if (!player->is_waiting && !player->has_ended)
        make_ready(players, player);
    return PH_OK;
}

/* ---- deadlocks ---- */

static const struct ph__run_record *waits_for(const struct player *player)
{
    if (player->record.kind == PH_RUN_PROBE)
        return &player->record;
    for (size_t i = 0; i < player->watched.count; i++)
        if (!player->requests[player->watched.items[i]].result.is_done)
            return &player->requests[player->watched.items[i]].record;
    return &player->record;
}

static int describe(const struct player *player, char *text, size_t size)
{
    const struct ph__run_record *record = waits_for(player);
    char peer[32] = "any rank", tag[32] = "any tag";
    if (record->peer != PH_RUN_ANY)
        snprintf(peer, sizeof peer, "rank %d", record->peer);
    if (record->context % 2 != 0)
        snprintf(tag, sizeof tag, "in a collective");
    else if (record->tag != PH_RUN_ANY)
        snprintf(tag, sizeof tag, "tag %d", record->tag);
    return snprintf(text, size, "rank %u waits %s %s (%s)", player->index,
        record->kind == PH_RUN_SEND ? "for a receive of" : "for a message of", peer, tag);
}

static ph_status report_deadlock(const struct players *players)
{
    char list[400] = "";
    size_t used = 0, num_waiting = 0;
    for (size_t i = 0; i < players->memory->num_ranks; i++) {
        if (!players->ranks[i].is_waiting)
            continue;
        char text[128];
        const int length = describe(&players->ranks[i], text, sizeof text);
        if (num_waiting++ < 4 && length > 0 && used + (size_t)length + 3 < sizeof list)
            used += (size_t)snprintf(list + used, sizeof list - used, "%s%s", used > 0 ? ", " : "", text);
    }
    return ph_fail(PH_ERROR_PEER, "deadlock of %zu ranks: %s%s", num_waiting, list,
        num_waiting > 4 ? ", and so on" : "");
}

/* ---- the run ---- */

static ph_status step_mail(struct players *players, double until_ns)
{
    struct ph__mail_news news;
    PH_TRY(ph__mail_step(players->mail, until_ns, &news));
    if (++players->num_steps % FORGET_EVERY == 0)
        ph__mail_forget(players->mail, fmin(until_ns, ph__mail_next_ns(players->mail)));
    if (!news.is_any)
        return PH_OK;
    const uint32_t index = (uint32_t)news.tag;
    struct message *message = &players->messages[index];
    if (news.is_receive) {
        receive_is_done(players, index, news.at_ns);
        return PH_OK;
    }
    (void)ph__mail_is_sent(players->mail, message->sent);
    struct player *player = &players->ranks[message->from];
    if (message->send != PH_RUN_NO_REQUEST)
        request_is_done(players, player, &player->requests[message->send], news.at_ns);
    return PH_OK;
}

/* Lets happen what is next. */
static ph_status step(struct players *players)
{
    const double ready_ns = ph__heap_least(&players->ready);
    const double envelope_ns = ph__heap_least(&players->envelopes);
    const double until_ns = fmin(ready_ns, envelope_ns);
    if (ph__mail_next_ns(players->mail) < until_ns)
        return step_mail(players, until_ns);
    if (players->envelopes.count > 0 && envelope_ns <= ready_ns)
        return let_envelope_come(players);
    return players->ready.count > 0 ? play(players) : report_deadlock(players);
}

static ph_status play_all(struct players *players)
{
    ph_status status = PH_OK;
    while (players->num_running > 0 && status == PH_OK) {
        status = atomic_load(&players->memory->has_failed) == 2
                     ? ph_fail(PH_ERROR_PEER, "%s", players->memory->failure)
                     : step(players);
    }
    return status;
}

static ph_status init(struct players *players)
{
    const struct ph__players_options *options = players->options;
    const size_t num_ranks = players->memory->num_ranks;
    const struct ph__fabric_slow *slow = options->fabric->slow.items;
    players->ranks = calloc(num_ranks, sizeof *players->ranks);
    if (players->ranks == NULL)
        return ph__out_of_memory("%zu simulated ranks", num_ranks);
    PH_TRY(ph__mail_create(options->fabric, num_ranks, options->slack, &players->mail));
    PH_TRY(ph__heap_reserve(&players->ready, num_ranks));
    for (size_t i = 0; i < num_ranks; i++) {
        options->ranks_out[i] = (struct ph__player_figures){0};
        players->ranks[i] = (struct player){.index = (uint32_t)i,
            .shared = &players->memory->ranks[i],
            .slowness = 1,
            .record.kind = PH_RUN_END,
            .figures = &options->ranks_out[i]};
        PH_TRY(ph__heap_items_add(&players->rank_keys));
        make_ready(players, &players->ranks[i]);
    }
    for (size_t i = 0; i < options->fabric->slow.count; i++)
        if ((size_t)slow[i].rank < num_ranks)
            players->ranks[slow[i].rank].slowness = slow[i].factor;
    return PH_OK;
}

static void fini(struct players *players)
{
    for (size_t i = 0; players->ranks != NULL && i < players->memory->num_ranks; i++) {
        free(players->ranks[i].requests);
        free(players->ranks[i].watched.items);
        free(players->ranks[i].posted.items);
        free(players->ranks[i].unexpected.items);
    }
    free(players->ranks);
    free(players->messages);
    ph__mail_destroy(players->mail);
    ph__heap_fini(&players->ready);
    ph__heap_fini(&players->envelopes);
    ph__heap_items_fini(&players->rank_keys);
    ph__heap_items_fini(&players->envelope_keys);
}

ph_status ph__players_run(const struct ph__players_options *options)
{
    struct players players = {.options = options,
        .memory = options->memory,
        .send_ns = options->fabric->messages.send_us * 1e3,
        .receive_ns = options->fabric->messages.receive_us * 1e3,
        .num_running = options->memory->num_ranks,
        .free = NONE};
    ph_status status = init(&players);
    if (status == PH_OK)
        status = play_all(&players);
    fini(&players);
    return status;
}
