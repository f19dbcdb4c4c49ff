/* A shard and a worker that says anything: an input says what its job is, and then what it sends or scribbles
 * into its ring, between the pushes of two honest workers of its job and of two of another job in the same
 * thread. None of these may fail for it, and the other job's results are those of the serial loop
 * (support/shard_trial.h). */
#include <stdlib.h>
#include <string.h>

#include "support/fuzz_support.h"
#include "support/shard_walk.h"

enum { NUM_WORKERS = 3, RECORD_BYTES = 8, MAX_RECORDS = 200 };

struct scene {
    struct shard_trial *job, *other; /* job: with the liar */
    uint32_t liar;
    bool is_gone;
    uint32_t next_chunk;
};

/* ---- jobs ---- */

static struct shard_trial_options options_of(uint8_t byte)
{
    struct shard_trial_options options = {
        .job = shard_walk_job(ph__kernels_for(PH_ISA_REF), walk_optimizers, WALK_NUM_OPTIMIZERS, byte),
        .mode = (enum ph_hub_mode)(byte % 3),
        .order = (enum ph_hub_order)(byte / 3 % 2),
        .num_workers = NUM_WORKERS,
        .depth = 1 + byte / 6 % 2,
        .staleness = byte / 12 % 2,
        .num_shards = 1,
        .is_lawless = true};
    if (options.mode == PH_HUB_SYNCHRONOUS && byte / 12 % 2 != 0)
        options.job.clip_norm = 1;
    return options;
}

static struct scene make_scene(const uint8_t *head)
{
    struct scene scene = {.liar = head[1] % NUM_WORKERS};
    struct shard_trial_options options = options_of(head[0]);
    for (uint32_t worker = 0; worker < NUM_WORKERS; worker++)
        options.transports[worker] = (head[1] / NUM_WORKERS >> worker & 1) != 0 ? TRIAL_PAYLOADS : TRIAL_OWN;
    options.ring_capacity = 64;
    scene.job = shard_trial_create(&options);
    scene.job->links[0][scene.liar].is_live = false; /* nothing that it says is its trial's business */
    options = options_of((uint8_t)(head[0] / 24));
    options.num_workers = 2;
    options.is_lawless = false;
    options.transports[0] = options.transports[1] = TRIAL_OWN;
    scene.other = shard_trial_create(&options);
    return scene;
}

/* ---- the liar ---- */

/* Near to what would be right, or far from it. */
static struct ph__message message_of(const struct scene *scene, const uint8_t *record)
{
    const uint32_t num_chunks = (uint32_t)scene->job->layout->sizes.num_chunks;
    struct ph__message message = {
        .kind = record[1], .flags = record[6], .count = record[7], .chunk = record[2]};
    if (message.chunk < num_chunks)
        message.iteration = ph__request(&scene->job->memory, message.chunk, scene->liar)->pushed;
    message.iteration += (uint64_t)(int64_t)(int8_t)record[3];
    if ((record[0] & 8) != 0)
        memcpy(&message.chunk, record + 2, sizeof message.chunk);
    return message;
}

static void send_payload(const struct scene *scene, const struct ph__message *message, const uint8_t *record)
{
    static const char payload[512];
    struct ph__link *link = scene->job->links[0][scene->liar].hub_link;
    const bool has_place = message->chunk < scene->job->layout->sizes.num_chunks &&
                           message->kind != PH_HUB_PULL && message->kind != PH_HUB_LEARNING_RATE;
    const size_t wanted = has_place ? scene->job->layout->chunks[message->chunk].gradient_bytes : 0;
    payload_link_complete(link);
    payload_link_put(
        link, message, payload, (record[0] & 16) != 0 ? record[4] : wanted, (record[0] & 32) == 0);
    payload_link_allow(link, record[5] % 4);
}

