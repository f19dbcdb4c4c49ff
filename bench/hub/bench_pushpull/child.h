/* Child processes of a benchmark, forked and driven over pipes, so that nothing of ours runs while a peer is
 * measured. They die with the program that has started them. */
#ifndef PH_BENCH_CHILD_H
#define PH_BENCH_CHILD_H

#include <stdbool.h>
#include <stddef.h>
#include <sys/types.h>

struct child { /* zero-initialised: none */
    pid_t process;
    int to, from;
};

/* Runs in the process, with its ends of the pipes; its return ends the process. */
typedef void child_work(void *context, int from, int to);

/* Starts a child. name: shown by profilers and ps, up to 15 bytes. Ends the program when no process can be
 * made. The child has only the calling thread, and of the descriptors only the first three and those of its
 * pipes. */
struct child child_start(const char *name, child_work *work, void *context);
void child_end(struct child *child); /* closes its pipes and waits for its end; nothing for zeros */

/* Stop and resume all threads of the child. child_pause returns when they have stopped. */
void child_pause(const struct child *child);
void child_go_on(const struct child *child);

/* Send and receive whole records. End the program if the child has ended. */
void child_tell(const struct child *child, const void *record, size_t size);
void child_hear(const struct child *child, void *record_out, size_t size);

/* Receive and send records, on the child's side. */
bool child_has_order(int from, void *record_out, size_t size); /* false: no more orders will come */
void child_answer(int to, const void *record, size_t size);

/* Returns zeros that processes forked from now on share with the caller; never freed. */
void *shared_zeros(size_t size);

#endif
