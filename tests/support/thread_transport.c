#include "support/thread_transport.h"

#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/rng.h"

enum { MOST_WAIT = 4 }; /* most tests of a request before it is found done */

/* A message in its receiver's inbox, or a receive that waits for one. */
struct mail {
    struct mail *next, *made_before;
    bool is_message;
    size_t other; /* its sender */
    int tag;
    size_t bytes;
    void *data;         /* of a receive: its caller's */
    bool is_done;       /* the message was taken, or the receive has it */
    bool is_asked_for;  /* a request for this message exists */
    size_t came;        /* bytes of the message that a receive got */
    unsigned char *own; /* of a message: its copy */
    size_t capacity;
};

struct queue {
    struct mail *first, **end;
};

struct desk {
    struct thread_world *world;
    size_t rank;
    struct queue inbox, receives;
    struct ph__rng_sequence random;
    size_t num_messages;
    bool has_begun, is_dead;
};

struct thread_world {
    pthread_mutex_t lock; /* of the members below */
    size_t size, num_left, dead;
    struct mail *spare, *made_last;
    const struct thread_fault *faults;
    size_t num_faults;
    struct desk *desks;
};

/* ---- queues ---- */

/* Allocates without malloc, which tests count. */
static void *allocate(size_t size)
{
    void *memory = NULL;
    if (posix_memalign(&memory, 64, size) != 0)
        abort();
    memset(memory, 0, size);
    return memory;
}

static void queue_init(struct queue *queue)
{
    *queue = (struct queue){.end = &queue->first};
}

static void queue_push(struct queue *queue, struct mail *mail)
{
    mail->next = NULL;
    *queue->end = mail;
    queue->end = &mail->next;
}

static void queue_remove(struct queue *queue, struct mail *mail)
{
    struct mail **link = &queue->first;
    while (*link != mail)
        link = &(*link)->next;
    *link = mail->next;
    if (queue->end == &mail->next)
        queue->end = link;
}

static struct mail *new_mail(struct thread_world *world)
{
    struct mail *mail = world->spare;
    if (mail != NULL) {
        world->spare = mail->next;
        *mail = (struct mail){.made_before = mail->made_before, .own = mail->own, .capacity = mail->capacity};
        return mail;
    }
    mail = allocate(sizeof *mail);
    mail->made_before = world->made_last;
    world->made_last = mail;
    return mail;
}

static void drop_mail(struct thread_world *world, struct mail *mail)
{
    mail->next = world->spare;
    world->spare = mail;
}

static void keep_copy(struct mail *mail, const void *data, size_t bytes)
{
    if (bytes > mail->capacity) {
        free(mail->own);
        mail->own = allocate(bytes);
        mail->capacity = bytes;
    }
    if (bytes > 0)
        memcpy(mail->own, data, bytes);
}

/* ---- faults ---- */

static bool has_fault(const struct desk *desk, int kind)
{
    for (size_t f = 0; f < desk->world->num_faults; f++) {
        const struct thread_fault *fault = &desk->world->faults[f];
        if ((int)fault->kind == kind && fault->rank == desk->rank && desk->num_messages >= fault->count &&
            (desk->has_begun || fault->is_early))
            return true;
    }
    return false;
}

static uint64_t tests_of(const struct desk *desk, size_t from)
{
    uint64_t tests = 0;
    for (size_t f = 0; f < desk->world->num_faults; f++) {
        const struct thread_fault *fault = &desk->world->faults[f];
        if (fault->kind == THREAD_IS_SLOW && fault->rank == from)
            tests += fault->count;
    }
    return tests;
}

/* Counts a message. Returns true when it cannot be sent or received. */
static bool count_message(struct desk *desk, int kind)
{
    if (!desk->is_dead && has_fault(desk, THREAD_DIES)) {
        desk->is_dead = true;
        desk->world->dead = desk->rank;
    }
    const bool is_refused = has_fault(desk, kind);
    desk->num_messages++;
    return is_refused;
}

/* ---- the table ---- */

static bool refuse(struct thread_world *world, char *error, const char *text)
{
    pthread_mutex_unlock(&world->lock);
    snprintf(error, PH_TRANSPORT_ERROR_BYTES, "%s", text);
    return false;
}

static bool send_message(void *context, size_t to, int tag, const void *data, size_t bytes,
    struct ph__transport_request *request_out, char error[PH_TRANSPORT_ERROR_BYTES])
{
    struct desk *desk = context;
    struct thread_world *world = desk->world;
    *request_out = (struct ph__transport_request){0};
    pthread_mutex_lock(&world->lock);
    if (count_message(desk, THREAD_CANNOT_SEND))
        return refuse(world, error, "the cable is cut");
    request_out->spare = ph__rng_below(&desk->random, MOST_WAIT);
    if (!desk->is_dead) {
        struct mail *mail = new_mail(world);
        keep_copy(mail, data, bytes);
        mail->is_message = true;
        mail->other = desk->rank;
        mail->tag = tag;
        mail->bytes = bytes;
        mail->is_asked_for = ph__rng_below(&desk->random, 2) != 0; /* else it counts as sent at once */
        if (mail->is_asked_for)
            request_out->word = mail;
        queue_push(&world->desks[to].inbox, mail);
    }
    pthread_mutex_unlock(&world->lock);
    return true;
}

