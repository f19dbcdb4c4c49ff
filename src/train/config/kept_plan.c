#include "train/config/kept_plan.h"

#include "base/file/file.h"

const char *ph__kept_plan_path(struct ph__arena *arena, const char *folder)
{
    return ph__path_join(arena, folder, "plan.yaml");
}

ph_status ph__kept_plan_read(const char *folder, const struct ph__topology *topology,
    const struct ph__table_list *list, const enum ph__dense_mode *mode, struct ph__plan *plan_out,
    bool *is_there_out)
{
    struct ph__arena arena = {0};
    const char *path = ph__kept_plan_path(&arena, folder);
    *is_there_out = false;
    *plan_out = (struct ph__plan){0};
    ph_status status = path != NULL ? PH_OK : PH_ERROR_MEMORY;
    if (status == PH_OK && ph__file_exists(path)) {
        status = ph__table_list_read_plan(path, topology, list, mode, plan_out);
        *is_there_out = status == PH_OK;
    }
    ph__arena_fini(&arena);
    return status;
}

ph_status ph__kept_plan_write(const char *folder, const struct ph__plan *plan)
{
    struct ph__arena arena = {0};
    const char *path = ph__kept_plan_path(&arena, folder);
    const ph_status status = path != NULL ? ph__plan_save(plan, path) : PH_ERROR_MEMORY;
    ph__arena_fini(&arena);
    return status;
}
