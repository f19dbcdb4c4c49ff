#include "base/memory/absent.h"

#include <signal.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "base/memory/memory.h"

/* Addresses that are asked for at first, and at last: sanitizers leave fewer. */
#define MOST_BYTES ((size_t)1 << 45)
#define LEAST_BYTES ((size_t)1 << 34)

static _Thread_local struct ph__absent *used;
static _Thread_local uint64_t live_bytes;

ph_status ph__absent_init(struct ph__absent *absent)
{
    *absent = (struct ph__absent){0};
    for (size_t size = MOST_BYTES; size >= LEAST_BYTES; size /= 2) {
        void *begin = mmap(NULL, size, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
        if (begin == MAP_FAILED)
            continue;
        *absent = (struct ph__absent){.begin = begin, .end = (unsigned char *)begin + size, .next = begin};
        return PH_OK;
    }
    return ph__out_of_memory("no addresses are left for simulated memory: raise ulimit -v");
}

void ph__absent_fini(struct ph__absent *absent)
{
    if (absent->begin != NULL)
        munmap(absent->begin, (size_t)(absent->end - absent->begin));
    *absent = (struct ph__absent){0};
}

void ph__absent_use(struct ph__absent *absent)
{
    used = absent;
}

const struct ph__absent *ph__absent_used(void)
{
    return used;
}

uint64_t ph__absent_live_bytes(void)
{
    return live_bytes;
}

bool ph__memory_is_absent(const void *pointer)
{
    const unsigned char *address = pointer;
    return used != NULL && address >= used->begin && address < used->end;
}

/* ---- touches ---- */

static _Thread_local const char *running;
static struct sigaction former; /* written once, before there is a touch */

void ph__absent_run(const char *what)
{
    running = what;
}

static void say(const char *text)
{
    const ssize_t written = write(STDERR_FILENO, text, strlen(text));
    (void)written;
}

/* Leaves other faults to the former handler: the instruction faults again. */
static void explain(int number, siginfo_t *info, void *context)
{
    (void)context;
    if (!ph__memory_is_absent(info->si_addr)) {
        sigaction(number, &former, NULL);
        return;
    }
    say("phloem: error: bug: ");
    say(running != NULL ? running : "the program");
    say(" touched numbers that a simulation does not have\n");
    _exit(1);
}

void ph__absent_explain_touches(void)
{
    const struct sigaction action = {.sa_sigaction = explain, .sa_flags = SA_SIGINFO};
    sigaction(SIGSEGV, &action, &former);
}

/* ---- numbers ---- */

ph_status ph__numbers_alloc(size_t size, const char *what, void **pointer_out)
{
    if (used == NULL)
        return ph__memory_alloc(size, what, pointer_out);
    const size_t bytes = size < SIZE_MAX / 2 ? ph__size_align(size > 0 ? size : 1) : SIZE_MAX;
    if (bytes > (size_t)(used->end - used->next))
        return ph__out_of_memory("cannot allocate %zu simulated bytes for %s", size, what);
    *pointer_out = used->next;
    used->next += bytes;
    live_bytes += size;
    return PH_OK;
}

/* Addresses are not given away again: there are enough of them. */
void ph__numbers_free(void *pointer, size_t size)
{
    if (ph__memory_is_absent(pointer))
        live_bytes -= size;
    else
        ph__memory_free(pointer, size);
}

void ph__numbers_move(void *to, const void *from, size_t bytes)
{
    if (bytes > 0 && !ph__memory_is_absent(to) && !ph__memory_is_absent(from))
        memmove(to, from, bytes);
}
