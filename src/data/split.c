#include "data/split.h"

const char *const ph__split_names[PH_SPLIT_COUNT] = {"train", "valid", "test"};

const char *ph__split_path(const struct ph_data_settings *settings, size_t split)
{
    const char *const paths[PH_SPLIT_COUNT] = {settings->train, settings->valid, settings->test};
    return paths[split];
}
