/* Processes of our own that a benchmark forks and drives over pipes, so that nothing of ours runs while a
 * peer is measured. They die with the program that has started them. */
#ifndef PH_BENCH_CHILD_H
#define PH_BENCH_CHILD_H

#include <stdbool.h>
#include <stddef.h>
#include <sys/types.h>

struct child { /* zero-initialised: there is none */
    pid_t process;
    int to, from;
};

/* What the process does, with its ends of the pipes; its return ends the process. */
typedef void child_work(void *context, int from, int to);

/* name: what a profiler or ps calls it, up to 15 bytes. Ends the program where there can be no more
 * processes. All descriptors but the three first ones and those of its pipes are closed in the process, and
 * of the threads there is only the calling one. */
struct child child_start(const char *name, child_work *work, void *context);
void child_end(struct child *child); /* closes its pipes and waits for its end; all zeros: nothing */

/* All threads of the child rest until it goes on. Returns when they do. */
void child_pause(const struct child *child);
void child_go_on(const struct child *child);

/* Whole records. The program ends where the child has. */
void child_tell(const struct child *child, const void *record, size_t size);
void child_hear(const struct child *child, void *record_out, size_t size);

/* The child's side. */
bool child_has_order(int from, void *record_out, size_t size); /* false: there will be none any more */
void child_answer(int to, const void *record, size_t size);

/* Zeros that processes forked from now on share with the caller. Never given back. */
void *shared_zeros(size_t size);

#endif