static bool receive_message(void *context, size_t from, int tag, void *data, size_t bytes,
    struct ph__transport_request *request_out, char error[PH_TRANSPORT_ERROR_BYTES])
{
    struct desk *desk = context;
    struct thread_world *world = desk->world;
    pthread_mutex_lock(&world->lock);
    if (count_message(desk, THREAD_CANNOT_RECEIVE))
        return refuse(world, error, "the mailbox is full");
    struct mail *mail = new_mail(world);
    mail->other = from;
    mail->tag = tag;
    mail->bytes = bytes;
    mail->data = data;
    queue_push(&desk->receives, mail);
    *request_out = (struct ph__transport_request){
        .word = mail, .spare = ph__rng_below(&desk->random, MOST_WAIT) + tests_of(desk, from)};
    pthread_mutex_unlock(&world->lock);
    return true;
}

static struct mail *find_message(const struct desk *desk, const struct mail *receive)
{
    struct mail *message = desk->inbox.first;
    while (message != NULL && (message->other != receive->other || message->tag != receive->tag))
        message = message->next;
    return message;
}

/* Gives receives their messages in the order in which they were started, whichever is tested first. */
static void take_messages(struct desk *desk)
{
    for (struct mail *receive = desk->receives.first; receive != NULL; receive = receive->next) {
        struct mail *message = receive->is_done ? NULL : find_message(desk, receive);
        if (message == NULL)
            continue;
        receive->is_done = true;
        receive->came = message->bytes;
        if (message->bytes == receive->bytes && message->bytes > 0)
            memcpy(receive->data, message->own, message->bytes);
        queue_remove(&desk->inbox, message);
        message->is_done = true;
        if (!message->is_asked_for)
            drop_mail(desk->world, message);
    }
}

static bool test_locked(
    struct desk *desk, struct ph__transport_request *request, bool *is_done_out, char *error)
{
    struct mail *mail = request->word;
    take_messages(desk);
    if (mail == NULL) {
        *is_done_out = true;
        return true;
    }
    *is_done_out = mail->is_done && !desk->is_dead;
    if (!*is_done_out)
        return true;
    if (!mail->is_message)
        queue_remove(&desk->receives, mail);
    drop_mail(desk->world, mail);
    if (!mail->is_message && mail->came != mail->bytes) {
        snprintf(error, PH_TRANSPORT_ERROR_BYTES, "a message has %zu bytes instead of %zu", mail->came,
            mail->bytes);
        return false;
    }
    return true;
}

static bool test_message(void *context, struct ph__transport_request *request, bool *is_done_out,
    char error[PH_TRANSPORT_ERROR_BYTES])
{
    struct desk *desk = context;
    *is_done_out = false;
    if (request->spare > 0) {
        request->spare--;
        return true;
    }
    pthread_mutex_lock(&desk->world->lock);
    const bool is_fine = test_locked(desk, request, is_done_out, error);
    pthread_mutex_unlock(&desk->world->lock);
    return is_fine;
}

static void close_desk(void *context, bool is_clean)
{
    struct desk *desk = context;
    pthread_mutex_lock(&desk->world->lock);
    for (struct mail *mail = desk->receives.first; mail != NULL; mail = mail->next)
        desk->world->num_left += is_clean;
    for (struct mail *mail = desk->inbox.first; mail != NULL; mail = mail->next)
        desk->world->num_left += is_clean;
    pthread_mutex_unlock(&desk->world->lock);
}

struct ph__transport thread_world_transport(struct thread_world *world, size_t rank)
{
    return (struct ph__transport){.context = &world->desks[rank],
        .rank = rank,
        .world_size = world->size,
        .name = "threads",
        .send = send_message,
        .receive = receive_message,
        .test = test_message,
        .close = close_desk};
}

/* ---- the world ---- */

struct thread_world *thread_world_create(
    size_t world_size, uint64_t seed, const struct thread_fault *faults, size_t num_faults)
{
    struct thread_world *world = allocate(sizeof *world);
    *world = (struct thread_world){.size = world_size,
        .dead = SIZE_MAX,
        .faults = faults,
        .num_faults = num_faults,
        .desks = allocate(world_size * sizeof *world->desks)};
    pthread_mutex_init(&world->lock, NULL);
    for (size_t rank = 0; rank < world_size; rank++) {
        struct desk *desk = &world->desks[rank];
        *desk = (struct desk){.world = world, .rank = rank, .random = {.key = {.seed = seed, .step = rank}}};
        queue_init(&desk->inbox);
        queue_init(&desk->receives);
    }
    return world;
}

size_t thread_world_destroy(struct thread_world *world)
{
    const size_t num_left = world->num_left;
    while (world->made_last != NULL) {
        struct mail *mail = world->made_last;
        world->made_last = mail->made_before;
        free(mail->own);
        free(mail);
    }
    pthread_mutex_destroy(&world->lock);
    free(world->desks);
    free(world);
    return num_left;
}

void thread_world_begin(struct thread_world *world, size_t rank)
{
    pthread_mutex_lock(&world->lock);
    world->desks[rank].has_begun = true;
    world->desks[rank].num_messages = 0;
    pthread_mutex_unlock(&world->lock);
}

size_t thread_world_dead(struct thread_world *world)
{
    pthread_mutex_lock(&world->lock);
    const size_t dead = world->dead;
    pthread_mutex_unlock(&world->lock);
    return dead;
}