/* Eight bytes of either ring, positions among them. */
static void scribble(const struct scene *scene, const uint8_t *record)
{
    uint64_t number = 0;
    const size_t ring_words = (size_t)(2 * (128 + 64 * 16)) / sizeof number;
    uint64_t *ring = scene->job->links[0][scene->liar].ring;
    memcpy(&number, record + 3, (record[0] & 16) != 0 ? 1 : 5);
    ring[(record[0] & 32) != 0 ? record[1] % 2 * 8u + record[2] % 2 * (ring_words / 2)
                               : (record[1] + 256u * record[2]) % ring_words] = number;
}

static void lie(const struct scene *scene, const uint8_t *record)
{
    const struct trial_link *link = &scene->job->links[0][scene->liar];
    const struct ph__message message = message_of(scene, record);
    size_t num_moved;
    if (link->worker_link == NULL) {
        send_payload(scene, &message, record);
    } else if ((record[0] & 7) == 7) {
        scribble(scene, record);
    } else {
        (void)!ph__link_send(link->worker_link, &message, NULL, 0);
        (void)!ph__link_progress(link->worker_link, record[5], &num_moved);
    }
}

/* ---- the others ---- */

static void push_honestly(struct scene *scene, struct shard_trial *trial, uint32_t worker)
{
    struct trial_request *request = shard_trial_request(trial, worker, scene->next_chunk);
    if (trial == scene->job) /* where nobody keeps account of replies */
        request->answered = ph__request(&trial->memory, scene->next_chunk, worker)->answered;
    if (shard_trial_may_push(trial, worker, scene->next_chunk))
        shard_trial_push(trial, worker, scene->next_chunk, worker == 0 ? PH_HUB_PUSH : PH_HUB_PUSHPULL);
}

static void let_all_leave(const struct scene *scene)
{
    for (uint32_t worker = 0; worker < NUM_WORKERS; worker++) {
        const struct trial_link *link = &scene->job->links[0][worker];
        if (worker != scene->liar && scene->job->options.transports[worker] == TRIAL_PAYLOADS)
            payload_link_allow(link->hub_link, SIZE_MAX);
    }
}

static void go_on(struct scene *scene, size_t max_bytes)
{
    for (uint32_t worker = 0; worker < NUM_WORKERS; worker++) {
        if (worker != scene->liar)
            push_honestly(scene, scene->job, worker);
        if (worker < 2)
            push_honestly(scene, scene->other, worker);
    }
    scene->next_chunk = (scene->next_chunk + 1) % (uint32_t)scene->job->layout->sizes.num_chunks;
    let_all_leave(scene);
    shard_trial_run(scene->job, 0, max_bytes);
    shard_trial_run(scene->other, 0, SIZE_MAX);
    for (uint32_t worker = 0; worker < NUM_WORKERS; worker++)
        fuzz_require(worker == scene->liar || scene->job->num_failures[worker] == 0);
    fuzz_require(scene->job->num_failures[scene->liar] <= 1);
    if (scene->job->num_failures[scene->liar] == 0 || scene->is_gone)
        return;
    ph__shard_remove_worker(scene->job->shards[0], scene->liar);
    scene->is_gone = true;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    if (size < 2)
        return 0;
    struct scene scene = make_scene(data);
    const size_t num_records = (size - 2) / RECORD_BYTES;
    for (size_t i = 0; i < num_records && i < MAX_RECORDS; i++) {
        const uint8_t *record = data + 2 + i * RECORD_BYTES;
        if (!scene.is_gone)
            lie(&scene, record);
        if ((record[0] & 64) == 0)
            go_on(&scene, (record[0] & 128) != 0 ? 64 : SIZE_MAX);
    }
    for (size_t i = 0; i < 30; i++)
        go_on(&scene, SIZE_MAX);
    shard_trial_settle(scene.other);
    fuzz_require(scene.other->num_failures[0] + scene.other->num_failures[1] == 0);
    fuzz_require(scene.other->num_replies > 0);
    shard_trial_destroy(scene.job);
    shard_trial_destroy(scene.other);
    return 0;
}
