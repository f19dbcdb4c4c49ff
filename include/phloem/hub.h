/* The parameter hub: workers push gradients, the hub sums them and runs the optimizer, the workers get the
 * new parameters back (Luo et al., Parameter Hub, arXiv:1805.07891).
 *
 * A hub is a process, `phloem hub`, or part of any process (hub_server.h). A *service* is one job on it: a
 * name, a nonce that tells two jobs of one name apart, a number of workers and the treatment of their
 * gradients. Each worker connects with a rank, all initialise the same keys, and then, for each key and
 * iteration, each worker
 *
 *     writes its gradient to ph_hub_gradient(client, key),
 *     ph_hub_pushpull_start(client, key),       other keys, or computation, here
 *     ph_hub_wait(client, key),
 *     reads the new parameters at ph_hub_parameters(client, key).
 *
 * On one host this memory is shared with the hub, which reads and writes it in place; between hosts it
 * travels over TCP.
 *
 * Errors: PH_ERROR_PEER when the hub, another worker of the job or the network failed, or a wait timed out;
 * PH_ERROR_USAGE for mistakes of the caller; PH_ERROR_CONFIG for an invalid address, or where only one side
 * has a secret; PH_ERROR_MEMORY beyond a quota; PH_ERROR_CHECKPOINT for a checkpoint that is damaged or of
 * other keys. After PH_ERROR_PEER a client can only be destroyed.
 *
 * Deaths: a job survives the death of a worker or of the hub when its workers connect and initialise again.
 * It then continues from its last checkpoint, where the hub has a folder for them, otherwise from the
 * beginning. A synchronous job's checkpoint is of one iteration, and the job ends with the same bits as an
 * undisturbed one. So a worker that survives is a loop:
 *
 *     do {
 *         client = NULL;
 *         num_tries++;
 *         status = rank 0's ph_hub_create_service(...), ph_hub_connect(...)
 *             and ph_hub_init(..., &iteration): the first error of them;
 *         for (; status == PH_OK && iteration < end; iteration++) {
 *             status = an iteration;
 *             num_tries = 0;
 *         }
 *         if (status == PH_OK) {
 *             the job is done: ph_hub_leave(client), and one of the workers ph_hub_destroy_service(...);
 *         }
 *         ph_hub_client_destroy(client);
 *     } while (status == PH_ERROR_PEER && num_tries < most, having printed ph_error_text() and paused,
 *              longer each time);
 *
 * The loop needs the pause and an end, for PH_ERROR_PEER also reports lasting causes: a name that is not
 * registered, another secret, a rank that is already connected, a job that goes on without this worker. Rank
 * 0 alone creates the service; until then, also after a hub without a folder was restarted, the others get
 * PH_ERROR_PEER. So a worker that is restarted after the end of the job finds no service and gives up,
 * instead of waiting for the others in a new one. Rank 0 would create one and wait: do not restart it when it
 * has finished.
 *
 * The process that connects is the worker: on the hub's host its end is noticed at once, even if a child that
 * it forked still holds its sockets. On another host such a child hides the end until a wait times out.
 *
 * Threads: a client belongs to one thread at a time; several clients may live in one process. Nothing here
 * needs MPI. */
#ifndef PHLOEM_HUB_H
#define PHLOEM_HUB_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "phloem/kernel.h"
#include "phloem/status.h"
#include "phloem/tensor.h"

