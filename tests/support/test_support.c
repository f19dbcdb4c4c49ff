#include "support/test_support.h"

#include <dirent.h>
#include <ftw.h>
#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

void test__assert_ok(ph_status status, const char *call, const char *file, int line)
{
    if (status == PH_OK)
        return;
    print_error("%s failed: %s: %s\n", call, ph_status_message(status), ph_error_text());
    _fail(file, line);
}

void test__assert_fails(
    ph_status status, ph_status wanted, const char *part, const char *call, const char *file, int line)
{
    if (status == wanted && strstr(ph_error_text(), part) != NULL)
        return;
    print_error(
        "%s returned %d \"%s\"; wanted %d with \"%s\"\n", call, status, ph_error_text(), wanted, part);
    _fail(file, line);
}

bool test_is_brief(void)
{
    return getenv("PH_TEST_BRIEF") != NULL;
}

uint64_t test_seed(void)
{
    static uint64_t seed;
    if (seed == 0) {
        const char *text = getenv("PH_TEST_SEED");
        seed = text != NULL ? strtoull(text, NULL, 10) : 20240607;
        print_message("PH_TEST_SEED=%" PRIu64 "\n", seed);
    }
    return seed;
}

void assert_near(double actual, double expected, double absolute, double relative)
{
    if (fabs(actual - expected) <= absolute + relative * fabs(expected))
        return;
    fail_msg("%.17g is not near %.17g (absolute %g, relative %g)", actual, expected, absolute, relative);
}

void test_learned_at_least(const char *name, double value, double bar)
{
    print_message("learned %s %.9g >= %g\n", name, value, bar);
    if (!(value >= bar))
        fail_msg("%s is %.9g, which is not >= %g", name, value, bar);
}

void test_learned_at_most(const char *name, double value, double bar)
{
    print_message("learned %s %.9g <= %g\n", name, value, bar);
    if (!(value <= bar))
        fail_msg("%s is %.9g, which is not <= %g", name, value, bar);
}

static char folder[256];

static int remove_entry(const char *path, const struct stat *status, int type, struct FTW *walk)
{
    (void)status;
    (void)type;
    (void)walk;
    return remove(path);
}

/* The paths that test_write_file has given out, kept until the program ends. */
struct kept_path {
    struct kept_path *next;
    char text[];
};
static struct kept_path *kept_paths;

const char *test_path(const char *name)
{
    size_t size = strlen(test_folder()) + strlen(name) + 2;
    struct kept_path *path = malloc(sizeof *path + size);
    if (path == NULL)
        fail_msg("out of memory");
    snprintf(path->text, size, "%s/%s", test_folder(), name);
    path->next = kept_paths;
    kept_paths = path;
    return path->text;
}

static void remove_folder(void)
{
    while (kept_paths != NULL) {
        struct kept_path *next = kept_paths->next;
        free(kept_paths);
        kept_paths = next;
    }
    nftw(folder, remove_entry, 16, FTW_DEPTH | FTW_PHYS);
}

const char *test_folder(void)
{
    if (folder[0] == '\0') {
        const char *parent = getenv("TMPDIR");
        snprintf(folder, sizeof folder, "%s/phloem-test-XXXXXX", parent != NULL ? parent : "/tmp");
        if (mkdtemp(folder) == NULL)
            fail_msg("cannot make a folder from %s", folder);
        atexit(remove_folder);
    }
    return folder;
}

const char *test_fresh_folder(void)
{
    static unsigned count;
    char name[32];
    snprintf(name, sizeof name, "folder-%u", count++);
    const char *path = test_path(name);
    if (mkdir(path, 0777) != 0)
        fail_msg("cannot make %s", path);
    return path;
}

void test_write_text(const char *path, const char *text)
{
    FILE *file = fopen(path, "wb");
    assert_non_null(file);
    assert_int_equal(fwrite(text, 1, strlen(text), file), strlen(text));
    assert_int_equal(fclose(file), 0);
}

const char *test_write_file(const char *name, const char *text)
{
    const char *path = test_path(name);
    test_write_text(path, text);
    return path;
}

const char *test_build(void)
{
    static char path[4096];
    const ssize_t length = readlink("/proc/self/exe", path, sizeof path - 1);
    if (length < 0)
        fail_msg("cannot tell where this program is");
    path[length] = '\0';
    for (int i = 0; i < 2; i++)
        *strrchr(path, '/') = '\0';
    return path;
}

const char *test_data(const char *relative_path)
{
    const char *root = getenv("PHLOEM_DATA");
    char *path = NULL;
    if (asprintf(&path, "%s/%s", root != NULL ? root : PH_SOURCE_DIR "/../shared/data", relative_path) < 0)
        return NULL;
    if (access(path, R_OK) == 0)
        return path;
    free(path);
    return NULL;
}

size_t test_count_descriptors(void)
{
    DIR *opened = opendir("/proc/self/fd");
    size_t count = 0;
    assert_non_null(opened);
    while (readdir(opened) != NULL)
        count++;
    closedir(opened);
    return count;
}

size_t test_count_threads(void)
{
    DIR *threads = opendir("/proc/self/task");
    size_t count = 0;
    assert_non_null(threads);
    for (const struct dirent *entry; (entry = readdir(threads)) != NULL;)
        count += entry->d_name[0] != '.';
    closedir(threads);
    return count;
}

void test_skip(const char *reason)
{
    fprintf(stderr, "skipped: %s\n", reason);
    exit(77);
}
