/* Hubs and workers as processes, for tests that kill them: started, listened to, and ended with the test.
 * What workers say is told in training_worker.c. One thread. */
#ifndef PH_TEST_HUB_PROCESSES_H
#define PH_TEST_HUB_PROCESSES_H

#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

enum { MAX_HUB_WORKERS = 4, MAX_WORKER_OPTIONS = 8, MAX_HUB_SETTINGS = 8 };

struct hub_process {
    pid_t id;   /* 0: not running */
    int output; /* -1: none, or at its end */
    char said[1024];
    size_t num_said; /* bytes of a line that has not ended */
    uint64_t num_joined, num_lost, num_steps, step, first_iteration;
    uint32_t num_contributors; /* of the last step */
    char last_lost[256];       /* why */
    char sum[32];              /* of "done"; "": not yet */
    char metrics[64];          /* where a hub serves them; "": nowhere */
};

struct hub_job {
    char address[32]; /* "": one of the loopback is chosen, and locked against other tests until the job's end
                       */
    const char *addresses;                  /* of all hubs, that workers are told; NULL: the one */
    const char *folder;                     /* of checkpoints; NULL: none */
    const char *settings[MAX_HUB_SETTINGS]; /* NULL-terminated; where there are some, the hub is the program
                                               `phloem hub` */
    const char *log; /* file for what all of them say on standard error; NULL: the test's own */
    const char *options[MAX_WORKER_OPTIONS]; /* of each worker, NULL-terminated */
    uint32_t num_workers;
    uint64_t num_iterations;
    uint16_t port; /* that is locked; 0: none */
    int port_lock; /* descriptor */
    struct hub_process hub, workers[MAX_HUB_WORKERS];
};

void hub_job_begin(struct hub_job *job);
void hub_job_end(struct hub_job *job); /* kills what still runs, and unlocks the port */
/* For cmocka: kills what a test that failed has left. */
int hub_processes_teardown(void **unused);

/* Return when the hub listens, or fail the test; a worker is only started. extra: one more option, or NULL.
 */
void hub_job_start_hub(struct hub_job *job);
void hub_job_start_worker(struct hub_job *job, uint32_t rank, const char *extra);

/* SIGKILL, and waits for the end. What it has said is taken in, and its counts stay. */
void hub_process_kill(struct hub_process *process);
/* Waits for its end; the exit code, or 128 + the signal's number; fails the test after the limit. */
int hub_process_wait(struct hub_process *process, int limit_ms);

/* Of the limit, since then: 0 when it is over. */
int hub_ms_left(uint64_t begin_ns, int limit_ms);

/* Takes in what has been said until the condition holds; false: not within the limit. */
typedef bool (*hub_job_condition)(const struct hub_job *job, void *context);
bool hub_job_wait(struct hub_job *job, hub_job_condition holds, void *context, int limit_ms);
void hub_job_listen(struct hub_job *job, int duration_ms);
void hub_job_catch_up(struct hub_job *job); /* takes in all that has been said by now */

uint64_t hub_job_least_step(const struct hub_job *job);
bool hub_job_is_done(const struct hub_job *job, void *unused); /* all workers */

#endif
