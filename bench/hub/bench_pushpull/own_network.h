/* A network namespace of the benchmark's own, so that all contestants send through the same: the machine's
 * congestion control may be one that paces the loopback interface, which a hub avoids for its own sockets and
 * peers do not. */
#ifndef PH_BENCH_OWN_NETWORK_H
#define PH_BENCH_OWN_NETWORK_H

enum { CONGESTION_NAME = 32, CONGESTION_WORDS = 96 };

/* Moves the process, and those that it starts from now on, into a namespace with nothing but a loopback
 * interface, where TCP is cubic, or reno where the system allows that alone: neither paces. Who may not stays
 * where it is. One thread so far. */
void own_network_enter(void);

/* TCP's congestion control of sockets that name none, and of the hub's where that is another; "?" where it
 * cannot be told. */
void own_network_congestion(char words_out[CONGESTION_WORDS]);
/* From now on sockets that name none have what they would have outside. Returns it; NULL: they have it
 * anyway. */
const char *own_network_as_outside(void);
void own_network_as_inside(void); /* ... and again what they had before */

#endif
