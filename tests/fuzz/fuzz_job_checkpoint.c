/* The metadata of a hub's checkpoints: an input is three lines, the service, the keys and the progress; their
 * checksum is made to fit. What is read of them keeps the limits of phloem/hub.h. */
#include <stdlib.h>
#include <string.h>

#include "hub/keep/job_checkpoint.h"
#include "store/safetensors.h"
#include "support/fuzz_support.h"

static bool write_file(const char *path, char *text)
{
    char *rest = text, sum[17];
    const char *service = strsep(&rest, "\n");
    const char *keys = rest != NULL ? strsep(&rest, "\n") : "";
    const char *progress = rest != NULL ? strsep(&rest, "\n") : "";
    ph__job_checkpoint_sum(service, keys, progress, sum);
    const char *const metadata[] = {"format", PH_CHECKPOINT_FORMAT, "service", service, "keys", keys,
        "progress", progress, "sum", sum, NULL};
    return ph__safetensors_write(path, 0, NULL, metadata) == PH_OK;
}

static void check(const struct ph__job_checkpoint_head *head)
{
    char *path;
    fuzz_require(ph__service_check(&head->settings.service) == PH_OK);
    fuzz_require(head->settings.service.optimizers == head->settings.optimizers);
    fuzz_require(head->num_keys <= PH_LAYOUT_MAX_KEYS);
    fuzz_require(ph__job_checkpoint_path("folder", head->settings.name, &path) == PH_OK);
    fuzz_require(strchr(path + strlen("folder/"), '/') == NULL);
    free(path);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct ph__job_checkpoint_head head;
    char path[64], *text = calloc(size + 1, 1);
    fuzz_require(text != NULL);
    memcpy(text, data, size);
    fuzz_folder_path("checkpoint", path);
    if (write_file(path, text) && ph__job_checkpoint_read_head(path, &head) == PH_OK)
        check(&head);
    free(text);
    return 0;
}
