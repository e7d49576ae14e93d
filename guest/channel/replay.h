/* Answers that the host may not have yet: they stay until it confirms them, so that another connection gets what the last one lost. */
#ifndef GLOVEBOX_REPLAY_H
#define GLOVEBOX_REPLAY_H
#include "frame.h"

#define REPLAY_WINDOW (8u << 20) /* bytes of unconfirmed answers at which the guest waits */

struct replay {
  struct queue bytes; /* starts at position `confirmed` of all answers */
  uint64_t confirmed;
  size_t sent; /* bytes that the present connection has got */
};

static inline size_t replay_unsent(const struct replay *r) { return queue_length(&r->bytes) - r->sent; }
static inline const uint8_t *replay_next(const struct replay *r) { return r->bytes.data + r->bytes.start + r->sent; }
/* The host has everything up to this position. One that cannot be is ignored. */
void replay_confirm(struct replay *r, uint64_t position);
/* A new connection gets everything from this position on. False: that is no longer, or not yet, here. */
bool replay_from(struct replay *r, uint64_t position);
#endif
