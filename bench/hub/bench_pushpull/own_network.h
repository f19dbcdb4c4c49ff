/* A network namespace of the benchmark's own, so that all contestants send through the same network. The
 * machine's congestion control may pace the loopback interface, which a hub avoids for its own sockets but
 * peers do not. */
#ifndef PH_BENCH_OWN_NETWORK_H
#define PH_BENCH_OWN_NETWORK_H

enum { CONGESTION_NAME = 32, CONGESTION_WORDS = 96 };

/* Moves the process, and those that it starts from now on, into a namespace with nothing but a loopback
 * interface, where TCP is cubic, or reno if the system allows only that: neither paces. Does nothing without
 * the permission. Called while there is one thread. */
void own_network_enter(void);

/* Gives TCP's default congestion control, and the hub's if that differs; "?" if unknown. */
void own_network_congestion(char words_out[CONGESTION_WORDS]);
/* Gives sockets the machine's default congestion control. Returns its name, or NULL if nothing changes. */
const char *own_network_as_outside(void);
void own_network_as_inside(void); /* restores the default inside */

#endif
