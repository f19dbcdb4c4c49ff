/* Control groups, version 1 and 2, from /proc/self/cgroup, /proc/self/mountinfo and the mounted hierarchies.
 *
 * A line of /proc/self/cgroup gives the group's path inside its hierarchy. mountinfo says which part of
 * the hierarchy is mounted where: in a container, often only the container's own group, as if it were the
 * root. */
#include "base/memory/memory.h"

#include <inttypes.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

/* A mounted hierarchy: `folder` is the process's own group in it, `mount` the topmost visible group. */
struct hierarchy {
    char mount[PATH_MAX];
    char folder[PATH_MAX];
};

static bool has_word(const char *list, const char *word)
{
    size_t length = strlen(word);
    for (const char *at = strstr(list, word); at != NULL; at = strstr(at + 1, word)) {
        bool starts = at == list || at[-1] == ',';
        bool ends = at[length] == ',' || at[length] == '\0';
        if (starts && ends)
            return true;
    }
    return false;
}

/* Finds the group's path in the hierarchy of a v1 `controller`, or in the v2 hierarchy when `controller` is
 * "". */
static bool find_group(const char *root, const char *controller, char path_out[PATH_MAX])
{
    char name[PATH_MAX], line[PATH_MAX + 256];
    snprintf(name, sizeof name, "%s/proc/self/cgroup", root);
    FILE *file = fopen(name, "re");
    if (file == NULL)
        return false;
    bool is_found = false;
    while (!is_found && fgets(line, sizeof line, file) != NULL) {
        line[strcspn(line, "\n")] = '\0';
        char *controllers = strchr(line, ':');
        char *path = controllers != NULL ? strchr(controllers + 1, ':') : NULL;
        if (path == NULL)
            continue;
        *path++ = '\0';
        controllers++;
        is_found = controller[0] == '\0' ? controllers[0] == '\0' : has_word(controllers, controller);
        if (is_found)
            snprintf(path_out, PATH_MAX, "%s", path);
    }
    fclose(file);
    return is_found;
}

/* Parses "36 35 0:33 ROOT MOUNT options … - TYPE SOURCE SUPEROPTIONS" in place. */
static bool parse_mount(char *line, char **mount_root, char **mount_point, char **type, char **super_options)
{
    char *after = strstr(line, " - ");
    if (after == NULL)
        return false;
    *after = '\0';
    char *save = NULL;
    char *field = strtok_r(line, " ", &save);
    for (int i = 0; i < 3 && field != NULL; i++)
        field = strtok_r(NULL, " ", &save);
    *mount_root = field;
    *mount_point = field != NULL ? strtok_r(NULL, " ", &save) : NULL;
    *type = strtok_r(after + 3, " ", &save);
    char *source = *type != NULL ? strtok_r(NULL, " ", &save) : NULL;
    *super_options = source != NULL ? strtok_r(NULL, " \n", &save) : NULL;
    return *mount_point != NULL && *super_options != NULL;
}

static bool is_folder(const char *path)
{
    struct stat status;
    return stat(path, &status) == 0 && S_ISDIR(status.st_mode);
}

static bool set_hierarchy(const char *root, const char *mount_root, const char *mount_point,
    const char *group, struct hierarchy *out)
{
    size_t length = strcmp(mount_root, "/") == 0 ? 0 : strlen(mount_root);
    bool is_below =
        strncmp(group, mount_root, length) == 0 && (group[length] == '/' || group[length] == '\0');
    const char *rest = is_below ? group + length : "";
    rest = strcmp(rest, "/") == 0 ? "" : rest;
    int mount_length = snprintf(out->mount, sizeof out->mount, "%s%s", root, mount_point);
    if (mount_length < 0 || (size_t)mount_length + strlen(rest) >= sizeof out->folder)
        return false;
    memcpy(out->folder, out->mount, (size_t)mount_length);
    memcpy(out->folder + mount_length, rest, strlen(rest) + 1);
    if (!is_folder(out->folder))
        memcpy(out->folder, out->mount, (size_t)mount_length + 1);
    return true;
}

static bool find_hierarchy(const char *root, const char *controller, struct hierarchy *out)
{
    char group[PATH_MAX], name[PATH_MAX], line[2 * PATH_MAX];
    if (!find_group(root, controller, group))
        return false;
    snprintf(name, sizeof name, "%s/proc/self/mountinfo", root);
    FILE *file = fopen(name, "re");
    if (file == NULL)
        return false;
    const char *wanted_type = controller[0] == '\0' ? "cgroup2" : "cgroup";
    bool is_found = false;
    while (!is_found && fgets(line, sizeof line, file) != NULL) {
        char *mount_root, *mount_point, *type, *super_options;
        if (parse_mount(line, &mount_root, &mount_point, &type, &super_options) &&
            strcmp(type, wanted_type) == 0 && (controller[0] == '\0' || has_word(super_options, controller)))
            is_found = set_hierarchy(root, mount_root, mount_point, group, out);
    }
    fclose(file);
    return is_found;
}

/* Moves `folder` to its parent; false once the mount point has been visited. */
static bool go_up(struct hierarchy *hierarchy)
{
    if (strcmp(hierarchy->folder, hierarchy->mount) == 0)
        return false;
    char *slash = strrchr(hierarchy->folder, '/');
    if (slash == NULL || slash == hierarchy->folder)
        return false;
    *slash = '\0';
    return true;
}

