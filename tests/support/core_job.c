#include "support/core_job.h"

#include <stdlib.h>
#include <sys/epoll.h>
#include <sys/eventfd.h>
#include <unistd.h>

#include "base/thread/cpu.h"
#include "support/test_support.h"

/* ---- the job ---- */

static void worker_failed(void *context, uint32_t worker)
{
    struct core_job *job = context;
    (void)worker;
    atomic_fetch_add(&job->num_failures, 1);
}

static void make_memory(struct core_job *job, uint32_t num_workers, bool has_payloads)
{
    const struct ph__job_memory_options options = {
        .layout = job->layout, .num_workers = num_workers, .depth = 1, .num_versions = has_payloads ? 2 : 1};
    const struct ph__worker_region_sizes sizes = {.num_cores = 1,
        .ring_capacity = CORE_JOB_RING_CAPACITY,
        .gradient_bytes = job->layout->sizes.gradient_bytes,
        .depth = 1};
    assert_ok(ph__job_memory_create(&options, &job->memory));
    for (uint32_t worker = 0; worker < num_workers; worker++)
        assert_ok(ph__job_memory_add_worker(job->memory, worker, !has_payloads, &sizes));
}

void core_job_init(
    struct core_job *job, size_t chunk_bytes, size_t num_elements, uint32_t num_workers, bool has_payloads)
{
    static const struct ph_hub_optimizer none = {.is_none = true};
    const struct ph__layout_key key = {.num_elements = num_elements, .dtype = PH_F32};
    const struct ph__shard_callbacks callbacks = {.context = job, .worker_failed = worker_failed};
    enum ph__isa isa;
    *job = (struct core_job){0};
    assert_ok(ph__cpu_isa(&isa));
    assert_ok(ph__layout_create(&key, 1, chunk_bytes, &job->layout));
    make_memory(job, num_workers, has_payloads);
    job->core_of_chunk = calloc(job->layout->sizes.num_chunks, sizeof *job->core_of_chunk);
    assert_non_null(job->core_of_chunk);
    job->job.kernels = ph__kernels_for(isa);
    job->job.memory = job->memory;
    assert_ok(
        ph__chunk_lists_init(&job->chunks_of_core, job->core_of_chunk, job->layout->sizes.num_chunks, 1));
    job->job.core_of_chunk = job->core_of_chunk;
    job->job.chunks_of_core = &job->chunks_of_core;
    job->job.service.num_workers = num_workers;
    job->job.service.depth = 1;
    job->job.service.optimizers = &none;
    job->job.service.num_optimizers = 1;
    job->job.optimizer_of_key = &job->optimizer_of_key;
    assert_ok(ph__shard_create(&job->job, 0, &callbacks, &job->shard));
}

void core_job_fini(struct core_job *job)
{
    ph__shard_destroy(job->shard);
    ph__job_memory_destroy(job->memory);
    ph__layout_destroy(job->layout);
    free(job->core_of_chunk);
    ph__chunk_lists_fini(&job->chunks_of_core);
}

struct change {
    struct ph__core *core;
    struct core_job *job;
    ph_status status;
};

static void add(void *context)
{
    struct change *change = context;
    change->status = ph__core_add_shard(change->core, change->job->shard);
}

static void end(void *context)
{
    const struct change *change = context;
    ph__core_remove_shard(change->core, change->job->shard);
}

void core_job_start(struct core_job *job, struct ph__core *core)
{
    struct change change = {.core = core, .job = job};
    ph__core_call(core, add, &change);
    assert_ok(change.status);
}

void core_job_stop(struct core_job *job, struct ph__core *core)
{
    struct change change = {.core = core, .job = job};
    ph__core_call(core, end, &change);
}

/* ---- tireless workers ---- */

struct tireless_link {
    struct ph__link link; /* first */
    const bool *is_resting;
    uint32_t num_chunks;
    uint32_t next;
    struct tireless_chunk {
        uint64_t iteration;
        bool is_pushed; /* without a reply yet */
    } * chunks;
};

static ph_status push(struct tireless_link *self, uint32_t chunk)
{
    void *memory;
    const struct ph__message message = {
        .kind = PH_HUB_PUSHPULL, .chunk = chunk, .iteration = ++self->chunks[chunk].iteration};
    self->chunks[chunk].is_pushed = true;
    PH_TRY(self->link.owner.place(self->link.owner.context, &message, 0, &memory));
    return self->link.owner.arrived(self->link.owner.context, &message);
}

static ph_status tireless_progress(struct ph__link *link, size_t max_messages, size_t *num_moved_out)
{
    struct tireless_link *self = (struct tireless_link *)link;
    size_t num_moved = 0;
    for (uint32_t i = 0; i < self->num_chunks && num_moved < max_messages && !*self->is_resting; i++) {
        const uint32_t chunk = self->next;
        self->next = (self->next + 1) % self->num_chunks;
        if (self->chunks[chunk].is_pushed)
            continue;
        PH_TRY(push(self, chunk));
        num_moved++;
    }
    *num_moved_out = num_moved;
    return PH_OK;
}

static ph_status tireless_send(
    struct ph__link *link, const struct ph__message *message, const void *payload, size_t payload_bytes)
{
    struct tireless_link *self = (struct tireless_link *)link;
    (void)payload;
    (void)payload_bytes;
    self->chunks[message->chunk].is_pushed = false;
    return PH_OK;
}

static bool tireless_sleep(struct ph__link *link)
{
    return *((struct tireless_link *)link)->is_resting;
}

static bool tireless_wake(struct ph__link *link)
{
    (void)link;
    return true;
}

static void tireless_destroy(struct ph__link *link)
{
    struct tireless_link *self = (struct tireless_link *)link;
    close(link->descriptor);
    free(self->chunks);
    free(self);
}

static const struct ph__link_transport tireless_transport = {
    .name = "tireless",
    .send = tireless_send,
    .progress = tireless_progress,
    .begin_sleep = tireless_sleep,
    .end_sleep = tireless_wake,
    .destroy = tireless_destroy,
    .events = EPOLLIN,
};

void core_job_attach_tireless(struct core_job *job, const bool *is_resting)
{
    const uint32_t num_chunks = (uint32_t)job->layout->sizes.num_chunks;
    for (uint32_t worker = 0; worker < job->job.service.num_workers; worker++) {
        struct tireless_link *link = calloc(1, sizeof *link);
        assert_non_null(link);
        link->link.transport = &tireless_transport;
        link->link.owner = ph__shard_link_owner(job->shard, worker);
        link->link.descriptor = eventfd(0, EFD_CLOEXEC);
        link->is_resting = is_resting;
        link->num_chunks = num_chunks;
        link->chunks = calloc(num_chunks, sizeof *link->chunks);
        assert_true(link->link.descriptor >= 0 && link->chunks != NULL);
        ph__shard_attach(job->shard, worker, &link->link, false);
    }
}
