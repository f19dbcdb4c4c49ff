#include "preload/sim/sim_process.h"

#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

static struct ph__process process;

/* ---- joining and ending ---- */

static bool map(int descriptor)
{
    struct ph__run_memory head;
    if (pread(descriptor, &head, sizeof head, 0) != sizeof head || process.rank >= head.num_ranks)
        return false;
    void *memory = mmap(NULL, head.bytes, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_NORESERVE, descriptor, 0);
    if (memory == MAP_FAILED)
        return false;
    process.memory = memory;
    process.own = &process.memory->ranks[process.rank];
    return true;
}

struct ph__process *ph__process(void)
{
    const char *place = getenv(PH_RUN_ENVIRONMENT);
    int descriptor;
    if (process.memory != NULL)
        return &process;
    if (place == NULL || sscanf(place, "%d:%u", &descriptor, &process.rank) != 2 || !map(descriptor))
        return NULL;
    return &process;
}

void ph__process_fail(int exit_code, const char *format, ...)
{
    uint32_t expected = 0;
    va_list arguments;
    struct ph__run_memory *memory = process.memory;
    va_start(arguments, format);
    fflush(NULL); /* what the program has printed */
    if (memory == NULL) {
        vfprintf(stderr, format, arguments);
        fputc('\n', stderr);
        _exit(exit_code);
    }
    if (atomic_compare_exchange_strong(&memory->has_failed, &expected, 1)) {
        vsnprintf(memory->failure, sizeof memory->failure, format, arguments);
        memory->exit_code = exit_code;
        atomic_store(&memory->has_failed, 2);
    }
    for (;;) /* until the simulator ends all processes */
        pause();
}

/* ---- time ---- */

static _Thread_local double left_ns; /* processor's time at the last call's end; 0: it has not called MPI */
static _Thread_local bool is_ranks;  /* it has */
static double computed_ns, slept_ns;

static double thread_ns(void)
{
    struct timespec now;
    clock_gettime(CLOCK_THREAD_CPUTIME_ID, &now);
    return (double)now.tv_sec * 1e9 + (double)now.tv_nsec;
}

void ph__process_enter(void)
{
    if (process.memory == NULL)
        ph__process_fail(2, "MPI is used before MPI_Init, or not below phloem sim run");
    if (!process.memory->is_compute_free && left_ns > 0)
        computed_ns += thread_ns() - left_ns;
}

void ph__process_leave(void)
{
    is_ranks = true;
    if (!process.memory->is_compute_free)
        left_ns = thread_ns();
}

void ph__process_begin_sum(void)
{
    ph__process_leave();
}

void ph__process_end_sum(void)
{
    ph__process_enter();
}

bool ph__process_sleep(double ns)
{
    slept_ns += is_ranks ? ns : 0;
    return is_ranks;
}

/* ---- records ---- */

void ph__process_post(struct ph__run_record record)
{
    struct ph__run_rank *own = process.own;
    const uint32_t written = atomic_load(&own->written);
    for (uint32_t taken; written - (taken = atomic_load(&own->taken)) == PH_RUN_RECORDS;)
        ph__run_sleep(&own->taken, taken, NULL);
    record.computed_ns = computed_ns;
    record.slept_ns = slept_ns;
    computed_ns = slept_ns = 0;
    own->records[written % PH_RUN_RECORDS] = record;
    atomic_store(&own->written, written + 1);
    if (atomic_load(&own->is_awaited) != 0)
        ph__run_wake(&own->written);
}

void ph__process_ask(struct ph__run_record record)
{
    const uint32_t answered = atomic_load(&process.own->answered);
    ph__process_post(record);
    while (atomic_load(&process.own->answered) == answered)
        ph__run_sleep(&process.own->answered, answered, NULL);
}

/* ---- the heap: blocks of powers of two, which receivers give back to a list of their sender's ---- */

struct block { /* the data are behind it */
    uint64_t next;
    uint64_t level; /* log2 of its bytes */
};
enum { MOST_LEVELS = 36 };

static uint64_t free_blocks[MOST_LEVELS];
static uint64_t used_bytes; /* of the heap, so far */

static struct block *block_at(uint64_t place)
{
    return (struct block *)(void *)((char *)process.memory + place);
}

static void gather_freed(void)
{
    uint64_t place = atomic_exchange(&process.own->freed, 0);
    while (place != 0) {
        struct block *block = block_at(place);
        const uint64_t next = block->next;
        block->next = free_blocks[block->level];
        free_blocks[block->level] = place;
        place = next;
    }
}

