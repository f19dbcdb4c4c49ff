/* The arena: a list of blocks; allocations come from the newest. A request that does not fit opens a block of
 * its own size or of the usual size, whichever is larger; the rest of the former block stays unused. */
#include "base/memory/arena.h"

#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/memory/memory.h"
#include "phloem/status.h"

#define BLOCK_BYTES ((size_t)32 << 10)

struct ph__arena_block {
    struct ph__arena_block *next; /* older */
    size_t capacity, used;        /* bytes of `data` */
    _Alignas(max_align_t) unsigned char data[];
};

static struct ph__arena_block *block_create(size_t capacity)
{
    size_t bytes = 0;
    if (!ph__size_add(capacity, sizeof(struct ph__arena_block), &bytes))
        return NULL;
    struct ph__arena_block *block = calloc(1, bytes);
    if (block != NULL)
        block->capacity = capacity;
    return block;
}

void *ph__arena_alloc(struct ph__arena *arena, size_t size)
{
    size_t alignment = _Alignof(max_align_t);
    size_t padded = 0;
    struct ph__arena_block *block = arena->blocks;
    if (!ph__size_add(size, alignment - 1, &padded)) {
        ph__out_of_memory("a request of %zu bytes", size);
        return NULL;
    }
    padded -= padded % alignment;
    if (block == NULL || block->capacity - block->used < padded) {
        block = block_create(padded > BLOCK_BYTES ? padded : BLOCK_BYTES);
        if (block == NULL) {
            ph__out_of_memory("cannot allocate %zu bytes", size);
            return NULL;
        }
        block->next = arena->blocks;
        arena->blocks = block;
    }
    void *pointer = block->data + block->used;
    block->used += padded;
    return pointer;
}

void *ph__arena_alloc_array(struct ph__arena *arena, size_t count, size_t size)
{
    size_t bytes = 0;
    if (!ph__size_mul(count, size, &bytes)) {
        ph__out_of_memory("an array of %zu times %zu bytes", count, size);
        return NULL;
    }
    return ph__arena_alloc(arena, bytes);
}

char *ph__arena_strdup(struct ph__arena *arena, const char *text)
{
    size_t bytes = strlen(text) + 1;
    char *copy = ph__arena_alloc(arena, bytes);
    if (copy != NULL)
        memcpy(copy, text, bytes);
    return copy;
}

char *ph__arena_printf(struct ph__arena *arena, const char *format, ...)
{
    va_list arguments;
    va_start(arguments, format);
    int length = vsnprintf(NULL, 0, format, arguments);
    va_end(arguments);
    if (length < 0) {
        ph_fail(PH_ERROR_BUG, "cannot format \"%s\"", format);
        return NULL;
    }
    char *text = ph__arena_alloc(arena, (size_t)length + 1);
    if (text == NULL)
        return NULL;
    va_start(arguments, format);
    vsnprintf(text, (size_t)length + 1, format, arguments);
    va_end(arguments);
    return text;
}

/* Grows the kept block to all that was used, so that the same allocations fit into it next time. */
void ph__arena_reset(struct ph__arena *arena)
{
    struct ph__arena_block *block = arena->blocks;
    size_t used = 0;
    if (block == NULL)
        return;
    if (block->next == NULL) {
        memset(block->data, 0, block->used);
        block->used = 0;
        return;
    }
    for (; block != NULL; block = block->next)
        used += block->used;
    ph__arena_fini(arena);
    arena->blocks = block_create(used);
}

void ph__arena_fini(struct ph__arena *arena)
{
    struct ph__arena_block *block = arena->blocks;
    while (block != NULL) {
        struct ph__arena_block *older = block->next;
        free(block);
        block = older;
    }
    arena->blocks = NULL;
}
