/* The signal that asks a verb to stop in good order, and the one that is no reason to. */
#ifndef PH_CLI_STOP_SIGNAL_H
#define PH_CLI_STOP_SIGNAL_H

/* From now on SIGINT and SIGTERM are remembered in what is returned, which is 0 until then; a second one, of either
 * kind, ends the program at once. One that the program was started to ignore stays ignored. SIGPIPE is ignored
 * too: long work goes on when nobody reads its progress any more. Static storage. */
const volatile int *cli_stop_signal(void);

#endif
