/* phloem serve REPOSITORY --example MODEL: a request that works. */
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/file/directory.h"
#include "base/file/file.h"
#include "base/format/json.h"
#include "base/text/number.h"
#include "cli/serve/serve_verbs.h"
#include "serve/session.h"

/* ---- the model ---- */

static ph_status note_version(void *context, const char *name)
{
    int64_t *newest = context, version;
    if (ph__integer_parse(name, &version) && version > *newest)
        *newest = version;
    return PH_OK;
}

/* Finds the run folder of a model: its highest version, or the repository itself. */
static ph_status find_folder(
    struct ph__arena *arena, const char *repository, const char *model, const char **folder_out)
{
    int64_t newest = 0;
    const char *weights = ph__path_join(arena, repository, "model.safetensors");
    const char *folder = ph__path_join(arena, repository, model);
    if (weights == NULL || folder == NULL)
        return PH_ERROR_MEMORY;
    if (ph__file_exists(weights)) {
        *folder_out = repository;
        return PH_OK;
    }
    PH_TRY(ph__directory_visit(folder, note_version, &newest));
    if (newest == 0)
        return ph_fail(
            PH_ERROR_USAGE, "%s: the repository has no version of a model '%s'", repository, model);
    *folder_out = ph__arena_printf(arena, "%s/%" PRId64, folder, newest);
    return *folder_out != NULL ? PH_OK : PH_ERROR_MEMORY;
}

/* ---- the request ---- */

/* Prints a value that the column knows: a number, or the first word of its vocabulary. */
static void print_value(const struct ph__column *feature)
{
    const struct ph__vocabulary *words = &feature->vocabulary;
    if (feature->kind == PH_FIELD_DENSE)
        printf("1.0");
    else if (words->num_words > 0)
        ph__json_print_text(stdout, words->text + words->starts[0], words->starts[1] - words->starts[0]);
    else
        printf("\"1\"");
}

static const char *type_of(const struct ph__column *feature)
{
    return feature->kind == PH_FIELD_DENSE ? "FP32" : "BYTES";
}

static void print_name(const char *name)
{
    ph__json_print_text(stdout, name, strlen(name));
}

static void print_curl(const struct ph__inputs *inputs, const char *model, const char *address)
{
    printf("curl -s http://%s/v2/models/%s/infer -d @- <<'END'\n{\"inputs\":[\n", address, model);
    for (size_t i = 0; i < inputs->index.count; i++) {
        const struct ph__column *feature = inputs->features[inputs->first[i]];
        printf(" {\"name\":");
        print_name(ph__name_index_text(&inputs->index, i));
        printf(",\"shape\":[1],\"datatype\":\"%s\",\"data\":[", type_of(feature));
        print_value(feature);
        printf("]}%s\n", i + 1 < inputs->index.count ? "," : "");
    }
    printf("]}\nEND\n");
}

static void print_python(const struct ph__inputs *inputs, const char *model, const char *address)
{
    printf("\nimport numpy as np\nimport tritonclient.http as triton\n\nrow = [\n");
    for (size_t i = 0; i < inputs->index.count; i++) {
        const struct ph__column *feature = inputs->features[inputs->first[i]];
        printf("    (");
        print_name(ph__name_index_text(&inputs->index, i));
        printf(", \"%s\", ", type_of(feature));
        print_value(feature);
        printf("),\n");
    }
    printf("]\ninputs = []\nfor name, datatype, value in row:\n"
           "    tensor = triton.InferInput(name, [1], datatype)\n"
           "    dtype = np.object_ if datatype == \"BYTES\" else np.float32\n"
           "    tensor.set_data_from_numpy(np.array([value], dtype=dtype))\n"
           "    inputs.append(tensor)\n"
           "client = triton.InferenceServerClient(\"%s\")\n"
           "print(client.infer(\"%s\", inputs).as_numpy(\"probability\"))\n",
        address, model);
}

ph_status cli_serve_example(const char *repository, const char *model, const char *http_address)
{
    struct ph__arena arena = {0};
    struct ph__inputs inputs = {0};
    struct ph_encoder *encoder = NULL;
    const char *folder = NULL;
    ph_status status = find_folder(&arena, repository, model, &folder);
    const char *path = status == PH_OK ? ph__path_join(&arena, folder, "encoder.json") : NULL;
    if (status == PH_OK)
        status = path != NULL ? ph_encoder_load(path, &encoder) : PH_ERROR_MEMORY;
    if (status == PH_OK)
        status = ph__inputs_init(encoder, &inputs);
    if (status == PH_OK) {
        print_curl(&inputs, model, http_address);
        print_python(&inputs, model, http_address);
    }
    ph__inputs_fini(&inputs);
    ph_encoder_destroy(encoder);
    ph__arena_fini(&arena);
    return status;
}
