/* The signal that asks a verb to stop in good order, and the one that is no reason to. */
#ifndef PH_CLI_STOP_SIGNAL_H
#define PH_CLI_STOP_SIGNAL_H

#include <stdbool.h>

/* From now on SIGINT and SIGTERM are remembered in what is returned, which is 0 until then; a second one, of
 * either kind, ends the program at once. One that the program was started to ignore stays ignored. SIGPIPE is
 * ignored too: long work goes on when nobody reads its progress any more. Static storage. */
const volatile int *cli_stop_signal(void);

/* The same for work that may be killed at any moment and goes on later: what has not ended by itself a second
 * after the signal is ended with the signal's exit code. */
const volatile int *cli_stop_signal_soon(void);

/* The halves of cli_stop_signal(), as struct ph__signals has them: where signals are remembered, and whether
 * they are. When they are no longer, they end the program at once, also one that was remembered. */
const volatile int *cli_stop_signal_place(void);
void cli_stop_signal_watch(bool is_on);

/* From now on SIGINT and SIGTERM remove `path`.tmp, which is what is half written of the file `path`, and
 * then end the program as they do by themselves. */
void cli_stop_signal_removes(const char *path);

#endif
