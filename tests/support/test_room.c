/* The main of a room's test program: runs the test file that its argument names, alone in the process. CMake
 * writes the names to PH_TEST_FILES: a line TEST_FILE(name) for test_<name>.c, whose main is called
 * test_main_<name>. */
#include <stdio.h>
#include <string.h>

#define TEST_FILE(name) int test_main_##name(void);
#include PH_TEST_FILES
#undef TEST_FILE

static const struct {
    const char *name;
    int (*run)(void);
} files[] = {
#define TEST_FILE(name) {#name, test_main_##name},
#include PH_TEST_FILES
#undef TEST_FILE
};

int main(int argc, char **argv)
{
    for (size_t i = 0; argc == 2 && i < sizeof files / sizeof *files; i++)
        if (strcmp(files[i].name, argv[1]) == 0)
            return files[i].run();
    fprintf(stderr, "usage: %s FILE, one of:\n", argv[0]);
    for (size_t i = 0; i < sizeof files / sizeof *files; i++)
        fprintf(stderr, "  %s\n", files[i].name);
    return 2;
}
