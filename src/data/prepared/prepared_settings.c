/* Completes settings that name a prepared data set: chooses between its splits and the files given beside
 * them. */
#include <string.h>

#include "base/file/file.h"
#include "data/data_options.h"
#include "data/source/input_file.h"

struct splits {
    const char *train, *valid, *test; /* NULL: none */
};

static ph_status find_split(
    const char *folder, const char *name, struct ph__arena *arena, const char **path_out)
{
    const char *path = ph__path_join(arena, folder, name);
    if (path == NULL)
        return PH_ERROR_MEMORY;
    if (ph__input_is_prepared(path))
        *path_out = path;
    else if (ph__file_exists(path))
        return ph_fail(PH_ERROR_DATA,
            "%s: the preparation is not finished; continue it: phloem prepare CONFIG --out %s --resume", path,
            folder);
    return PH_OK;
}

static ph_status find_splits(const char *folder, struct ph__arena *arena, struct splits *splits)
{
    PH_TRY(find_split(folder, "train", arena, &splits->train));
    PH_TRY(find_split(folder, "valid", arena, &splits->valid));
    PH_TRY(find_split(folder, "test", arena, &splits->test));
    if (splits->train != NULL || splits->valid != NULL || splits->test != NULL)
        return PH_OK;
    return ph_fail(
        PH_ERROR_DATA, "%s: has no prepared data; make it: phloem prepare CONFIG --out %s", folder, folder);
}

/* Refuses a schema, given by fields or a format, other than the one that the data was prepared by. */
static ph_status check_schema(const struct ph_data_settings *settings, const char *path)
{
    bool has_schema = settings->fields.count > 0 || settings->format != PH_DATA_CSV;
    if (!has_schema || !ph__file_exists(path))
        return PH_OK;
    return ph__data_settings_compare(
        path, settings, "data.prepared was made with the former: prepare it again");
}

/* Reads the paths of the files that the data was made of. */
static ph_status read_sources(const char *path, struct ph__arena *arena, struct splits *sources)
{
    struct ph_data_settings kept;
    const struct ph__section section = {&ph__data_options, &kept};
    if (!ph__file_exists(path))
        return PH_OK;
    PH_TRY(ph__config_read(path, NULL, 0, &section, 1, arena));
    *sources = (struct splits){kept.paths.train, kept.paths.valid, kept.paths.test};
    return PH_OK;
}

/* Returns the split, unless the given file is not the one that the split was made of. */
static const char *choose(const char *given, const char *source, const char *split)
{
    const bool is_source = given != NULL && source != NULL && strcmp(given, source) == 0;
    return given == NULL || (is_source && split != NULL) ? split : given;
}

/* Refuses training data that the encoder has not learnt from. Splits of another folder pass: their encoder is
 * compared when they are opened. */
static ph_status check_train(const char *train, const struct splits *splits)
{
    if (train == splits->train || splits->train == NULL || ph__input_is_prepared(train))
        return PH_OK;
    return ph_fail(PH_ERROR_CONFIG,
        "data.train: '%s' is not what data.prepared was made from: remove it, or prepare it", train);
}

ph_status ph__data_settings_finish(struct ph_data_settings *settings, struct ph__arena *arena)
{
    struct splits splits = {0}, sources = {0};
    if (settings->prepared == NULL)
        return PH_OK;
    const char *path = ph__path_join(arena, settings->prepared, PH_PREPARED_SOURCE);
    if (path == NULL)
        return PH_ERROR_MEMORY;
    PH_TRY(find_splits(settings->prepared, arena, &splits));
    PH_TRY(check_schema(settings, path));
    PH_TRY(read_sources(path, arena, &sources));
    struct ph_data_settings chosen = *settings;
    chosen.paths.train = choose(settings->paths.train, sources.train, splits.train);
    chosen.paths.valid = choose(settings->paths.valid, sources.valid, splits.valid);
    chosen.paths.test = choose(settings->paths.test, sources.test, splits.test);
    PH_TRY(check_train(chosen.paths.train, &splits));
    PH_TRY(ph__data_settings_check_measured(&chosen));
    *settings = chosen;
    return PH_OK;
}
