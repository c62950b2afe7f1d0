/* Shared-memory stream protocol, version 1: the handshake message and the layout of the memory, for
 * every language that speaks it. All numbers are in the machine's byte order; both peers run on it.
 *
 * Rendezvous: the client connects to a Unix stream socket (unix(7)) and sends its HELLO; the server
 * answers with its own. With the HELLO goes one descriptor by SCM_RIGHTS: a memory file
 * (memfd_create(2)) that only its sender writes. The socket stays open, and its end is the peer's.
 *
 * A port, for programs with a number in the place of a path: the abstract name (unix(7)) that is
 * EDDY_SHM_PORT_NAME, the effective user of the server, '-' and the port, both in decimal digits
 * without leading zeros: the NUL byte and "eddy-shm-1000-4242", whose length the address has. A
 * server listens at the name of its own user; port 0 is a port from EDDY_SHM_FIRST_FREE_PORT to
 * EDDY_SHM_LAST_FREE_PORT whose name is free. A client tries the names of the users whose servers
 * it accepts, in their order, by default its own user and root, and goes on to the next one only
 * after ECONNREFUSED. It checks the server's user (SO_PEERCRED) as with any other name, since any
 * process may take one.
 *
 * Doorbell: the HELLO also chooses how its sender is woken. By the socket: a byte of any value
 * wakes it, and a socket that is full has been signalled already. By futex(2): the waker adds 1 to
 * a bell word of its own memory, EDDY_SHM_READER_BELL for bytes and for the end,
 * EDDY_SHM_WRITER_BELL for room, and calls FUTEX_WAKE on it. The sleeper waits, through its own
 * mapping, for the word to differ from what it was before the sleep was announced.
 *
 * A HELLO without EDDY_SHM_FEATURE_MEMORY brings no descriptor: this peer cannot share memory, and
 * both go on with the bytes of the stream on the socket itself.
 *
 * The end: a side that has finished sends no more bytes behind EDDY_SHM_END. A socket that ends
 * while the word of its side is 0 is a reset: the side has aborted the connection, or died. Its
 * peer reads what was published, then reports the reset.
 *
 * Packets, for peers that both have EDDY_SHM_FEATURE_PACKETS: the end of each one, a position, is
 * in the EDDY_SHM_MOST_PACKETS words from EDDY_SHM_PACKETS on, that of packet n in word n modulo
 * their number. A writer stores it before the head that publishes it, and has at most as many
 * packets that are not read to their end as there are words. A reader needs no count: it copies the
 * next end once the head is behind its position, and checks that it lies behind the position and
 * not behind the head.
 *
 * Memory file: EDDY_SHM_HEADER_SIZE bytes of words, then the ring that its owner sends through. It
 * is sealed (fcntl(2)) with F_SEAL_SHRINK, F_SEAL_GROW, F_SEAL_FUTURE_WRITE and F_SEAL_SEAL. Each
 * word that a peer reads is checked after it was copied; a word out of its range ends the
 * connection. So may a published byte whose page its owner has never written: reading it would
 * allocate the page, at the reader's cost. */

/// \file
/// Constants only. Any thread.

#ifndef EDDY_SHM_LAYOUT_H
#define EDDY_SHM_LAYOUT_H

#include <stdint.h>

/* ---- HELLO: 32 bytes */

#define EDDY_SHM_MAGIC 0x4d485345u /* "ESHM" in little-endian order */
#define EDDY_SHM_VERSION 1u
#define EDDY_SHM_HELLO_SIZE 32u

#define EDDY_SHM_HELLO_MAGIC 0u     /* u32 */
#define EDDY_SHM_HELLO_VERSION 4u   /* u32 */
#define EDDY_SHM_HELLO_FEATURES 8u  /* u32; unknown bits are ignored */
#define EDDY_SHM_HELLO_DOORBELL 12u /* u32 */
#define EDDY_SHM_HELLO_RING 16u     /* u64: bytes of the sender's ring, a power of two */
#define EDDY_SHM_HELLO_POSITION 24u /* u64: where the sender's positions begin, below 2^63 */

/* The sender shares memory: its descriptor came with the message. */
#define EDDY_SHM_FEATURE_MEMORY 1u
/* Before it sleeps, the sender has the kernel execute a fence in all processes (membarrier(2),
 * MEMBARRIER_CMD_GLOBAL_EXPEDITED), and has registered itself for those of others. Where both have
 * it, publishing needs no fence of its own. */
#define EDDY_SHM_FEATURE_ASYMMETRIC 2u
/* The sender keeps packets apart, and goes on with no peer that does not: Java, by option. */
#define EDDY_SHM_FEATURE_PACKETS 4u

#define EDDY_SHM_DOORBELL_SOCKET 0u
#define EDDY_SHM_DOORBELL_FUTEX 1u

#define EDDY_SHM_MIN_RING 65536u
#define EDDY_SHM_MAX_RING (1u << 30)
#define EDDY_SHM_DEFAULT_RING (256u * 1024u)
#define EDDY_SHM_MAX_POSITION 0x7fffffffffffffffu /* of those that a HELLO may name */

/* ---- Ports */

#define EDDY_SHM_PORT_NAME "eddy-shm-" /* behind the NUL byte; then USER-PORT */
#define EDDY_SHM_FIRST_FREE_PORT 49152u
#define EDDY_SHM_LAST_FREE_PORT 65535u

/* ---- Words of the memory file, each group on lines of its own */

#define EDDY_SHM_HEADER_SIZE 65536u /* a multiple of every page size */

/* u64: end of what the owner has published in its ring; its first position before the HELLO is sent
 */
#define EDDY_SHM_HEAD 128u
/* u64: end of what the owner has read from the peer's ring; 0 until it has had the peer's HELLO */
#define EDDY_SHM_TAIL 256u
#define EDDY_SHM_READER                                                                           \
    384u                     /* u32: odd while the owner waits for bytes; another value each time \
                              */
#define EDDY_SHM_WRITER 388u /* u32: the same while it waits for room */
#define EDDY_SHM_READER_BELL 448u /* u32: wake-ups of the peer's reader by futex(2) */
#define EDDY_SHM_WRITER_BELL 452u /* u32: the same of its writer */
#define EDDY_SHM_END 512u         /* u64: 0, or 1 + the final head: no bytes follow */
#define EDDY_SHM_CPU 640u       /* u32: 1 + the processor on which the owner last ran; 0: unknown */
#define EDDY_SHM_PACKETS 32768u /* u64 each: ends of the packets that the owner has published */
#define EDDY_SHM_MOST_PACKETS 4096u

#endif
