/* What every test includes: cmocka in the order it wants, a seed that is printed, skips, temporary folders.
 */
#ifndef PH_TEST_SUPPORT_H
#define PH_TEST_SUPPORT_H

#include <setjmp.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "phloem/status.h"

/* Fails the test with the recorded error when `call` is not PH_OK. */
#define assert_ok(call) test__assert_ok((call), #call, __FILE__, __LINE__)
/* Fails unless `call` returns `status` and the recorded error text contains `part`. */
#define assert_fails(call, status, part) \
    test__assert_fails((call), (status), (part), #call, __FILE__, __LINE__)

void test__assert_ok(ph_status status, const char *call, const char *file, int line);
void test__assert_fails(
    ph_status status, ph_status wanted, const char *part, const char *call, const char *file, int line);

/* Tells whether $PH_TEST_BRIEF is set: a test whose first turns show what a sanitizer can find then leaves
 * out others like them. */
bool test_is_brief(void);

/* The seed of this run: $PH_TEST_SEED or a fixed default; printed once. */
uint64_t test_seed(void);

/* |actual - expected| <= absolute + relative * |expected|, else fails naming both. */
void assert_near(double actual, double expected, double absolute, double relative);

/* Prints "learned NAME VALUE >= BAR" (or <=), which tools/learning_margins.py reads, then fails unless that
 * holds. */
void test_learned_at_least(const char *name, double value, double bar);
void test_learned_at_most(const char *name, double value, double bar);

/* A fresh folder under $TMPDIR, removed with all that is in it when the program exits. Static storage. */
const char *test_folder(void);
const char *test_path(const char *name); /* in test_folder(), until the program exits */
const char *test_fresh_folder(void);     /* an empty one in test_folder(), as long */
const char *test_write_file(const char *name, const char *text); /* at test_path(name), which is returned */
void test_write_text(const char *path, const char *text);        /* into what is there, where something is */

/* The path of a file under $PHLOEM_DATA (default ../shared/data beside the source tree), or NULL when it is
 * missing. */
const char *test_data(const char *relative_path);

/* The build's folder, in whose tests/ this program stands. Static storage. */
const char *test_build(void);

/* Descriptors of this process, and one more while they are counted. */
size_t test_count_descriptors(void);
size_t test_count_threads(void); /* of this process */

/* Ends the whole program as skipped (exit 77), saying why. */
_Noreturn void test_skip(const char *reason);

#endif
