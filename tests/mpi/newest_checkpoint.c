/* Checks the newest checkpoint of a training's folder, and prints its step; 0 where there is none yet:
 *
 *     newest_checkpoint DIR
 *
 * Ends with the exit code of what is wrong with it: a file's seal, a missing tensor, a number that is not
 * finite. */
#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>

#include "store/checkpoint_folder.h"
#include "train/folder/checkpoints.h"

static ph_status check_tensor(const struct ph__folder *folder, struct ph_tensor tensor)
{
    const size_t count = ph_shape_elements(&tensor.shape);
    ph_real *numbers = malloc((count + 1) * sizeof *numbers);
    if (numbers == NULL)
        return ph_fail(PH_ERROR_MEMORY, "no memory for %s", tensor.name);
    tensor.data = numbers;
    ph_status status = ph__folder_load(folder, 1, &tensor);
    for (size_t i = 0; status == PH_OK && i < count; i++)
        if (!isfinite((double)numbers[i]))
            status = ph_fail(PH_ERROR_CHECKPOINT, "%s: number %zu is not finite", tensor.name, i);
    free(numbers);
    return status;
}

static ph_status check_folder(const char *path)
{
    struct ph__folder *folder;
    PH_TRY(ph__folder_open(path, &folder));
    ph_status status = ph__folder_check_seals(folder, 0, 1);
    for (size_t i = 0; status == PH_OK && i < ph__folder_num_tensors(folder); i++)
        status = check_tensor(folder, ph__folder_tensor(folder, i));
    ph__folder_close(folder);
    return status;
}

static ph_status check(const char *directory)
{
    struct ph__checkpoint_list list;
    char path[PH_CHECKPOINT_PATH_BYTES];
    PH_TRY(ph__checkpoints_list(directory, &list));
    const uint64_t newest = list.count > 0 ? list.steps[0] : 0;
    ph__checkpoint_list_fini(&list);
    if (newest > 0)
        PH_TRY(check_folder(ph__checkpoint_path(directory, newest, path)));
    printf("%" PRIu64 "\n", newest);
    return PH_OK;
}

int main(int argc, char **argv)
{
    if (argc != 2)
        return 2;
    const ph_status status = check(argv[1]);
    if (status != PH_OK)
        fprintf(stderr, "newest_checkpoint: %s\n", ph_error_text());
    return ph_status_exit_code(status);
}
