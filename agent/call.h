/* One call as the files that deal with calls see it. */
#ifndef GLOVEBOX_CALL_H
#define GLOVEBOX_CALL_H
#include "agent.h"

#define WINDOW (256u << 10) /* bytes that may be under way without being asked for again, per stream */
#define INPUT_WINDOW (4u << 20) /* of an input, where the way is long */

struct call {
  uint32_t id;
  struct supervisor supervisor; /* pid 0 when there is none or it is gone */
  bool builtin, ended, timed_out, input_ended, terminal, reading, killed, orphaned, connection, unfrozen;
  struct ending ending;
  int in, out, err;
  int read_error;
  uint32_t credit[3];
  struct queue input;
  int64_t deadline, quiet_since, ended_at;
  int64_t oom_kills; /* before the command began; negative: not known */
  int64_t kill_at; /* when a supervisor that was told to end it all is killed itself; 0: never */
  struct pending_file *file;
  struct call *next;
};

extern struct call *calls;

void close_fd(int *fd);
void flush_input(struct call *call);
void kill_call(struct call *call);
/* Answers how the call ended, and forgets it. */
void finish(struct call *call);
#endif
