/* Names, keeps and removes the files of parts: see job_checkpoint.h. */
#include "hub/keep/job_checkpoint.h"

#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/file/directory.h"
#include "base/file/file.h"
#include "base/memory/memory.h"
#include "base/text/number.h"
#include "base/text/utf8.h"
#include "hub/wire/part_list.h"

#define MARK "~at-"

/* ---- names ---- */

/* Returns the bytes of a kept file's path before its ending. */
static int stem_bytes(const char *path)
{
    return (int)(strlen(path) - strlen(PH_CHECKPOINT_ENDING));
}

ph_status ph__job_part_path(const char *path, uint64_t iteration, char **part_out)
{
    const int count = iteration == PH_NO_ITERATION
                          ? asprintf(part_out, "%s", path)
                          : asprintf(part_out, "%.*s" MARK "%" PRIu64 PH_CHECKPOINT_ENDING, stem_bytes(path),
                                path, iteration);
    return count >= 0 ? PH_OK : ph__out_of_memory("the path of a checkpoint");
}

bool ph__job_part_is_open(const char *name)
{
    return strstr(name, MARK) != NULL && ph__path_ends_in(name, PH_CHECKPOINT_ENDING);
}

bool ph__job_part_is_of(const char *path, const char *name, uint64_t *iteration_out)
{
    char digits[24], usual[24];
    int64_t number;
    const size_t stem = (size_t)stem_bytes(ph__last_word(path, '/'));
    if (!ph__job_part_is_open(name) || strncmp(name, ph__last_word(path, '/'), stem) != 0 ||
        strncmp(name + stem, MARK, strlen(MARK)) != 0)
        return false;
    const char *begin = name + stem + strlen(MARK);
    const size_t count = strlen(begin) - strlen(PH_CHECKPOINT_ENDING);
    snprintf(digits, sizeof digits, "%.*s", (int)count, begin);
    if (count >= sizeof digits || !ph__integer_parse(digits, &number) || number < 0)
        return false;
    snprintf(usual, sizeof usual, "%" PRId64, number);
    *iteration_out = (uint64_t)number;
    return strcmp(digits, usual) == 0 && *iteration_out <= PH_HUB_MAX_ITERATION;
}

/* ---- files ---- */

static ph_status cannot(const char *what, const char *path)
{
    return ph_fail(PH_ERROR_DISK, "%s: cannot %s: %s", path, what, strerror(errno));
}

static ph_status replace_kept(const char *path, uint64_t iteration, bool *is_kept_out)
{
    char *part;
    *is_kept_out = false;
    PH_TRY(ph__job_part_path(path, iteration, &part));
    *is_kept_out = rename(part, path) == 0 || errno == ENOENT;
    const ph_status status = *is_kept_out ? ph__file_sync_name(path) : cannot("rename", part);
    free(part);
    return status;
}

struct removal {
    const char *path, *folder;
    uint64_t settled_end;
    bool has_removed;
};

static ph_status remove_settled(void *argument, const char *name)
{
    struct removal *removal = argument;
    struct ph__arena arena = {0};
    uint64_t iteration;
    if (!ph__job_part_is_of(removal->path, name, &iteration) || iteration >= removal->settled_end)
        return PH_OK;
    const char *path = ph__path_join(&arena, removal->folder, name);
    ph_status status = path != NULL ? PH_OK : PH_ERROR_MEMORY;
    if (status == PH_OK && unlink(path) != 0 && errno != ENOENT)
        status = cannot("remove", path);
    removal->has_removed = true;
    ph__arena_fini(&arena);
    return status;
}

static ph_status remove_all_settled(const char *path, uint64_t settled_end)
{
    struct removal removal = {.path = path, .settled_end = settled_end};
    char *folder = strndup(path, (size_t)(ph__last_word(path, '/') - path));
    if (folder == NULL)
        return ph__out_of_memory("the folder of a checkpoint");
    removal.folder = folder;
    ph_status status = ph__directory_visit(folder[0] != '\0' ? folder : ".", remove_settled, &removal);
    if (status == PH_OK && removal.has_removed)
        status = ph__file_sync_name(path);
    free(folder);
    return status;
}

ph_status ph__job_parts_keep(const char *path, uint64_t iteration, uint64_t settled_end, bool *is_kept_out)
{
    *is_kept_out = true;
    if (iteration != PH_NO_ITERATION)
        PH_TRY(replace_kept(path, iteration, is_kept_out));
    return settled_end > 0 ? remove_all_settled(path, settled_end) : PH_OK;
}
