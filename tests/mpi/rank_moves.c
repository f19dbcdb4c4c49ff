/* A checkpoint that some ranks have saved under one plan, taken up by others under another one: tables that
 * were cut by rows are cut by columns, and so on.
 *
 *     rank_moves save FOLDER RANKS_PER_HOST     makes data, and trains up to a checkpoint
 *     rank_moves load FOLDER RANKS_PER_HOST     takes it up, and holds what each rank has, and what they
 * save, against it
 *
 * Parameters, states and slots are compared byte by byte: slots of a number a weight, and of a number a row.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "comm/collective/comm.h"
#include "rank_job.h"
#include "rank_main.h"
#include "store/checkpoint_folder.h"
#include "store/tensor_list.h"
#include "train/folder/checkpoints.h"
#include "train/folder/resume_file.h"
#include "train/loop/loop.h"

#define OTHER_PLAN                                                                                \
    "tables:\n  \"*.C1\": {kind: column_wise}\n  \"*.C2\": {kind: table_wise}\n"                  \
    "  \"*.C3\": {kind: row_wise}\n  \"*.C4\": {kind: data_parallel}\n  \"*.C7\": {kind: grid}\n" \
    "default: {kind: row_wise}\n"

static const char *const table_optimizers[] = {"adam", "rowwise_adagrad"};
enum { NUM_RUNS = 2, STEPS = 7 };

struct run {
    char out[1024], checkpoint[PH_CHECKPOINT_PATH_BYTES], moved[1100];
    char table_optimizer[64];
};

static struct run run_of(const char *folder, size_t i)
{
    struct run run;
    snprintf(run.out, sizeof run.out, "%s/%s", folder, table_optimizers[i]);
    snprintf(run.moved, sizeof run.moved, "%s.moved", run.out);
    snprintf(
        run.table_optimizer, sizeof run.table_optimizer, "optimizer.embedding_kind=%s", table_optimizers[i]);
    ph__checkpoint_path(run.out, STEPS, run.checkpoint);
    return run;
}

static ph_status init_job(
    struct rank_job *job, struct ph_comm *comm, const char *folder, const struct run *run, const char *plan)
{
    const char *const sets[] = {
        "optimizer.kind=adam", run->table_optimizer, "model.batch_norm=true", "train.max_steps=7"};
    return rank_job_init(job, comm, folder, run->out, plan, sizeof sets / sizeof *sets, sets);
}

static ph_status share_plan(struct ph_comm *comm, const char *folder, const char *text, char path[1024])
{
    snprintf(path, 1024, "%s/%zu.yaml", folder, ph_comm_world_size(comm));
    return rank_job_share_plan(comm, path, text);
}

/* ---- saving ---- */

static ph_status save_run(struct ph_comm *comm, const char *folder, const char *plan, const struct run *run)
{
    struct ph_train_summary summary;
    struct rank_job job;
    ph_status status = init_job(&job, comm, folder, run, plan);
    if (status == PH_OK)
        status = ph__train(&job.job, &summary);
    rank_job_fini(&job);
    return status;
}

static ph_status save(struct ph_comm *comm, const char *folder)
{
    char plan[1024];
    if (ph_comm_rank(comm) == 0)
        PH_TRY(rank_job_make_data(folder));
    PH_TRY(share_plan(comm, folder, rank_job_mixed_plan, plan));
    for (size_t i = 0; i < NUM_RUNS; i++) {
        const struct run run = run_of(folder, i);
        PH_TRY(save_run(comm, folder, plan, &run));
    }
    return PH_OK;
}

/* ---- comparing ---- */

/* The whole tensor of that name, whose data the caller frees. */
static ph_status read_whole(const struct ph__folder *folder, const char *name, struct ph_tensor *tensor_out)
{
    const size_t index = ph__folder_find(folder, name);
    if (index == ph__folder_num_tensors(folder))
        return ph_fail(PH_ERROR_CHECKPOINT, "there is no %s", name);
    struct ph_tensor tensor = ph__folder_tensor(folder, index);
    tensor.data = malloc((ph_shape_elements(&tensor.shape) + 1) * sizeof(ph_real));
    if (tensor.data == NULL)
        return ph_fail(PH_ERROR_MEMORY, "no memory for %s", name);
    const ph_status status = ph__folder_load(folder, 1, &tensor);
    if (status == PH_OK)
        *tensor_out = tensor;
    else
        free(tensor.data);
    return status;
}

/* Of a matrix, or of a vector as a matrix of one column: the rows and columns that the rank has of it. */
static bool has_same_bytes(const struct ph_tensor *part, const struct ph_tensor *whole)
{
    const bool is_vector = part->shape.num_dims == 1;
    const size_t columns = is_vector ? 1 : part->shape.dims[1], first = is_vector ? 0 : part->first_column;
    const size_t whole_columns = is_vector ? 1 : whole->shape.dims[1];
    const ph_real *own = part->data, *all = whole->data;
    for (size_t i = 0; i < part->shape.dims[0]; i++)
        if (memcmp(own + i * columns, all + (part->first_row + i) * whole_columns + first,
                columns * sizeof *own) != 0)
            return false;
    return true;
}

