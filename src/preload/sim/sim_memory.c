/* Folded memory, on request (phloem sim run --fold-memory): large pieces that the program itself allocates
 * lie, in all processes, on the same few pages. Their sizes are right and what they hold is not, so that more
 * ranks than this machine has memory for can send what they would send. What libraries allocate is not
 * folded. */
#include <dlfcn.h>
#include <pthread.h>
#include <stdlib.h>
#include <string.h>
#include <sys/auxv.h>
#include <sys/mman.h>

#include "preload/sim/sim_process.h"

#define LEAST_BYTES ((size_t)1 << 20) /* of a piece that is folded */
#define PAGE_BYTES ((size_t)4096)
enum { MOST_PIECES = 1024 }; /* at a time; further ones are not folded */

/* Allocate and free as the C library does, behind the names that this file takes. */
void *__libc_malloc(size_t bytes);
void *__libc_calloc(size_t count, size_t bytes);
void *__libc_realloc(void *data, size_t bytes);
void __libc_free(void *data);

struct piece {
    char *data;
    size_t bytes;
};

static struct piece pieces[MOST_PIECES]; /* the first num_pieces are there; the lock guards both */
static _Atomic size_t num_pieces;
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;

/* Tells whether code is the program's, and not a library's. */
static bool is_programs(const void *code)
{
    Dl_info place, program;
    const void *entry = (const void *)getauxval(AT_ENTRY);
    return dladdr(code, &place) != 0 && dladdr(entry, &program) != 0 && place.dli_fbase == program.dli_fbase;
}

/* Maps the shared pages again and again; returns NULL where that cannot be. */
static char *map(const struct ph__process *process, size_t bytes)
{
    const int access = PROT_READ | PROT_WRITE;
    char *data = mmap(NULL, bytes, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    if (data == MAP_FAILED)
        return NULL;
    for (size_t at = 0; at < bytes; at += PH_RUN_FOLD_BYTES) {
        const size_t rest = bytes - at, part = rest < PH_RUN_FOLD_BYTES ? rest : PH_RUN_FOLD_BYTES;
        if (mmap(data + at, part, access, MAP_SHARED | MAP_FIXED, process->descriptor,
                (off_t)process->memory->fold_at) == MAP_FAILED) {
            munmap(data, bytes);
            return NULL;
        }
    }
    return data;
}

/* Returns folded memory; NULL: this is to be memory like any other. */
static void *fold(size_t bytes, const void *caller)
{
    if (bytes < LEAST_BYTES)
        return NULL;
    const struct ph__process *process = ph__process();
    if (process == NULL || process->memory->fold_at == 0 || !is_programs(caller))
        return NULL;
    struct piece piece = {NULL, (bytes + PAGE_BYTES - 1) / PAGE_BYTES * PAGE_BYTES};
    pthread_mutex_lock(&lock);
    if (num_pieces < MOST_PIECES && piece.bytes >= bytes)
        piece.data = map(process, piece.bytes);
    if (piece.data != NULL)
        pieces[num_pieces++] = piece;
    pthread_mutex_unlock(&lock);
    return piece.data;
}

/* Takes out the piece that begins at data; its bytes are 0 where there is none. */
static struct piece take_out(const void *data)
{
    struct piece found = {NULL, 0};
    if (num_pieces == 0 || (uintptr_t)data % PAGE_BYTES != 0)
        return found;
    pthread_mutex_lock(&lock);
    for (size_t i = 0; i < num_pieces && found.data == NULL; i++)
        if (pieces[i].data == data) {
            found = pieces[i];
            pieces[i] = pieces[--num_pieces];
        }
    pthread_mutex_unlock(&lock);
    return found;
}

__attribute__((visibility("default"))) void *malloc(size_t bytes)
{
    void *data = fold(bytes, __builtin_return_address(0));
    return data != NULL ? data : __libc_malloc(bytes);
}

__attribute__((visibility("default"))) void *calloc(size_t count, size_t bytes)
{
    size_t product;
    void *data = NULL;
    if (!__builtin_mul_overflow(count, bytes, &product))
        data = fold(product, __builtin_return_address(0));
    return data != NULL ? data : __libc_calloc(count, bytes);
}

__attribute__((visibility("default"))) void free(void *data)
{
    const struct piece piece = take_out(data);
    if (piece.data != NULL)
        munmap(piece.data, piece.bytes);
    else
        __libc_free(data);
}

__attribute__((visibility("default"))) void *realloc(void *data, size_t bytes)
{
    const struct piece piece = take_out(data);
    if (piece.data == NULL) {
        void *new = data == NULL ? fold(bytes, __builtin_return_address(0)) : NULL;
        return new != NULL ? new : __libc_realloc(data, bytes);
    }
    void *new = fold(bytes, __builtin_return_address(0));
    if (new == NULL && (new = __libc_malloc(bytes)) != NULL)
        memcpy(new, piece.data, bytes < piece.bytes ? bytes : piece.bytes);
    munmap(piece.data, piece.bytes);
    return new;
}
