/* Shared code of all tests: cmocka with its headers in order, a printed seed, skips, temporary folders. */
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

/* Tells whether $PH_TEST_BRIEF is set: a test whose first rounds show what a sanitizer can find then leaves
 * out similar ones. */
bool test_is_brief(void);

/* Returns the seed of this run: $PH_TEST_SEED or a fixed default; printed once. */
uint64_t test_seed(void);

/* Asserts |actual - expected| <= absolute + relative * |expected|; a failure names both. */
void assert_near(double actual, double expected, double absolute, double relative);

/* Prints "learned NAME VALUE >= BAR" (or <=), which tools/learning_margins.py reads, then fails unless that
 * is true. */
void test_learned_at_least(const char *name, double value, double bar);
void test_learned_at_most(const char *name, double value, double bar);

/* Returns a fresh folder under $TMPDIR, removed with its content when the program exits. Static storage. */
const char *test_folder(void);
const char *test_path(const char *name); /* in test_folder(), until the program exits */
const char *test_fresh_folder(void);     /* an empty one in test_folder(), as long-lived */
const char *test_write_file(const char *name, const char *text); /* at test_path(name), which is returned */
void test_write_text(const char *path, const char *text); /* replaces the content of an existing file */

/* Returns the path of a file under $PHLOEM_DATA (default ../shared/data beside the source tree), or NULL when
 * it is missing. */
const char *test_data(const char *relative_path);

/* Returns the build's folder, which has this program in its tests/. Static storage. */
const char *test_build(void);

/* Counts the descriptors of this process, plus one that the count itself opens. */
size_t test_count_descriptors(void);
size_t test_count_threads(void); /* of this process */

/* Ends the whole program as skipped (exit 77) and prints the reason. */
_Noreturn void test_skip(const char *reason);

#endif
