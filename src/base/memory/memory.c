/* Large memory, and how much memory is left.
 *
 * From 2 MiB up memory comes from mmap directly. The kernel zeroes it on first touch. It lies on a 2 MiB
 * boundary so that transparent huge pages apply: first touch is several times faster, and random rows cost
 * fewer TLB misses. */
#include "base/memory/memory.h"

#include <fcntl.h>
#include <inttypes.h>
#include <limits.h>
#include <malloc.h>
#include <stdarg.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "base/memory/caller.h"
#include "phloem/memory.h"

#define HUGE_BYTES ((size_t)2 << 20)

ph_status ph__out_of_memory(const char *what, ...)
{
    char text[512];
    va_list arguments;
    va_start(arguments, what);
    vsnprintf(text, sizeof text, what, arguments);
    va_end(arguments);
    return ph_fail(PH_ERROR_MEMORY, "out of memory: %s", text);
}

static size_t round_up_to_huge(size_t size)
{
    return (size + HUGE_BYTES - 1) / HUGE_BYTES * HUGE_BYTES;
}

/* Returns the bytes from the start that are to be huge pages: all, unless the last page would add more than a
 * sixteenth to the size, as in an array that is little larger than two of them. */
static size_t huge_part(size_t size)
{
    const size_t all = round_up_to_huge(size);
    return all - size <= size / 16 ? all : size / HUGE_BYTES * HUGE_BYTES;
}

