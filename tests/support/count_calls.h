/* Interposes functions of the C library in the test program that includes this file (one source file only),
 * beside those of count_allocations.h: functions that copy memory, map and register it, lock, and move bytes
 * between processes or wait for them. Counts calls of all threads while armed, both those of our code, which
 * is linked into the program, and of libraries. Does not see calls inside the C library, nor copies that a
 * compiler has inlined, which are of few bytes or of a known size.
 *
 * Copies of fewer than PAYLOAD_BYTES are bookkeeping and not counted. For calls that move bytes, the bytes
 * are counted, too.
 *
 * Under a sanitizer nothing is interposed, and allocations_are_counted() returns false. */
#ifndef PH_TEST_COUNT_CALLS_H
#define PH_TEST_COUNT_CALLS_H

#include <dlfcn.h>
#include <fcntl.h>
#include <poll.h>
#include <pthread.h>
#include <semaphore.h>
#include <stdarg.h>
#include <stdint.h>
#include <stdio.h>
#include <sys/epoll.h>
#include <sys/mman.h>
#include <sys/sendfile.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "support/count_allocations.h"

#define PAYLOAD_BYTES ((size_t)512)

#define COUNTED_COPIES(X) X(memcpy) X(memmove) X(memset)
#define COUNTED_REGISTRATIONS(X) \
    X(free)                      \
    X(mmap)                      \
    X(munmap)                    \
    X(mprotect)                  \
    X(madvise)                   \
    X(mlock)                     \
    X(memfd_create)              \
    X(ftruncate)                 \
    X(fallocate)
#define COUNTED_LOCKS(X)      \
    X(pthread_mutex_lock)     \
    X(pthread_mutex_trylock)  \
    X(pthread_rwlock_rdlock)  \
    X(pthread_rwlock_wrlock)  \
    X(pthread_cond_signal)    \
    X(pthread_cond_broadcast) \
    X(pthread_cond_wait)      \
    X(pthread_cond_timedwait) \
    X(sem_wait)               \
    X(sem_post)
#define COUNTED_TRANSFERS(X)                                                                    \
    X(send)                                                                                     \
    X(recv)                                                                                     \
    X(sendmsg)                                                                                  \
    X(recvmsg)                                                                                  \
    X(recvmsg_for_descriptors) /* recvmsg, with room for ancillary data: control connections */ \
    X(sendfile)                                                                                 \
    X(read)                                                                                     \
    X(write)                                                                                    \
    X(poll)                                                                                     \
    X(epoll_wait)
#define COUNTED_CALLS(X) COUNTED_COPIES(X) COUNTED_REGISTRATIONS(X) COUNTED_LOCKS(X) COUNTED_TRANSFERS(X)

#define CALL_NUMBER(name) CALL_##name,
enum counted_call { COUNTED_CALLS(CALL_NUMBER) NUM_COUNTED_CALLS };
#undef CALL_NUMBER

#define CALL_NAME(name) #name,
static const char *const counted_call_names[] = {COUNTED_CALLS(CALL_NAME)};
#undef CALL_NAME

static struct {
    atomic_bool is_armed;
    atomic_ullong calls[NUM_COUNTED_CALLS];
    atomic_ullong bytes[NUM_COUNTED_CALLS]; /* copied, or moved */
} counted;

static inline unsigned long long num_calls(enum counted_call call)
{
    return atomic_load(&counted.calls[call]);
}

static inline unsigned long long num_call_bytes(enum counted_call call)
{
    return atomic_load(&counted.bytes[call]);
}

/* Starts counting from zero, allocations included; count_calls(false) stops. */
static inline void count_calls(bool is_on)
{
    for (size_t i = 0; is_on && i < NUM_COUNTED_CALLS; i++) {
        atomic_store(&counted.calls[i], 0);
        atomic_store(&counted.bytes[i], 0);
    }
    for (size_t i = 0; is_on && i < 2; i++)
        atomic_store(&allocations_by[i], 0);
    atomic_store(&counted.is_armed, is_on);
    count_allocations(is_on);
}

