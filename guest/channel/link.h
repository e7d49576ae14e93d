/* A channel whose connections may break. A program that the cluster starts beside the guest (`relay attach`) connects to the guest and passes
 * bytes on. Whatever one connection loses, the next one brings: letters have numbers, and answers have positions. */
#ifndef GLOVEBOX_LINK_H
#define GLOVEBOX_LINK_H
#include <poll.h>
#include <stdbool.h>
#include <stdint.h>
#include <sys/socket.h>
#include <sys/types.h>
#include <sys/un.h>

#include "replay.h"

#define LINK_POLLS 3

/* Whether the channel is one. `kept` or `warm`: nobody is missed before the first connection. */
extern bool linked;
int link_open(int64_t lease, bool kept, bool warm);
/* Whether the files are to outlast the lease. */
bool link_is_kept(void);
/* Fills in LINK_POLLS. Without room for requests none are read; `sends`: answers need not wait. */
void link_polls(struct pollfd *fds, const struct replay *out, bool has_room, bool sends);
/* Appends the requests that have come. False: the host has ended the channel. */
bool link_ready(const struct pollfd *fds, struct queue *incoming, struct replay *out);
void link_send(struct replay *out);
/* The ms until the link must be looked at again; negative: its lease is over. */
int link_timeout(void);

/* The process at the other end; 0 when there is none. */
pid_t link_peer(void);

/* The name of the guest's socket, which commands can reach too. Returns its size. */
socklen_t link_address(struct sockaddr_un *address);
#endif