/* Maps a huge page more than wanted and unmaps what lies before and after the aligned part. */
static void *map_huge(size_t size)
{
    size_t wanted = round_up_to_huge(size);
    size_t mapped = wanted + HUGE_BYTES;
    unsigned char *start = mmap(NULL, mapped, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    if (start == MAP_FAILED)
        return NULL;
    size_t before = (HUGE_BYTES - (uintptr_t)start % HUGE_BYTES) % HUGE_BYTES;
    if (before > 0)
        munmap(start, before);
    munmap(start + before + wanted, HUGE_BYTES - before);
    const size_t huge = huge_part(size);
    madvise(start + before, huge, MADV_HUGEPAGE); /* advice: a kernel without it is fine */
    if (huge < wanted)
        madvise(start + before + huge, wanted - huge, MADV_NOHUGEPAGE);
    return start + before;
}

/* ---- hooks ---- */

static struct ph_memory_hooks hooks; /* of the process; allocate is NULL: none */
static atomic_size_t num_in_use;     /* allocations that were not freed yet */

ph_status ph_memory_set_hooks(const struct ph_memory_hooks *given)
{
    struct ph_memory_hooks own;
    PH_TRY(ph__options_copy(&own, sizeof own, given, "ph_memory_hooks"));
    if ((own.allocate == NULL) != (own.release == NULL) || (given != NULL && own.allocate == NULL))
        return ph_fail(PH_ERROR_USAGE, "struct ph_memory_hooks: set both allocate and release");
    if (atomic_load(&num_in_use) > 0)
        return ph_fail(PH_ERROR_USAGE,
            "memory hooks cannot change while memory is in use: set them before anything is created");
    hooks = own;
    return PH_OK;
}

/* ---- memory ---- */

ph_status ph__memory_alloc(size_t size, const char *what, void **pointer_out)
{
    if (size > SIZE_MAX / 2)
        return ph__out_of_memory("cannot allocate %zu bytes for %s", size, what);
    void *pointer = NULL;
    if (hooks.allocate != NULL) {
        pointer = hooks.allocate(hooks.context, size > 0 ? size : 1);
    } else if (size >= HUGE_BYTES) {
        pointer = map_huge(size);
    } else {
        size_t bytes = ph__size_align(size > 0 ? size : 1);
        pointer = aligned_alloc(PH_ALIGNMENT, bytes);
        if (pointer != NULL)
            memset(pointer, 0, bytes);
    }
    if (pointer == NULL)
        return ph__out_of_memory("cannot allocate %zu bytes for %s", size, what);
    atomic_fetch_add(&num_in_use, 1);
    *pointer_out = pointer;
    return PH_OK;
}

void ph__memory_free(void *pointer, size_t size)
{
    if (pointer == NULL)
        return;
    atomic_fetch_sub(&num_in_use, 1);
    if (hooks.release != NULL)
        hooks.release(hooks.context, pointer, size > 0 ? size : 1);
    else if (size >= HUGE_BYTES)
        munmap(pointer, round_up_to_huge(size));
    else
        free(pointer);
}

ph_status ph__memory_alloc_sparse(size_t size, const char *what, void **pointer_out)
{
    void *pointer = mmap(NULL, size > 0 ? size : 1, PROT_READ | PROT_WRITE,
        MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    if (pointer == MAP_FAILED)
        return ph__out_of_memory("cannot allocate %zu bytes for %s", size, what);
    madvise(pointer, size > 0 ? size : 1, MADV_NOHUGEPAGE);
    *pointer_out = pointer;
    return PH_OK;
}

void ph__memory_free_sparse(void *pointer, size_t size)
{
    if (pointer != NULL)
        munmap(pointer, size > 0 ? size : 1);
}

void ph__memory_advise_large(void *pointer, size_t size)
{
    uintptr_t start = ((uintptr_t)pointer + HUGE_BYTES - 1) / HUGE_BYTES * HUGE_BYTES;
    uintptr_t end = ((uintptr_t)pointer + size) / HUGE_BYTES * HUGE_BYTES;
    if (end > start)
        madvise((void *)start, end - start, MADV_HUGEPAGE); /* without it, it is only slower */
}

bool ph__size_mul(size_t a, size_t b, size_t *out)
{
    size_t product = 0;
    if (__builtin_mul_overflow(a, b, &product))
        return false;
    *out = product;
    return true;
}

bool ph__size_add(size_t a, size_t b, size_t *out)
{
    size_t sum = 0;
    if (__builtin_add_overflow(a, b, &sum))
        return false;
    *out = sum;
    return true;
}

size_t ph__size_align(size_t size)
{
    return (size + PH_ALIGNMENT - 1) / PH_ALIGNMENT * PH_ALIGNMENT;
}

ph_status ph__array_reserve(void **items, size_t *capacity, size_t count, size_t size)
{
    if (count <= *capacity)
        return PH_OK;
    size_t wanted = *capacity <= SIZE_MAX / 2 ? *capacity * 2 : count;
    wanted = wanted > count ? wanted : count;
    wanted = wanted > 8 ? wanted : 8;
    size_t bytes = 0;
    if (!ph__size_mul(wanted, size, &bytes))
        return ph__out_of_memory("an array of %zu times %zu bytes", wanted, size);
    void *grown = realloc(*items, bytes);
    if (grown == NULL)
        return ph__out_of_memory("cannot allocate %zu bytes for an array", bytes);
    ph__memory_advise_large(grown, bytes);
    *items = grown;
    *capacity = wanted;
    return PH_OK;
}

/* Reads the kB figure of a "Name:   123 kB" line of a file of /proc, in bytes; false when there is none. */
static bool read_kilobytes(const char *path, const char *name, uint64_t *bytes_out)
{
    FILE *file = fopen(path, "re");
    if (file == NULL)
        return false;
    char line[256];
    bool is_found = false;
    size_t length = strlen(name);
    while (!is_found && fgets(line, sizeof line, file) != NULL) {
        uint64_t kilobytes = 0;
        if (strncmp(line, name, length) == 0 && line[length] == ':' &&
            sscanf(line + length + 1, "%" SCNu64, &kilobytes) == 1) {
            *bytes_out = kilobytes * 1024;
            is_found = true;
        }
    }
    fclose(file);
    return is_found;
}

static _Thread_local const struct ph__memory_pretence *pretence;

void ph__memory_pretend(const struct ph__memory_pretence *new_pretence)
{
    pretence = new_pretence;
}

static bool pretend_machine(uint64_t *bytes_out)
{
    if (pretence == NULL || pretence->machine_bytes == 0)
        return false;
    *bytes_out = pretence->machine_bytes;
    return true;
}

ph_status ph__memory_available_bytes(uint64_t *bytes_out)
{
    uint64_t machine = UINT64_MAX, group = UINT64_MAX;
    if (pretend_machine(bytes_out))
        return PH_OK;
    bool has_machine = read_kilobytes("/proc/meminfo", "MemAvailable", &machine);
    bool has_group = ph__cgroup_memory_remaining("", &group);
    if (!has_machine && !has_group)
        return ph_fail(PH_ERROR_MEMORY,
            "free memory is unknown: /proc/meminfo has no MemAvailable, and no cgroup sets a limit");
    *bytes_out = machine < group ? machine : group;
    return PH_OK;
}

ph_status ph__memory_total_bytes(const char *root, uint64_t *bytes_out)
{
    char path[PATH_MAX];
    uint64_t machine = UINT64_MAX, group = UINT64_MAX;
    if (pretend_machine(bytes_out))
        return PH_OK;
    snprintf(path, sizeof path, "%s/proc/meminfo", root);
    bool has_machine = read_kilobytes(path, "MemTotal", &machine);
    bool has_group = ph__cgroup_memory_limit(root, &group);
    if (!has_machine && !has_group)
        return ph_fail(PH_ERROR_MEMORY,
            "the machine's memory is unknown: /proc/meminfo has no MemTotal, and no cgroup sets a limit");
    *bytes_out = machine < group ? machine : group;
    return PH_OK;
}

uint64_t ph__memory_peak_rss_bytes(void)
{
    uint64_t bytes = 0;
    if (pretence != NULL)
        return pretence->used_bytes(pretence->context);
    return read_kilobytes("/proc/self/status", "VmHWM", &bytes) ? bytes : 0;
}

uint64_t ph__memory_anonymous_bytes(void)
{
    uint64_t bytes = 0;
    if (pretence != NULL)
        return pretence->used_bytes(pretence->context);
    return read_kilobytes("/proc/self/status", "RssAnon", &bytes) ? bytes : 0;
}

uint64_t ph__memory_heap_bytes(void)
{
    const struct mallinfo2 info = mallinfo2();
    return info.uordblks + info.hblkhd;
}

void ph__memory_reset_peak_rss(void)
{
    int descriptor = open("/proc/self/clear_refs", O_WRONLY | O_CLOEXEC);
    if (descriptor < 0)
        return;
    ssize_t written = write(descriptor, "5", 1); /* see proc(5) */
    (void)written;                               /* the former peak is an upper bound */
    close(descriptor);
}
