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
    process.descriptor = descriptor;
    process.memory = memory;
    process.own = &process.memory->ranks[process.rank];
    return true;
}

struct ph__process *ph__process(void)
{
    int descriptor;
    if (process.memory != NULL)
        return &process;
    const char *place = getenv(PH_RUN_ENVIRONMENT);
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