static ph_status compare_parts(const struct ph__tensor_list *list, const struct ph__folder *folder)
{
    for (size_t i = 0; i < list->count; i++) {
        struct ph_tensor whole;
        PH_TRY(read_whole(folder, list->tensors[i].name, &whole));
        const bool is_same = has_same_bytes(&list->tensors[i], &whole);
        free(whole.data);
        if (!is_same)
            return ph_fail(PH_ERROR_BUG, "%s is not what was saved", list->tensors[i].name);
    }
    return PH_OK;
}

/* What this rank has in memory. */
static ph_status compare_memory(const struct ph__trainer *trainer, const char *checkpoint)
{
    struct ph__tensor_list list = {0};
    struct ph__folder *folder = NULL;
    ph_status status = ph__tensor_list_add_store(&list, trainer->store);
    if (status == PH_OK)
        status = ph__tensor_list_add_slots(&list, trainer->store);
    if (status == PH_OK)
        status = ph__tensor_list_add_state(&list, trainer->state);
    if (status == PH_OK)
        status = ph__folder_open(checkpoint, &folder);
    if (status == PH_OK)
        status = compare_parts(&list, folder);
    ph__folder_close(folder);
    ph__tensor_list_fini(&list);
    return status;
}

static ph_status compare_tensors(
    const struct ph__folder *saved, const struct ph__folder *moved, size_t *num_bytes_out)
{
    const size_t count = ph__folder_num_tensors(saved);
    size_t num_bytes = 0;
    if (count != ph__folder_num_tensors(moved))
        return ph_fail(
            PH_ERROR_BUG, "there were %zu tensors, and are %zu", count, ph__folder_num_tensors(moved));
    for (size_t i = 0; i < count; i++) {
        struct ph_tensor before, after;
        const char *name = ph__folder_tensor(saved, i).name;
        PH_TRY(read_whole(saved, name, &before));
        PH_TRY(read_whole(moved, name, &after));
        const bool is_same = ph_shape_elements(&before.shape) == ph_shape_elements(&after.shape) &&
                             before.dtype == after.dtype && has_same_bytes(&before, &after);
        num_bytes += ph_shape_elements(&before.shape) * sizeof(ph_real);
        free(before.data);
        free(after.data);
        if (!is_same)
            return ph_fail(PH_ERROR_BUG, "%s has changed on its way", name);
    }
    *num_bytes_out = num_bytes;
    return PH_OK;
}

/* What all ranks together have: by the files that they write. */
static ph_status compare_files(const struct run *run)
{
    struct ph__folder *saved = NULL, *moved = NULL;
    size_t num_bytes;
    ph_status status = ph__folder_open(run->checkpoint, &saved);
    if (status == PH_OK)
        status = ph__folder_open(run->moved, &moved);
    if (status == PH_OK)
        status = compare_tensors(saved, moved, &num_bytes);
    if (status == PH_OK)
        printf("%zu tensors, %zu bytes, are the same in %zu files and %zu\n", ph__folder_num_tensors(saved),
            num_bytes, ph__folder_num_files(saved), ph__folder_num_files(moved));
    ph__folder_close(saved);
    ph__folder_close(moved);
    return status;
}

/* ---- loading ---- */

static ph_status check_loaded(struct ph__trainer *trainer, const struct run *run)
{
    if (trainer->summary.steps != STEPS)
        return ph_fail(PH_ERROR_BUG, "nothing was taken up");
    PH_TRY(compare_memory(trainer, run->checkpoint));
    return ph__resume_file_write(run->moved, trainer);
}

static ph_status load_run(struct ph_comm *comm, const char *folder, const char *plan, const struct run *run)
{
    struct ph__trainer *trainer;
    struct rank_job job;
    ph_status status = init_job(&job, comm, folder, run, plan);
    job.job.options.is_resumed = true;
    if (status == PH_OK)
        status = ph__trainer_create(&job.job, &trainer);
    if (status == PH_OK) {
        status = check_loaded(trainer, run);
        ph__trainer_destroy(trainer);
    }
    rank_job_fini(&job);
    if (status == PH_OK && ph_comm_rank(comm) == 0)
        status = compare_files(run);
    return status;
}

static ph_status load(struct ph_comm *comm, const char *folder)
{
    char plan[1024];
    PH_TRY(share_plan(comm, folder, OTHER_PLAN, plan));
    for (size_t i = 0; i < NUM_RUNS; i++) {
        const struct run run = run_of(folder, i);
        PH_TRY(load_run(comm, folder, plan, &run));
    }
    return PH_OK;
}

static ph_status run(struct ph_comm *comm, int argc, char **argv)
{
    (void)argc;
    return strcmp(argv[1], "save") == 0 ? save(comm, argv[2]) : load(comm, argv[2]);
}

int main(int argc, char **argv)
{
    if (argc != 4)
        return 2;
    return rank_main("rank_moves", (size_t)atoi(argv[3]), run, argc, argv);
}
