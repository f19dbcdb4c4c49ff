/* A job on a hub of the test's own: workers whose gradients are decided by rank and iteration, and what the
 * job's checkpoints hold. What is pulled does not matter for what is pushed, so several iterations may be
 * under way. */
#ifndef PH_TEST_KEPT_JOB_H
#define PH_TEST_KEPT_JOB_H

#include "hub/keep/job_checkpoint.h"
#include "hub/worker_thread.h"
#include "support/hub_thread.h"

enum { TRIAL_NONCE = 4711, TRIAL_WORKERS = 2, TRIAL_KEYS = 3, TRIAL_NUMBERS = 4301 };

extern const size_t trial_key_elements[TRIAL_KEYS];
extern const size_t trial_first_number[TRIAL_KEYS]; /* of a key among all numbers */
extern const struct ph_hub_optimizer trial_momentum;

struct kept_job {
    struct hub_thread *hub;
    struct ph_hub_service service; /* named "job" */
    struct ph_hub_optimizer optimizer;
    enum ph_dtype dtype;
    enum ph_hub_transport transport;
    bool has_own_parameters;
    uint64_t stop_at; /* the iteration at which workers stop */
    bool is_saved;    /* rank 0 asks for a checkpoint then */
    uint64_t save_at; /* ... and after this iteration, too; 0: not */
    bool has_left;    /* they leave in good order, instead of dying */
    /* What rank 0 tells: */
    uint64_t first_iteration;
    float first[TRIAL_NUMBERS]; /* the parameters then */
    float *pulled; /* (stop_at + 1, TRIAL_NUMBERS) after each iteration but the first; NULL: only `last` is
                      kept */
    float last[TRIAL_NUMBERS];
};

struct kept_job kept_job_make(struct ph_hub_optimizer optimizer);
float kept_job_gradient(uint32_t rank, uint64_t iteration, size_t number);
float kept_job_learning_rate(const struct kept_job *trial, uint64_t iteration); /* that it was made with */

ph_status kept_job_train(struct test_worker *worker); /* its context is the trial */
ph_status kept_job_run(struct kept_job *trial);       /* all workers; the first error */
/* Up to this iteration, on a hub of its own; ends with a checkpoint where there is a folder. */
void kept_job_run_until(struct kept_job *trial, const char *folder, uint64_t iteration);

/* ---- folders and files ---- */

void kept_job_begin_hub(struct hub_thread *hub, const char *folder); /* NULL: no checkpoints */
const char *kept_job_path(const char *folder, const char *name);     /* until the next call */
const char *kept_job_file(const char *folder);                       /* of the service "job": the same */
uint64_t kept_job_iteration_of_file(const char *folder);
/* What a file has, read as a hub would. The caller destroys it. */
struct ph__snapshot *kept_job_read_file(const struct kept_job *trial, const char *path);

#endif