static inline void print_calls(const char *title)
{
    printf("%s: %u allocations of ours, %u of libraries\n", title, num_allocations(ALLOCATOR_OURS),
        num_allocations(ALLOCATOR_LIBRARY));
    for (enum counted_call call = 0; call < NUM_COUNTED_CALLS; call++) {
        if (num_calls(call) > 0)
            printf("    %s: %llu, %llu bytes\n", counted_call_names[call], num_calls(call),
                num_call_bytes(call));
    }
}

#if !PH_IS_SANITIZED

static inline void count_call(enum counted_call call, long long bytes)
{
    if (!atomic_load_explicit(&counted.is_armed, memory_order_relaxed))
        return;
    atomic_fetch_add(&counted.calls[call], 1);
    if (bytes > 0)
        atomic_fetch_add(&counted.bytes[call], (unsigned long long)bytes);
}

/* ---- copies ---- */

/* The C library's own functions, which also check for room. The room is a variable: with a constant,
 * compilers turn these calls into calls of the interposed functions again. */
extern void *library_memcpy(void *to, const void *from, size_t size, size_t room) __asm__("__memcpy_chk");
extern void *library_memmove(void *to, const void *from, size_t size, size_t room) __asm__("__memmove_chk");
extern void *library_memset(void *to, int byte, size_t size, size_t room) __asm__("__memset_chk");
static volatile size_t room_for_all = SIZE_MAX;

static inline void count_copy(enum counted_call call, size_t size)
{
    if (size >= PAYLOAD_BYTES)
        count_call(call, (long long)size);
}

void *memcpy(void *to, const void *from, size_t size)
{
    count_copy(CALL_memcpy, size);
    return library_memcpy(to, from, size, room_for_all);
}

void *memmove(void *to, const void *from, size_t size)
{
    count_copy(CALL_memmove, size);
    return library_memmove(to, from, size, room_for_all);
}

void *memset(void *to, int byte, size_t size)
{
    count_copy(CALL_memset, size);
    return library_memset(to, byte, size, room_for_all);
}

/* ---- memory ---- */

extern void __libc_free(void *pointer);

void free(void *pointer)
{
    if (pointer != NULL)
        count_call(CALL_free, 0);
    __libc_free(pointer);
}

void *mmap(void *address, size_t size, int protection, int flags, int descriptor, off_t offset)
{
    count_call(CALL_mmap, 0);
    return (void *)syscall(SYS_mmap, address, size, protection, flags, descriptor, offset);
}

int munmap(void *address, size_t size)
{
    count_call(CALL_munmap, 0);
    return (int)syscall(SYS_munmap, address, size);
}

int mprotect(void *address, size_t size, int protection)
{
    count_call(CALL_mprotect, 0);
    return (int)syscall(SYS_mprotect, address, size, protection);
}

int madvise(void *address, size_t size, int advice)
{
    count_call(CALL_madvise, 0);
    return (int)syscall(SYS_madvise, address, size, advice);
}

int mlock(const void *address, size_t size)
{
    count_call(CALL_mlock, 0);
    return (int)syscall(SYS_mlock, address, size);
}

int memfd_create(const char *name, unsigned flags)
{
    count_call(CALL_memfd_create, 0);
    return (int)syscall(SYS_memfd_create, name, flags);
}

int ftruncate(int descriptor, off_t size)
{
    count_call(CALL_ftruncate, 0);
    return (int)syscall(SYS_ftruncate, descriptor, size);
}

int fallocate(int descriptor, int mode, off_t offset, off_t size)
{
    count_call(CALL_fallocate, 0);
    return (int)syscall(SYS_fallocate, descriptor, mode, offset, size);
}

/* ---- locks ---- */

