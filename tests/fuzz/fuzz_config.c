/* Configs of a training job: a config that is read and written means the same when it is read and written
 * again. */
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

#include "phloem/config.h"
#include "support/fuzz_support.h"

/* False when the config is refused. */
static bool rewrite(const char *from, const char *to)
{
    struct ph_config *config = NULL;
    if (ph_config_read(from, NULL, 0, &config) != PH_OK)
        return false;
    fuzz_require(ph_config_write(config, to) == PH_OK);
    ph_config_destroy(config);
    return true;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    char first[64], second[64];
    fuzz_folder_path("first.yaml", first);
    fuzz_folder_path("second.yaml", second);
    if (!rewrite(fuzz_file(0, data, size), first))
        return 0;
    fuzz_require(rewrite(first, second));
    char *texts[2];
    size_t sizes[2];
    texts[0] = fuzz_read(first, &sizes[0]);
    texts[1] = fuzz_read(second, &sizes[1]);
    fuzz_require(sizes[0] == sizes[1] && memcmp(texts[0], texts[1], sizes[0]) == 0);
    free(texts[0]);
    free(texts[1]);
    return 0;
}