#ifdef __cplusplus
extern "C" {
#endif

/* Version that a program was compiled with; ph_hub_api_version() returns that of the library that runs. Equal
 * numbers fit together. */
#define PH_HUB_API_VERSION 2
int ph_hub_api_version(void);

/* ---- what becomes of gradients ---- */

enum ph_hub_mode {
    PH_HUB_SYNCHRONOUS,  /* an iteration is one update by the sum of all workers' gradients */
    PH_HUB_ASYNCHRONOUS, /* each worker's gradient is an update of its own, on arrival */
    /* Asynchronous, but a push or pull ends only when it is at most `staleness` iterations of its key ahead
     * of the slowest worker: so no worker's updates are more than `staleness` + `depth` ahead. */
    PH_HUB_BOUNDED
};

enum ph_hub_order {
    PH_HUB_WORKER_ORDER, /* ((g0 + g1) + g2) ...: the same bits in every run */
    PH_HUB_ARRIVAL_ORDER /* each copy is added on arrival: less memory and no wait for rank 0, but other bits
                            in other runs */
};

enum ph_hub_on_death {
    PH_HUB_ABORT, /* the death of a worker is an error for all workers of its job */
    /* The job goes on with the workers that are left; sums hold their gradients alone, except that in arrival
     * order a dead worker's parts that were added before its death remain. After the hub's death the job
     * needs all workers. */
    PH_HUB_SHRINK
};

/* Waiting: AUTO spins shortly and then sleeps, the sooner the more threads share the cores. */
enum ph_hub_wait_policy {
    PH_HUB_WAIT_AUTO,
    PH_HUB_WAIT_SPIN,
    PH_HUB_WAIT_SPIN_THEN_SLEEP,
    PH_HUB_WAIT_SLEEP
};

/* Transports. AUTO: shared memory where the hub is on this host, otherwise TCP. */
enum ph_hub_transport { PH_HUB_AUTO, PH_HUB_SHARED_MEMORY, PH_HUB_TCP };

/* src/kernel/kernel.h and docs/HUB.md have the formulas. Without an optimizer, a pull gets the sum itself (or
 * the mean). */
struct ph_hub_optimizer {
    bool is_none;
    struct ph_update_rule rule; /* any kind but PH_ROWWISE_ADAGRAD; its numbers travel as floats */
    float learning_rate;
    float l2; /* lambda of lambda/2 |w|^2 */
};

#define PH_HUB_MAX_OPTIMIZERS 16
#define PH_HUB_MAX_WORKERS 1024
#define PH_HUB_MAX_JOBS 1024           /* on one hub */
#define PH_HUB_MAX_HUBS 64             /* hubs that share a job's keys */
#define PH_HUB_MAX_NAME 127            /* bytes of a service's name */
#define PH_HUB_MAX_PERIOD (1ull << 40) /* iterations from one checkpoint to the next */
/* Limit of a chunk. A core thread takes chunks one by one, so jobs on one hub wait for each other's
 * chunks. */
#define PH_HUB_MAX_CHUNK_BYTES (1u << 24)

struct ph_hub_service {
    size_t size;      /* sizeof the struct: phloem/options.h */
    const char *name; /* printable, 1 .. PH_HUB_MAX_NAME bytes; unique on its hub */
    uint64_t nonce;   /* chosen by the starter of the job, the same for all its workers */
    uint32_t num_workers;
    enum ph_hub_mode mode;
    uint32_t staleness; /* PH_HUB_BOUNDED: iterations */
    enum ph_hub_order order;
    enum ph_hub_on_death on_death;
    bool is_mean;    /* the sum is divided by the number of its gradients */
    float clip_norm; /* > 0: gradients of all keys together are scaled down to it; PH_HUB_SYNCHRONOUS */
    /* A multiple of 64 up to PH_HUB_MAX_CHUNK_BYTES; a job has up to 2^20 chunks. 0: the hub's choice; with
     * clip_norm, whose bits depend on it, 32 KiB unless the hub has a setting, and more where that gave too
     * many chunks. */
    uint32_t chunk_bytes;
    uint32_t depth;            /* 1 or 2 (0: 1): iterations of a key in progress at once; each costs memory */
    uint64_t checkpoint_every; /* iterations, as the disk keeps up; 0: only at the beginning and on demand */
    const struct ph_hub_optimizer *optimizers; /* borrowed for the call */
    size_t num_optimizers;                     /* 1 .. PH_HUB_MAX_OPTIMIZERS */
};

/* ---- a worker's side ---- */

struct ph_hub_client;

struct ph_hub_options {      /* all but size and address may be zero: the defaults */
    size_t size;             /* sizeof the struct: phloem/options.h */
    const char *address;     /* "host:port" of the hub; several hubs are separated by commas: see below */
    const char *secret_file; /* NULL: none; needed unless the hub listens on loopback alone */
    enum ph_hub_transport transport;
    enum ph_hub_wait_policy wait;
    uint32_t timeout_ms;         /* limit of each wait, and of unsuccessful tests; 0: 60000 */
    uint32_t connect_timeout_ms; /* for a hub that is starting to listen; 0: timeout_ms */
    bool has_no_thread;      /* TCP progresses only in the caller's calls, without a thread of the client */
    bool has_own_parameters; /* shared memory: a writable copy of this worker's own, instead of the one that
                                all workers share */
    /* NULL, or set by a signal handler: SIGINT or SIGTERM. From then on no wait of a call (which may have one
     * for each hub) lasts for more than .4 s; an unsuccessful one is PH_ERROR_INTERRUPTED or
     * PH_ERROR_TERMINATED. Tests ignore it. Borrowed until the client is destroyed. */
    const volatile int *stop_signal;
};

/* Several hubs: the chunks of all keys are spread over the hubs of the list, about as many bytes to each, and
 * every worker has connections to all of them, over TCP: asking for PH_HUB_SHARED_MEMORY is PH_ERROR_USAGE.
 * Results have the same bits as with one hub. All calls name all hubs, in one order; the nonce, the secret
 * and the settings are the same everywhere, and a hub's error names its address. Chunks are of one size: the
 * service's, the hubs' own, or otherwise 32 KiB, and more where that gave too many. clip_norm is refused with
 * PH_ERROR_USAGE, for the norm is that of all keys. The end of one hub is PH_ERROR_PEER for all workers.
 * After an error of ph_hub_init a client can only be destroyed.
 *
 * Each hub keeps the checkpoint parts of its own chunks, in a folder of its own. ph_hub_checkpoint between
 * two iterations makes parts of one iteration, and so does checkpoint_every in synchronous jobs; parts of
 * other jobs rarely are. Whichever process is killed, and whenever: the job goes on from the newest iteration
 * of which all hubs have a part. A part is removed only when a newer one is on the disks of all, or when its
 * checkpoint can never become whole. The connected worker of the lowest rank relays between hubs what they
 * have to agree upon, when it starts a push or waits. When a hub has lost its part of a whole checkpoint,
 * with its disk, ph_hub_init is PH_ERROR_CHECKPOINT for all workers, naming two hubs and their parts, until
 * the service is destroyed. */

/* Creates the service. An existing one with the same name, nonce and settings is fine: every worker may call
 * this. A hub with a folder for checkpoints keeps the service from here on, until it is destroyed.
 * PH_ERROR_USAGE: other settings, or another nonce under this name. PH_ERROR_CHECKPOINT: the hub has a
 * checkpoint file of the service that it cannot use, or the part of another hub. */
PH_MUST_CHECK ph_status ph_hub_create_service(
    const struct ph_hub_options *options, const struct ph_hub_service *service);

/* Ends the service for all its workers and forgets it, checkpoint included. A synchronous service without
 * PH_HUB_SHRINK whose first worker has left ends only when the others have left, too, or one of them has
 * died: the caller has the result, and no worker joins any more. So one worker leaves and then calls this.
 * Asks every hub, and returns the first error. Nothing else ends a service but `phloem hub destroy`. */
PH_MUST_CHECK ph_status ph_hub_destroy_service(
    const struct ph_hub_options *options, const char *name, uint64_t nonce);

/* Connects as worker `rank` of the service. Waits for a hub that does not listen yet, for up to the timeout,
 * as all calls with options do. PH_ERROR_PEER also where there is no such service, or not yet; PH_ERROR_USAGE
 * where the service has another nonce. */
PH_MUST_CHECK ph_status ph_hub_connect(const struct ph_hub_options *options, const char *service,
    uint64_t nonce, uint32_t rank, struct ph_hub_client **client_out);

struct ph_hub_key {
    size_t num_elements;
    enum ph_dtype dtype; /* PH_F32, PH_F16, PH_BF16: format on the way; the hub computes in fp32 */
    uint32_t optimizer;  /* index into the service's optimizers */
    const void *initial; /* (num_elements) of dtype: rank 0's are the initial parameters; NULL: zeros */
};

/* Makes the keys, which are numbered from 0; all workers of the service call it with the same keys. Returns
 * when all have called it and the parameters can be read. `iteration_out` (or NULL) gets the iterations done
 * before: 0, or that of the checkpoint that the hub continues from, with its parameters. After an error other
 * than PH_ERROR_USAGE the client can only be destroyed. An error that ends the job for all its workers has
 * its own status here: PH_ERROR_CHECKPOINT for a checkpoint that is of other keys or cannot be used,
 * PH_ERROR_MEMORY and PH_ERROR_DISK for what the hub lacks; later it is PH_ERROR_PEER. */
PH_MUST_CHECK ph_status ph_hub_init(
    struct ph_hub_client *client, const struct ph_hub_key *keys, size_t num_keys, uint64_t *iteration_out);

/* Returns the memory that the next push of the key takes the gradient from: 64-byte aligned, the caller's
 * between a wait and the next start. With depth 2 it alternates, so ask before each push. NULL, with
 * ph_error_text(): before ph_hub_init, after ph_hub_leave, or there is no such key. */
void *ph_hub_gradient(struct ph_hub_client *client, size_t key);

/* Returns the parameters that the last finished pull of the key brought. They stay until the key is pushed
 * again (with depth 2: twice). The memory is shared by all workers of the host and read-only unless the
 * options say otherwise: workers that go on write over it when this one has left. NULL as for
 * ph_hub_gradient. */
const void *ph_hub_parameters(const struct ph_hub_client *client, size_t key);

/* Begin to push the key's gradient, to pull its parameters, or both, and return at once. At most `depth`
 * pushes of a key run at a time, and one pull, which is waited for before the key is pushed again (with depth
 * 2: twice); otherwise PH_ERROR_USAGE. */
PH_MUST_CHECK ph_status ph_hub_push_start(struct ph_hub_client *client, size_t key);
PH_MUST_CHECK ph_status ph_hub_pull_start(struct ph_hub_client *client, size_t key);
PH_MUST_CHECK ph_status ph_hub_pushpull_start(struct ph_hub_client *client, size_t key);

/* Waits for the key's oldest unfinished operation: for a push, until the hub has taken the gradient; for a
 * pull, until the parameters hold all pushes that this worker started before it. PH_OK if there is none. */
PH_MUST_CHECK ph_status ph_hub_wait(struct ph_hub_client *client, size_t key);
PH_MUST_CHECK ph_status ph_hub_wait_all(struct ph_hub_client *client); /* all operations of all keys */

/* Tells if ph_hub_wait would return at once, and advances transfers. PH_ERROR_PEER a tenth of a second after
 * the hub has told of a death; and when the same operation stays unfinished, and nothing arrives from the
 * hub, for the timeout. */
PH_MUST_CHECK ph_status ph_hub_test(struct ph_hub_client *client, size_t key, bool *is_done_out);

/* Sets the learning rate, from this worker's next pushes on. Only rank 0 may call it, and no worker when a
 * job goes on without rank 0. Call it between two iterations: a checkpoint has the rates that an iteration
 * was made with. */
PH_MUST_CHECK ph_status ph_hub_set_learning_rate(
    struct ph_hub_client *client, uint32_t optimizer, float learning_rate);

/* Asks for a checkpoint, and returns when it is on the disk. In a synchronous job it is of the newest
 * iteration that any part of the job has reached, once all parts have; so call it between two iterations, and
 * let the others finish theirs. Where a key is never pushed, there is only the checkpoint of the beginning.
 * PH_ERROR_USAGE when the hub has no folder for checkpoints; PH_ERROR_DISK or PH_ERROR_MEMORY when it could
 * not be written: then the former one is still there, and the job goes on. With several hubs each has written
 * its part; PH_ERROR_DISK also where a hub already has 64 parts that were not agreed upon. */
PH_MUST_CHECK ph_status ph_hub_checkpoint(struct ph_hub_client *client);

struct ph_hub_client_info {
    const char *transport; /* "shared memory" or "tcp"; static */
    const char *why;       /* one sentence; and unused addresses of the hub; borrowed until destroy */
    uint32_t chunk_bytes, num_chunks, num_cores;
    uint32_t num_workers;      /* workers of the service, dead ones included */
    uint32_t num_contributors; /* workers in the last finished pull's sums: the fewest of its chunks */
};
void ph_hub_client_describe(const struct ph_hub_client *client, struct ph_hub_client_info *info_out);

/* Leaves the job in good order, which is not a death: a synchronous job ends when its first worker leaves,
 * and others get PH_ERROR_PEER if they push again; with PH_HUB_SHRINK it goes on without this worker. Destroy
 * the client afterwards. */
PH_MUST_CHECK ph_status ph_hub_leave(struct ph_hub_client *client);
void ph_hub_client_destroy(struct ph_hub_client *client); /* without leave the hub takes it for a death */

#ifdef __cplusplus
}
#endif
#endif