static uint64_t allocate(size_t bytes)
{
    uint64_t level = 6;
    while ((uint64_t)1 << level < bytes + sizeof(struct block))
        level++;
    if (level < MOST_LEVELS && free_blocks[level] == 0)
        gather_freed();
    if (level < MOST_LEVELS && free_blocks[level] != 0) {
        const uint64_t place = free_blocks[level];
        free_blocks[level] = block_at(place)->next;
        return place;
    }
    if (level >= MOST_LEVELS || used_bytes + ((uint64_t)1 << level) > PH_RUN_HEAP_BYTES)
        ph__process_fail(5, "rank %u has more than %llu GiB of messages on their way", process.rank,
            (unsigned long long)(PH_RUN_HEAP_BYTES >> 30));
    const uint64_t place = ph__run_heap(process.memory->num_ranks, process.rank) + used_bytes;
    used_bytes += (uint64_t)1 << level;
    block_at(place)->level = level;
    return place;
}

static void give_back(uint64_t place, int32_t owner)
{
    _Atomic uint64_t *list = &process.memory->ranks[owner].freed;
    uint64_t first = atomic_load(list);
    do
        block_at(place)->next = first;
    while (!atomic_compare_exchange_weak(list, &first, place));
}

/* Copies the first bytes of runs to packed data, or back. */
static void copy(const struct ph__runs *runs, size_t bytes, char *packed, bool packs)
{
    for (size_t at = 0, run = 0; at < bytes; at += runs->run_bytes, run++) {
        const size_t length = bytes - at < runs->run_bytes ? bytes - at : runs->run_bytes;
        char *data = runs->data + run * runs->stride;
        memcpy(packs ? packed + at : data, packs ? data : packed + at, length);
    }
}

static uint64_t put(const struct ph__runs *runs)
{
    if (runs->bytes == 0)
        return 0;
    const uint64_t place = allocate(runs->bytes);
    char *data = (char *)(block_at(place) + 1);
    copy(runs, runs->bytes, data, true);
    return place;
}

static void get(const struct ph__run_result *result, const struct ph__runs *runs)
{
    if (result->payload == 0)
        return;
    copy(runs, result->bytes, (char *)(block_at(result->payload) + 1), false);
    give_back(result->payload, result->source);
}

/* ---- requests ---- */

static struct ph__request requests[PH_RUN_REQUESTS];
static int32_t num_requests, free_request = PH_RUN_NO_REQUEST;

int32_t ph__request_add(const struct ph__request *request)
{
    int32_t number = free_request;
    if (number != PH_RUN_NO_REQUEST)
        free_request = requests[number].next;
    else if (num_requests == PH_RUN_REQUESTS)
        ph__process_fail(
            5, "rank %u has more than %d requests at a time", process.rank, (int)PH_RUN_REQUESTS);
    else
        number = num_requests++;
    requests[number] = *request;
    requests[number].is_used = true;
    return number;
}

struct ph__request *ph__request_at(int32_t number)
{
    return number >= 0 && number < num_requests && requests[number].is_used ? &requests[number] : NULL;
}

void ph__request_remove(int32_t number)
{
    requests[number] = (struct ph__request){.next = free_request};
    free_request = number;
}

static struct ph__run_record record_of(const struct ph__request *request, int32_t number)
{
    return (struct ph__run_record){.kind = request->is_send ? PH_RUN_SEND : PH_RUN_RECEIVE,
        .is_synchronous = request->is_synchronous,
        .request = number,
        .peer = request->peer,
        .tag = request->tag,
        .context = request->context,
        .bytes = request->runs.bytes,
        .payload = request->is_send ? put(&request->runs) : 0};
}

void ph__request_start(int32_t number)
{
    struct ph__request *request = &requests[number];
    request->is_active = true;
    if (!request->is_nobody)
        ph__process_post(record_of(request, number));
}

bool ph__request_send_eagerly(const struct ph__request *request)
{
    if (request->is_nobody)
        return true;
    if (request->is_synchronous || request->runs.bytes >= process.memory->eager_bytes)
        return false;
    ph__process_post(record_of(request, PH_RUN_NO_REQUEST));
    return true;
}

bool ph__request_take(int32_t number, struct ph__run_result *result_out)
{
    struct ph__request *request = &requests[number];
    *result_out = (struct ph__run_result){.is_done = true, .source = PH_RUN_ANY, .tag = PH_RUN_ANY};
    if (!request->is_nobody)
        *result_out = process.own->results[number];
    if (!result_out->is_done)
        return false;
    if (!request->is_nobody && !request->is_send)
        get(result_out, &request->runs);
    request->is_active = false;
    if (!request->is_persistent)
        ph__request_remove(number);
    return true;
}

void ph__request_watch(int32_t number)
{
    if (!requests[number].is_nobody)
        ph__process_post((struct ph__run_record){.kind = PH_RUN_WATCH, .request = number});
}

struct ph__run_result ph__request_finish_all(const int32_t *numbers, size_t count)
{
    struct ph__run_result result = {0};
    for (size_t i = 0; i < count; i++)
        ph__request_watch(numbers[i]);
    ph__process_ask((struct ph__run_record){.kind = PH_RUN_WAIT, .mode = PH_RUN_ALL});
    for (size_t i = 0; i < count; i++)
        (void)ph__request_take(numbers[i], &result);
    return result;
}
