#include "replay.h"

void replay_confirm(struct replay *r, uint64_t position) {
  if (position <= r->confirmed || position - r->confirmed > r->sent) return;
  size_t more = (size_t)(position - r->confirmed);
  r->sent -= more;
  queue_take(&r->bytes, more);
  r->confirmed = position;
}

bool replay_from(struct replay *r, uint64_t position) {
  if (position < r->confirmed || position - r->confirmed > queue_length(&r->bytes)) return false;
  r->sent = (size_t)(position - r->confirmed);
  return true;
}
