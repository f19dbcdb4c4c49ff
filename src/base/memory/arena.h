/* Bump allocation for things with one lifetime (a program under construction, a parsed config).
 * Not synchronised: one thread at a time. Memory is zeroed. Pointers stay valid until reset or fini. */
#ifndef PH_BASE_ARENA_H
#define PH_BASE_ARENA_H

#include <stddef.h>

struct ph__arena_block;

struct ph__arena {
    struct ph__arena_block *blocks; /* newest first; zero-initialised is an empty arena */
};

/* Allocates zeroed memory aligned for any type. Returns NULL when out of memory, and records the error. size
 * 0 is fine. */
void *ph__arena_alloc(struct ph__arena *arena, size_t size);
void *ph__arena_alloc_array(struct ph__arena *arena, size_t count, size_t size); /* checks count * size */
char *ph__arena_strdup(struct ph__arena *arena, const char *text);
char *ph__arena_printf(struct ph__arena *arena, const char *format, ...)
    __attribute__((format(printf, 2, 3)));
/* Takes all allocations back and keeps a block that is large enough for as many again: an arena that is
 * filled alike again and again soon allocates no more. */
void ph__arena_reset(struct ph__arena *arena);
void ph__arena_fini(struct ph__arena *arena);

#endif
