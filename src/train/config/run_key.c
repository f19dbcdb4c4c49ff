#include "train/config/run_key.h"

#include <inttypes.h>
#include <string.h>
#include <sys/stat.h>

#include "base/file/file.h"
#include "base/sum/digest.h"
#include "data/source/input_file.h"

ph_status ph__program_digest(char hex_out[65])
{
    return ph__digest_file("/proc/self/exe", hex_out);
}

static ph_status key_of_text(const char *text, char key_out[PH_RUN_KEY_BYTES])
{
    struct ph__digest *digest = NULL;
    char hex[65];
    PH_TRY(ph__digest_create(&digest));
    ph_status status = ph__digest_update(digest, text, strlen(text));
    if (status == PH_OK)
        status = ph__digest_finish(digest, hex);
    ph__digest_destroy(digest);
    if (status == PH_OK) {
        memcpy(key_out, hex, PH_RUN_KEY_BYTES - 1);
        key_out[PH_RUN_KEY_BYTES - 1] = '\0';
    }
    return status;
}

/* ---- data ---- */

/* Appends "size seconds.nanoseconds\n" to the text where the file exists. */
static ph_status describe_file(struct ph__arena *arena, const char *path, const char **text)
{
    struct stat file;
    if (stat(path, &file) != 0)
        return PH_OK;
    *text = ph__arena_printf(arena, "%s%" PRIu64 " %" PRId64 ".%09ld\n", *text, (uint64_t)file.st_size,
        (int64_t)file.st_mtim.tv_sec, file.st_mtim.tv_nsec);
    return *text != NULL ? PH_OK : PH_ERROR_MEMORY;
}

static ph_status describe_files(struct ph__arena *arena, const char *path, const char **text)
{
    const char **paths;
    size_t num_paths;
    PH_TRY(ph__input_list_all(arena, path, &paths, &num_paths));
    for (size_t i = 0; i < num_paths; i++)
        PH_TRY(describe_file(arena, paths[i], text));
    return PH_OK;
}

/* Describes the files that are read beside those of the path. */
static ph_status describe_beside(
    struct ph__arena *arena, const struct ph_data_settings *data, const char *path, const char **text)
{
    const struct ph__input_beside beside = ph__input_beside(data->format, &data->graph);
    for (size_t i = 0; i < PH_INPUT_MAX_FILES - 1; i++) {
        const char *file;
        if (beside.names[i] == NULL || beside.names[i][0] == '\0')
            continue;
        PH_TRY(ph__input_beside_path(arena, path, beside.names[i], &file));
        PH_TRY(describe_file(arena, file, text));
    }
    return PH_OK;
}

ph_status ph__data_key(const struct ph_data_settings *data, const char *path, char key_out[PH_RUN_KEY_BYTES])
{
    struct ph__arena arena = {0};
    const char *text = "";
    if (path != NULL && ph__file_is_pipe(path))
        return ph_fail(PH_ERROR_CONFIG,
            "%s can be read only once, but several trainings need it: give a file", ph__pipe_name(path));
    ph_status status = path != NULL ? describe_files(&arena, path, &text) : PH_OK;
    if (status == PH_OK && path != NULL)
        status = describe_beside(&arena, data, path, &text);
    if (status == PH_OK)
        status = key_of_text(text, key_out);
    ph__arena_fini(&arena);
    return status;
}

/* ---- runs ---- */

static ph_status key_in(struct ph__arena *arena, const struct ph_config *config, const char *program,
    char key_out[PH_RUN_KEY_BYTES])
{
    const char *const paths[] = {config->data.paths.train, config->data.paths.valid, config->data.paths.test};
    char keys[3][PH_RUN_KEY_BYTES];
    const char *outcome;
    for (size_t i = 0; i < 3; i++)
        PH_TRY(ph__data_key(&config->data, paths[i], keys[i]));
    PH_TRY(ph__job_config_outcome(config, arena, &outcome));
    const char *text = ph__arena_printf(arena, "%s\ntrain %s\nvalid %s %d\ntest %s %d\n%s", program, keys[0],
        keys[1], paths[1] != NULL, keys[2], paths[2] != NULL, outcome);
    return text != NULL ? key_of_text(text, key_out) : PH_ERROR_MEMORY;
}

ph_status ph__run_key(const struct ph_config *config, const char *program, char key_out[PH_RUN_KEY_BYTES])
{
    struct ph__arena arena = {0};
    ph_status status = key_in(&arena, config, program, key_out);
    ph__arena_fini(&arena);
    return status;
}
