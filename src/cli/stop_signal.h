/* The signals that ask a verb to stop in good order, and SIGPIPE, which is no reason to stop. */
#ifndef PH_CLI_STOP_SIGNAL_H
#define PH_CLI_STOP_SIGNAL_H

#include <stdbool.h>

/* Stores SIGINT and SIGTERM from now on in the returned variable, which is 0 until then; a second one, of
 * either kind, ends the program at once. A signal that the program was started to ignore stays ignored.
 * Ignores SIGPIPE, too: long work goes on when nobody reads its progress any more. Static storage. */
const volatile int *cli_stop_signal(void);

/* Does the same for work that may be killed at any moment and goes on later: ends the program a second after
 * the signal, unless it has ended by itself, with the signal's exit code. */
const volatile int *cli_stop_signal_soon(void);

/* Split cli_stop_signal() in two, for trainings: the variable that signals are stored in, and whether they
 * are stored, for on_watch of struct ph_train_observer. Once they no longer are, they end the program at
 * once, also a stored one. */
const volatile int *cli_stop_signal_place(void);
void cli_stop_signal_watch(void *context, bool is_on);

/* Lets SIGINT and SIGTERM remove `path`.tmp, the half-written file `path`, before they end the program as
 * usual. */
void cli_stop_signal_removes(const char *path);

/* Raises the limit of descriptors to what the system allows, for servers: clients cost descriptors, and
 * nothing here minds large ones. */
void cli_raise_descriptor_limit(void);

#endif
