/* Checkpoints to resume from. An input is a list of edits of a real one, so that it fits whatever a checkpoint holds by
 * then; its seal is made to fit. What is read is a trainer that goes on reading its data without harm. */
#include <stdlib.h>
#include <string.h>

#include "support/fuzz_run.h"
#include "train/resume_file.h"

#define PREFIX_BYTES 8
#define EDIT_BYTES 4

struct file {
    uint8_t *bytes;
    size_t size;
};

/* Puts `count` bytes of `from` in the place of `erased` bytes at `at`, and tells the header's length so. */
static void edit(struct file *file, size_t at, size_t erased, const uint8_t *from, size_t count)
{
    uint64_t header_bytes;
    memcpy(&header_bytes, file->bytes, PREFIX_BYTES);
    if (at < PREFIX_BYTES + header_bytes) {
        header_bytes = header_bytes + count - erased;
        memcpy(file->bytes, &header_bytes, PREFIX_BYTES);
    }
    memmove(file->bytes + at + count, file->bytes + at + erased, file->size - at - erased);
    memcpy(file->bytes + at, from, count);
    file->size = file->size + count - erased;
}

/* Edits: where (2 bytes), how many bytes go, how many come, and these. */
static void apply(struct file *file, const uint8_t *data, size_t size)
{
    while (size >= EDIT_BYTES) {
        const size_t at = PREFIX_BYTES + (data[0] + (size_t)data[1] * 256) % (file->size - PREFIX_BYTES);
        const size_t left = file->size - at - 1, erased = data[2] < left ? data[2] : left;
        const size_t room = size - EDIT_BYTES, count = data[3] < room ? data[3] : room;
        edit(file, at, erased, data + EDIT_BYTES, count);
        data += EDIT_BYTES + count;
        size -= EDIT_BYTES + count;
    }
}

static void go_on(const struct ph__trainer *trainer)
{
    const struct ph_train_job *job = trainer->job;
    const struct ph_batches_options options = {.batch_size = (size_t)job->train->batch_size,
        .is_shuffled = job->is_shuffled,
        .shuffle_bytes = job->shuffle_bytes,
        .seed = job->seed,
        .epoch = trainer->epoch,
        .start = &trainer->position};
    struct ph_batches *batches = NULL;
    const struct ph_batch *batch = NULL;
    if (ph_batches_open(job->encoder, job->train_path, &options, &batches) == PH_OK)
        while (ph_batches_next(batches, &batch) == PH_OK && batch != NULL)
            fuzz_require(batch->num_samples > 0);
    ph_batches_close(batches);
}

static struct ph__trainer *make_trainer(struct file *checkpoint)
{
    static struct fuzz_run run;
    static struct ph_train_job job;
    struct ph__trainer *trainer = NULL;
    char path[64];
    fuzz_run_init(&run, "lr");
    job = fuzz_run_job(&run);
    fuzz_require(ph__trainer_create(&job, &trainer) == PH_OK);
    fuzz_folder_path("checkpoint", path);
    fuzz_require(ph__resume_file_write(path, trainer) == PH_OK);
    checkpoint->bytes = (uint8_t *)fuzz_read(path, &checkpoint->size);
    fuzz_require(ph__resume_file_read(path, trainer) == PH_OK);
    return trainer;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    static struct ph__trainer *trainer;
    static struct file checkpoint;
    if (trainer == NULL)
        trainer = make_trainer(&checkpoint);
    struct file file = {malloc(checkpoint.size + size + 1), checkpoint.size};
    fuzz_require(file.bytes != NULL);
    memcpy(file.bytes, checkpoint.bytes, checkpoint.size);
    apply(&file, data, size);
    const char *path = fuzz_sealed_tensors(0, file.bytes, file.size);
    uint64_t best_step = 0;
    if (size % 8 == 0)
        ph__resume_file_best_step(path, &best_step);
    if (ph__resume_file_read(path, trainer) == PH_OK)
        go_on(trainer);
    free(file.bytes);
    return 0;
}
