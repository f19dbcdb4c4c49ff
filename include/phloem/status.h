/* Status codes that every Phloem call that can fail returns, and the record of what went wrong.
 *
 * The function that first sees an error calls ph_fail() once, naming what failed, where (file, line, row,
 * key) and why. Its callers pass the status on with PH_TRY. The record belongs to the calling thread. */
#ifndef PHLOEM_STATUS_H
#define PHLOEM_STATUS_H

#ifdef __cplusplus
extern "C" {
#endif

/* X(name, value, exit code of the phloem program, message) */
#define PH_STATUS_LIST(X)                           \
    X(PH_OK, 0, 0, "done")                          \
    X(PH_ERROR_BUG, -1, 1, "internal error")        \
    X(PH_ERROR_USAGE, -2, 2, "wrong usage")         \
    X(PH_ERROR_CONFIG, -3, 2, "bad config")         \
    X(PH_ERROR_DATA, -4, 3, "bad data")             \
    X(PH_ERROR_CHECKPOINT, -5, 4, "bad checkpoint") \
    X(PH_ERROR_MEMORY, -6, 5, "out of memory")      \
    X(PH_ERROR_DISK, -7, 5, "cannot write")         \
    X(PH_ERROR_PEER, -8, 6, "a peer failed")        \
    X(PH_ERROR_INTERRUPTED, -9, 130, "interrupted") \
    X(PH_ERROR_TERMINATED, -10, 143, "terminated")  \
    X(PH_ERROR_DIVERGED, -11, 3, "training diverged")

#define PH_STATUS_ENUM(name, value, exit_code, message) name = value,
enum ph_status_code { PH_STATUS_LIST(PH_STATUS_ENUM) };
#undef PH_STATUS_ENUM

typedef int ph_status; /* 0 or a negative ph_status_code */

#if defined(__GNUC__)
#define PH_PRINTF(format_index, first_argument) __attribute__((format(printf, format_index, first_argument)))
#define PH_MUST_CHECK __attribute__((warn_unused_result))
#else
#define PH_PRINTF(format_index, first_argument)
#define PH_MUST_CHECK
#endif

/* Returns from the calling function when `call` fails. */
#define PH_TRY(call)                      \
    do {                                  \
        ph_status ph_try_status = (call); \
        if (ph_try_status != PH_OK)       \
            return ph_try_status;         \
    } while (0)

/* Makes `call` and drops its status. The caller says beside it why a failure changes nothing. */
#define PH_IGNORE(call)                       \
    do {                                      \
        ph_status ph_ignored_status = (call); \
        (void)ph_ignored_status;              \
    } while (0)

/* Records one line about the error for this thread and returns `status`. Longer lines are cut; control
 * characters become escapes such as \n and \x1b, from whatever file or argument they come. */
ph_status ph_fail(ph_status status, const char *format, ...) PH_PRINTF(2, 3);

/* Returns the last line recorded by this thread, "" if none; static, valid until its next ph_fail(). */
const char *ph_error_text(void);

/* Returns the general meaning of a status ("bad data"), static, or "unknown status". */
const char *ph_status_message(ph_status status);

/* Returns the exit code that the phloem program gives for a status. */
int ph_status_exit_code(ph_status status);

#ifdef __cplusplus
}
#endif
#endif
