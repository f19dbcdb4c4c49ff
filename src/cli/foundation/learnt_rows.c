#include "cli/foundation/learnt_rows.h"

#include <inttypes.h>

#include "base/file/file.h"
#include "base/thread/stop.h"
#include "cli/stop_signal.h"
#include "data/source/input_file.h"
#include "serve/model_folder.h"

struct search {
    const char *folder;
    const char *const *keys; /* (num_keys) */
    size_t num_keys;
    struct ph__key_map *learnt;
    struct ph__arena arena;
};

bool cli_is_csv(const char *path)
{
    return ph__path_ends_in(path, ".csv") || ph__path_ends_in(path, ".csv.gz") ||
           ph__path_ends_in(path, ".csv.zst");
}

static ph_status add_file(struct search *search, const char *path)
{
    struct ph__keyed_lines lines;
    bool has_line = true;
    ph_status status = ph__keyed_lines_open(&lines, path, cli_is_csv(path), search->keys, search->num_keys);
    while (status == PH_OK && has_line) {
        status = ph__is_stopped(cli_stop_signal()) ? PH_ERROR_INTERRUPTED
                                                   : ph__keyed_lines_next(&lines, &has_line);
        if (status == PH_OK && has_line)
            status = ph__key_map_add(search->learnt, lines.key, 0);
    }
    ph__keyed_lines_close(&lines);
    return status;
}

static ph_status add_files(struct search *search, const char *path)
{
    const char **paths;
    size_t num_paths;
    PH_TRY(ph__input_list(&search->arena, path, &paths, &num_paths));
    for (size_t i = 0; i < num_paths; i++)
        PH_TRY(add_file(search, paths[i]));
    return PH_OK;
}

/* Reads the rows that the folder's config names as training data. */
static ph_status add_config(struct search *search)
{
    struct ph__model_config config;
    ph_status status = ph__model_config_read(&config, search->folder);
    const struct ph_data_settings *data = &config.data;
    const bool is_text = data->prepared == NULL && data->paths.train != NULL && data->has_header &&
                         (data->format == PH_DATA_CSV || data->format == PH_DATA_TSV) &&
                         !ph__file_is_pipe(data->paths.train);
    if (status == PH_OK && !is_text)
        status = ph_fail(PH_ERROR_USAGE,
            "%s: its training data are not a csv or tsv file with a header, so which rows it has learnt from "
            "is unknown: name them by --learnt FILE, or give --unchecked",
            search->folder);
    if (status == PH_OK)
        status = add_files(search, data->paths.train);
    ph__model_config_fini(&config);
    return status;
}

static ph_status find(struct search *search, const struct cli_texts *files)
{
    for (size_t i = 0; i < files->count; i++)
        PH_TRY(add_files(search, files->items[i]));
    return files->count > 0 ? PH_OK : add_config(search);
}

ph_status cli_learnt_find(const struct cli_learnt_rows *rows, const char *folder, const char *const *keys,
    size_t num_keys, struct ph__key_map *learnt)
{
    struct search search = {folder, keys, num_keys, learnt, {NULL}};
    const ph_status status = rows->is_unchecked ? PH_OK : find(&search, &rows->files);
    ph__arena_fini(&search.arena);
    return status;
}

ph_status cli_learnt_check(
    const struct ph__key_map *learnt, const struct ph__keyed_lines *lines, const char *folder)
{
    if (ph__key_map_find(learnt, lines->key) == PH_NO_NUMBER)
        return PH_OK;
    return ph_fail(PH_ERROR_DATA,
        "%s:%" PRIu64 ": %s has learnt from this row, so that its score is not a prediction: let an older "
        "snapshot score the row, or give --unchecked",
        ph__reader_path(lines->reader), ph__reader_line_number(lines->reader), folder);
}