/* Defines `name`(parameters), which counts itself and calls the C library's. */
#define COUNTED_LOCK(name, parameters, arguments)       \
    int name parameters                                 \
    {                                                   \
        static int(*_Atomic library) parameters;        \
        if (library == NULL) {                          \
            int(*found) parameters;                     \
            *(void **)&found = dlsym(RTLD_NEXT, #name); \
            library = found;                            \
        }                                               \
        count_call(CALL_##name, 0);                     \
        return library arguments;                       \
    }
COUNTED_LOCK(pthread_mutex_lock, (pthread_mutex_t * mutex), (mutex))
COUNTED_LOCK(pthread_mutex_trylock, (pthread_mutex_t * mutex), (mutex))
COUNTED_LOCK(pthread_rwlock_rdlock, (pthread_rwlock_t * lock), (lock))
COUNTED_LOCK(pthread_rwlock_wrlock, (pthread_rwlock_t * lock), (lock))
COUNTED_LOCK(pthread_cond_signal, (pthread_cond_t * condition), (condition))
COUNTED_LOCK(pthread_cond_broadcast, (pthread_cond_t * condition), (condition))
COUNTED_LOCK(pthread_cond_wait, (pthread_cond_t * condition, pthread_mutex_t *mutex), (condition, mutex))
COUNTED_LOCK(pthread_cond_timedwait,
    (pthread_cond_t * condition, pthread_mutex_t *mutex, const struct timespec *until),
    (condition, mutex, until))
COUNTED_LOCK(sem_wait, (sem_t * semaphore), (semaphore))
COUNTED_LOCK(sem_post, (sem_t * semaphore), (semaphore))
#undef COUNTED_LOCK

/* ---- transfers ---- */

static inline ssize_t count_transfer(enum counted_call call, long moved)
{
    count_call(call, moved);
    return moved;
}

ssize_t send(int descriptor, const void *bytes, size_t size, int flags)
{
    return count_transfer(CALL_send, syscall(SYS_sendto, descriptor, bytes, size, flags, NULL, 0));
}

ssize_t recv(int descriptor, void *bytes, size_t size, int flags)
{
    return count_transfer(CALL_recv, syscall(SYS_recvfrom, descriptor, bytes, size, flags, NULL, NULL));
}

ssize_t sendmsg(int descriptor, const struct msghdr *header, int flags)
{
    return count_transfer(CALL_sendmsg, syscall(SYS_sendmsg, descriptor, header, flags));
}

ssize_t recvmsg(int descriptor, struct msghdr *header, int flags)
{
    const bool is_for_descriptors = header->msg_controllen > 0;
    return count_transfer(is_for_descriptors ? CALL_recvmsg_for_descriptors : CALL_recvmsg,
        syscall(SYS_recvmsg, descriptor, header, flags));
}

ssize_t sendfile(int to, int from, off_t *offset, size_t size)
{
    return count_transfer(CALL_sendfile, syscall(SYS_sendfile, to, from, offset, size));
}

ssize_t read(int descriptor, void *bytes, size_t size)
{
    return count_transfer(CALL_read, syscall(SYS_read, descriptor, bytes, size));
}

ssize_t write(int descriptor, const void *bytes, size_t size)
{
    return count_transfer(CALL_write, syscall(SYS_write, descriptor, bytes, size));
}

int poll(struct pollfd *polled, nfds_t count, int timeout_ms)
{
    struct timespec timeout = {.tv_sec = timeout_ms / 1000, .tv_nsec = timeout_ms % 1000 * 1000000L};
    count_call(CALL_poll, 0);
    return (int)syscall(SYS_ppoll, polled, count, timeout_ms >= 0 ? &timeout : NULL, NULL, 0);
}

int epoll_wait(int epoll, struct epoll_event *events, int max_events, int timeout_ms)
{
    count_call(CALL_epoll_wait, 0);
    return (int)syscall(SYS_epoll_pwait, epoll, events, max_events, timeout_ms, NULL, 0);
}

#endif
#endif
