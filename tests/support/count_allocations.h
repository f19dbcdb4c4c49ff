/* Interposes malloc, calloc, realloc, aligned_alloc and strdup in the test program that includes this file
 * (one source file only), and counts calls while armed. Libraries' calls are counted apart: oneDNN makes an
 * argument map for each primitive that it executes (also by libstdc++), libmicrohttpd a response, nghttp2 a
 * stream. A chosen call may fail.
 *
 * Under a sanitizer, which owns malloc itself, nothing is interposed, and allocations_are_counted() returns
 * false. */
#ifndef PH_TEST_COUNT_ALLOCATIONS_H
#define PH_TEST_COUNT_ALLOCATIONS_H

#include <dlfcn.h>
#include <errno.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>

#include "support/is_sanitized.h"

enum allocator { ALLOCATOR_OURS, ALLOCATOR_LIBRARY };

static atomic_bool allocations_armed;
static atomic_uint allocations_by[2];
static atomic_int allocations_until_failure; /* 0: none fails */

static inline unsigned num_allocations(enum allocator who)
{
    return atomic_load(&allocations_by[who]);
}

static inline void count_allocations(bool is_on)
{
    atomic_store(&allocations_armed, is_on);
}

/* Makes a later call fail, by its number from 1, armed or not, whatever code makes it; 0: none fails. */
static inline void fail_allocation(int number)
{
    atomic_store(&allocations_until_failure, number);
}

/* Tells whether the call that fail_allocation chose has come. */
static inline bool allocation_has_failed(void)
{
    return atomic_load(&allocations_until_failure) <= 0;
}

#if PH_IS_SANITIZED

static inline bool allocations_are_counted(void)
{
    return false;
}

#else

static inline bool allocations_are_counted(void)
{
    return true;
}

static inline void count_allocation(const void *caller)
{
    Dl_info info;
    if (!atomic_load(&allocations_armed))
        return;
    static const char *const libraries[] = {"libdnnl", "libstdc++", "libmicrohttpd", "libnghttp2"};
    bool is_library = false;
    if (dladdr(caller, &info) != 0 && info.dli_fname != NULL)
        for (size_t i = 0; i < sizeof libraries / sizeof *libraries; i++)
            is_library |= strstr(info.dli_fname, libraries[i]) != NULL;
    atomic_fetch_add(&allocations_by[is_library ? ALLOCATOR_LIBRARY : ALLOCATOR_OURS], 1);
}

static inline bool allocation_fails(void)
{
    if (atomic_load(&allocations_until_failure) <= 0 || atomic_fetch_sub(&allocations_until_failure, 1) != 1)
        return false;
    errno = ENOMEM;
    return true;
}

extern void *__libc_malloc(size_t size);
extern void *__libc_calloc(size_t count, size_t size);
extern void *__libc_realloc(void *pointer, size_t size);
extern void *__libc_memalign(size_t alignment, size_t size);

void *malloc(size_t size)
{
    count_allocation(__builtin_return_address(0));
    return allocation_fails() ? NULL : __libc_malloc(size);
}

void *calloc(size_t count, size_t size)
{
    count_allocation(__builtin_return_address(0));
    return allocation_fails() ? NULL : __libc_calloc(count, size);
}

void *realloc(void *pointer, size_t size)
{
    count_allocation(__builtin_return_address(0));
    return allocation_fails() ? NULL : __libc_realloc(pointer, size);
}

void *aligned_alloc(size_t alignment, size_t size)
{
    count_allocation(__builtin_return_address(0));
    return allocation_fails() ? NULL : __libc_memalign(alignment, size);
}

/* Counts for its caller, which the strdup of the C library would hide. */
char *strdup(const char *text)
{
    const size_t size = strlen(text) + 1;
    count_allocation(__builtin_return_address(0));
    char *copy = allocation_fails() ? NULL : __libc_malloc(size);
    return copy != NULL ? memcpy(copy, text, size) : NULL;
}

#endif
#endif
