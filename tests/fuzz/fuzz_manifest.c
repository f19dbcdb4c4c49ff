/* Manifests of prepared data, with fitting seals: what is read is written and read as the same. */
#include <stdlib.h>
#include <string.h>

#include "data/prepared/prepared_manifest.h"
#include "support/fuzz_support.h"

/* Written, malloc'ed. */
static char *text_of(const struct ph__manifest *manifest)
{
    char path[64];
    size_t size;
    fuzz_folder_path("manifest.json", path);
    fuzz_require(ph__manifest_write(manifest, path) == PH_OK);
    return fuzz_read(path, &size);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct ph__manifest manifest, again;
    if (ph__manifest_read(fuzz_sealed_json(0, data, size), &manifest) != PH_OK)
        return 0;
    for (size_t i = 0; i < manifest.num_parts; i++)
        fuzz_require(strchr(manifest.parts[i].name, '/') == NULL && strlen(manifest.parts[i].checksum) <= 16);
    char *text = text_of(&manifest);
    fuzz_require(ph__manifest_read(fuzz_file(1, text, strlen(text)), &again) == PH_OK);
    char *same = text_of(&again);
    fuzz_require(strcmp(text, same) == 0);
    free(same);
    free(text);
    ph__manifest_fini(&again);
    ph__manifest_fini(&manifest);
    return 0;
}
