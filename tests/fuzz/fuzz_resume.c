/* Checkpoints to resume from. An input is a list of edits of a real one, so that it fits whatever a
 * checkpoint holds by then; its seal is made to fit. What is read is a trainer that goes on reading its data
 * without harm. */
#include <stdlib.h>
#include <string.h>

#include "support/fuzz_run.h"
#include "train/folder/resume_file.h"
#include "train/loop/loop.h"

#define PREFIX_BYTES 8

struct file {
    char *bytes;
    size_t size;
};

/* The edited checkpoint, whose first bytes tell the length of its header as it is by then. */
static const char *edited_file(const struct file *checkpoint, const uint8_t *data, size_t size)
{
    uint64_t header_bytes;
    size_t header_end, edited_size;
    memcpy(&header_bytes, checkpoint->bytes, PREFIX_BYTES);
    uint8_t *bytes = fuzz_edit(checkpoint->bytes, checkpoint->size, data, size, PREFIX_BYTES + header_bytes,
        &header_end, &edited_size);
    if (edited_size >= PREFIX_BYTES && header_end >= PREFIX_BYTES) {
        header_bytes = header_end - PREFIX_BYTES;
        memcpy(bytes, &header_bytes, PREFIX_BYTES);
    }
    const char *path = fuzz_sealed_tensors(0, bytes, edited_size);
    free(bytes);
    return path;
}

static void go_on(const struct ph__trainer *trainer)
{
    const struct ph__train_job *job = trainer->job;
    const struct ph_batches_options options = {.size = sizeof options,
        .batch_size = (size_t)job->train->batch_size,
        .reading.is_shuffled = job->reading.is_shuffled,
        .reading.shuffle_bytes = job->reading.shuffle_bytes,
        .seed = job->run.seed,
        .epoch = trainer->epoch,
        .start = &trainer->position};
    struct ph_batches *batches = NULL;
    const struct ph_batch *batch = NULL;
    if (ph_batches_open(job->encoder, job->paths.train, &options, &batches) == PH_OK)
        while (ph_batches_next(batches, &batch) == PH_OK && batch != NULL)
            fuzz_require(batch->num_samples > 0);
    ph_batches_close(batches);
}

static struct ph__trainer *make_trainer(struct file *checkpoint)
{
    static struct fuzz_run run;
    static struct ph__train_job job;
    struct ph__trainer *trainer = NULL;
    char path[64];
    fuzz_run_init(&run, "lr");
    job = fuzz_run_job(&run);
    fuzz_require(ph__trainer_create(&job, &trainer) == PH_OK);
    fuzz_folder_path("checkpoint", path);
    fuzz_require(ph__resume_file_write(path, trainer) == PH_OK);
    checkpoint->bytes = fuzz_read(path, &checkpoint->size);
    fuzz_require(ph__resume_file_read(path, trainer) == PH_OK);
    return trainer;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    static struct ph__trainer *trainer;
    static struct file checkpoint;
    if (trainer == NULL)
        trainer = make_trainer(&checkpoint);
    const char *path = edited_file(&checkpoint, data, size);
    uint64_t best_step = 0;
    if (size % 8 == 0)
        ph__resume_file_best_step(path, &best_step);
    if (ph__resume_file_read(path, trainer) == PH_OK)
        go_on(trainer);
    return 0;
}
