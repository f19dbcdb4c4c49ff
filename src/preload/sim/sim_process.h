/* A process that `phloem sim run` simulates: writes records of what it does (sim/run_memory.h), and moves the
 * data of its messages through the shared memory. Knows nothing of MPI's types. One thread at a time. */
#ifndef PH_PRELOAD_SIM_PROCESS_H
#define PH_PRELOAD_SIM_PROCESS_H

#include <stddef.h>

#include "sim/run_memory.h"

struct ph__process {
    struct ph__run_memory *memory; /* NULL: not joined */
    struct ph__run_rank *own;
    uint32_t rank;
};

/* Returns the process, which joins the simulation at the first call; NULL: there is none. */
struct ph__process *ph__process(void);

/* Ends all processes, with a line and an exit code, through the simulator. */
_Noreturn void ph__process_fail(int exit_code, const char *format, ...) __attribute__((format(printf, 2, 3)));

/* Begins and ends a call of MPI: time between two calls is computation, and time in a call is not, but for
 * what begins and ends as a sum. */
void ph__process_enter(void);
void ph__process_leave(void);
void ph__process_begin_sum(void);
void ph__process_end_sum(void);
/* Passes simulated time; returns false for a thread that has not called MPI. */
bool ph__process_sleep(double ns);

/* Writes a record; ask also waits for its answer. */
void ph__process_post(struct ph__run_record record);
void ph__process_ask(struct ph__run_record record);

/* ---- requests ---- */

/* Bytes in runs: byte i is at data + i / run_bytes * stride + i % run_bytes. */
struct ph__runs {
    char *data;
    size_t bytes, run_bytes, stride;
};

struct ph__request {
    bool is_used, is_send, is_synchronous;
    bool is_persistent, is_active;
    bool is_nobody; /* to or from MPI_PROC_NULL: done at once */
    int32_t peer, tag;
    uint32_t context;
    struct ph__runs runs;
    const void *communicator; /* the caller's */
    int32_t next;             /* in the free list */
};

/* Adds a request, which the caller has filled; returns its number. */
int32_t ph__request_add(const struct ph__request *request);
struct ph__request *ph__request_at(int32_t number);
void ph__request_remove(int32_t number);
/* Sends or receives. A send's data are copied at once. */
void ph__request_start(int32_t number);
/* Sends without a request, where nobody would wait for an eager message; returns false where it must wait. */
bool ph__request_send_eagerly(const struct ph__request *request);
/* Takes the result of a wait if the request is done, with the data; frees the request unless it is
 * persistent. */
bool ph__request_take(int32_t number, struct ph__run_result *result_out);
/* Waits for all `count` requests, and takes them; gives the result of the last. */
struct ph__run_result ph__request_finish_all(const int32_t *numbers, size_t count);
/* Adds a request to those that are waited for, unless it is done at once. */
void ph__request_watch(int32_t number);

#endif
