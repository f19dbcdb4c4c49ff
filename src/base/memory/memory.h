/* Large aligned memory, growable arrays, and the machine's memory figures. */
#ifndef PH_BASE_MEMORY_H
#define PH_BASE_MEMORY_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "phloem/status.h"

/* Fails with PH_ERROR_MEMORY; the text names what memory was wanted for: "a hub", "%zu keys", "cannot sort
 * %zu rows". */
ph_status ph__out_of_memory(const char *what, ...) PH_PRINTF(1, 2);

#define PH_ALIGNMENT 64 /* bytes: one cache line, one AVX-512 register */

/* Allocates zeroed memory aligned to PH_ALIGNMENT; from 2 MiB up aligned to 2 MiB and advised as transparent
 * huge pages. Fails with PH_ERROR_MEMORY naming `what` and the size. Freed with ph__memory_free(pointer,
 * size). */
ph_status ph__memory_alloc(size_t size, const char *what, void **pointer_out);
void ph__memory_free(void *pointer, size_t size); /* NULL is fine */

/* Allocates zeroed memory of which few pages will ever be written, in pages of the system's size; the others
 * take none. Freed with ph__memory_free_sparse(pointer, size). */
ph_status ph__memory_alloc_sparse(size_t size, const char *what, void **pointer_out);
void ph__memory_free_sparse(void *pointer, size_t size); /* NULL is fine */

/* Asks for transparent huge pages where the memory spans some. The memory must not have been written yet. */
void ph__memory_advise_large(void *pointer, size_t size);

/* a * b, a + b into *out; false on overflow, with *out untouched. */
bool ph__size_mul(size_t a, size_t b, size_t *out);
bool ph__size_add(size_t a, size_t b, size_t *out);
size_t ph__size_align(size_t size); /* rounded up to PH_ALIGNMENT */

/* Grows *items (malloc'ed, element size `size`) to hold at least `count`, doubling; large arrays are advised
 * as transparent huge pages. */
ph_status ph__array_reserve(void **items, size_t *capacity, size_t count, size_t size);

/* Gives the bytes that this process may still use: the least of MemAvailable and the cgroups' (v1 and v2)
 * remaining limits. */
ph_status ph__memory_available_bytes(uint64_t *bytes_out);
/* Gives the bytes that this machine lets the process have, used or not: the least of MemTotal and the
 * cgroups' limits. `root` as below. */
ph_status ph__memory_total_bytes(const char *root, uint64_t *bytes_out);
uint64_t ph__memory_peak_rss_bytes(void);  /* VmHWM */
uint64_t ph__memory_anonymous_bytes(void); /* RssAnon now */
/* A machine that the calling thread simulates: the first two functions above give its bytes to the thread,
 * the other two what it counts as used now. */
struct ph__memory_pretence {
    uint64_t machine_bytes; /* 0: the real machine's figures */
    uint64_t (*used_bytes)(void *context);
    void *context;
};
void ph__memory_pretend(const struct ph__memory_pretence *pretence); /* borrowed; NULL: no longer */
uint64_t ph__memory_heap_bytes(void); /* of all threads: allocated by malloc, and not freed */
void ph__memory_reset_peak_rss(void); /* to current use, where the system allows it */

/* ---- control groups (cgroup.c) ---- */

/* Limits of this process's control groups: the tightest limit of its own group and all groups above it.
 * `root` precedes every path that is read: "" is the machine, a folder is a test's imitation of one. Every
 * function returns false when no limit is known; unreadable files count as no limit. */

/* Gives the bytes until the memory limit: limit - usage + page cache that the kernel would free first. */
bool ph__cgroup_memory_remaining(const char *root, uint64_t *bytes_out);

/* Gives the memory limit itself, however much of it is used. */
bool ph__cgroup_memory_limit(const char *root, uint64_t *bytes_out);

/* Gives processor time per wall-clock second: 1.5 is one and a half processors. */
bool ph__cgroup_cpu_quota(const char *root, double *processors_out);

#endif