/* Reads the file's text, cut to `size`. */
static bool read_text(const char *folder, const char *name, char *text_out, size_t size)
{
    char path[PATH_MAX + 64];
    snprintf(path, sizeof path, "%s/%s", folder, name);
    FILE *file = fopen(path, "re");
    if (file == NULL)
        return false;
    size_t length = fread(text_out, 1, size - 1, file);
    fclose(file);
    text_out[length] = '\0';
    return length > 0;
}

static bool read_number(const char *folder, const char *name, uint64_t *number_out)
{
    char text[64];
    return read_text(folder, name, text, sizeof text) && sscanf(text, "%" SCNu64, number_out) == 1;
}

/* Reads a "name value" line of memory.stat; 0 when there is none. */
static uint64_t read_statistic(const char *folder, const char *name)
{
    char text[8192];
    if (!read_text(folder, "memory.stat", text, sizeof text))
        return 0;
    size_t length = strlen(name);
    char *save = NULL;
    for (char *line = strtok_r(text, "\n", &save); line != NULL; line = strtok_r(NULL, "\n", &save))
        if (strncmp(line, name, length) == 0 && line[length] == ' ')
            return strtoull(line + length + 1, NULL, 10);
    return 0;
}

/* Names of a version's files, and of its statistic that counts the page cache which the kernel frees
 * first. */
struct memory_files {
    const char *controller, *limit, *usage, *cache;
};

static const struct memory_files memory_files[] = {
    {"memory", "memory.limit_in_bytes", "memory.usage_in_bytes", "total_inactive_file"},
    {"", "memory.max", "memory.current", "inactive_file"},
};

/* Reads a memory figure of the group; false when the group has no limit of its own. */
typedef bool (*memory_reader)(const char *folder, const struct memory_files *files, uint64_t *bytes_out);

static bool read_limit(const char *folder, const struct memory_files *files, uint64_t *bytes_out)
{
    return read_number(folder, files->limit, bytes_out) && *bytes_out < (uint64_t)INT64_MAX - 4095;
}

static bool read_remaining(const char *folder, const struct memory_files *files, uint64_t *bytes_out)
{
    uint64_t limit = 0, usage = 0;
    if (!read_limit(folder, files, &limit) || !read_number(folder, files->usage, &usage))
        return false;
    uint64_t cache = read_statistic(folder, files->cache);
    uint64_t needed = usage > cache ? usage - cache : 0;
    *bytes_out = limit > needed ? limit - needed : 0;
    return true;
}

/* Finds the least figure over the group and its ancestors, in both versions. */
static bool least_memory(const char *root, memory_reader read, uint64_t *bytes_out)
{
    struct hierarchy hierarchy;
    uint64_t least = UINT64_MAX;
    for (size_t i = 0; i < sizeof memory_files / sizeof *memory_files; i++) {
        if (!find_hierarchy(root, memory_files[i].controller, &hierarchy))
            continue;
        do {
            uint64_t bytes = 0;
            if (read(hierarchy.folder, &memory_files[i], &bytes) && bytes < least)
                least = bytes;
        } while (go_up(&hierarchy));
    }
    if (least == UINT64_MAX)
        return false;
    *bytes_out = least;
    return true;
}

bool ph__cgroup_memory_remaining(const char *root, uint64_t *bytes_out)
{
    return least_memory(root, read_remaining, bytes_out);
}

bool ph__cgroup_memory_limit(const char *root, uint64_t *bytes_out)
{
    return least_memory(root, read_limit, bytes_out);
}

/* Reads the quota of version 2: "QUOTA PERIOD" in cpu.max, or "max PERIOD". */
static bool quota_v2(const char *folder, double *processors_out)
{
    char text[64];
    double quota = 0, period = 0;
    if (!read_text(folder, "cpu.max", text, sizeof text) || sscanf(text, "%lf %lf", &quota, &period) != 2)
        return false;
    *processors_out = quota / period;
    return quota > 0 && period > 0;
}

/* Reads the quota of version 1, from two files; -1 means no quota. */
static bool quota_v1(const char *folder, double *processors_out)
{
    char text[64];
    uint64_t period = 0;
    if (!read_text(folder, "cpu.cfs_quota_us", text, sizeof text) ||
        !read_number(folder, "cpu.cfs_period_us", &period) || period == 0)
        return false;
    double quota = strtod(text, NULL);
    *processors_out = quota / (double)period;
    return quota > 0;
}

static bool least_quota(
    struct hierarchy hierarchy, bool (*quota)(const char *folder, double *processors_out), double *least)
{
    bool is_found = false;
    do {
        double processors = 0;
        if (!quota(hierarchy.folder, &processors))
            continue;
        *least = processors < *least ? processors : *least;
        is_found = true;
    } while (go_up(&hierarchy));
    return is_found;
}

bool ph__cgroup_cpu_quota(const char *root, double *processors_out)
{
    struct hierarchy hierarchy;
    double least = (double)UINT32_MAX;
    bool is_found = false;
    if (find_hierarchy(root, "cpu", &hierarchy))
        is_found |= least_quota(hierarchy, quota_v1, &least);
    if (find_hierarchy(root, "", &hierarchy))
        is_found |= least_quota(hierarchy, quota_v2, &least);
    if (is_found)
        *processors_out = least;
    return is_found;
}
