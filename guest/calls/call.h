/* One call as the files that deal with calls see it. */
#ifndef GLOVEBOX_CALL_H
#define GLOVEBOX_CALL_H
#include "../guest.h"

#define WINDOW (256u << 10) /* bytes that may be under way without being asked for again, per stream */
#define INPUT_WINDOW (4u << 20) /* of an input, where the way is long */

/* One output: the first bytes go to the channel as they come, then only the last ones count. */
struct output {
  uint32_t pass; /* how many bytes still go there as they come; or KEEP_ALL */
  uint32_t tail; /* how many of the last ones do, at the end */
  uint8_t *ring;
  size_t size;
  uint64_t buffered, sent; /* how many bytes came after the first; up to where they were sent or left out */
  bool ended;
};

struct call {
  uint32_t id;
  struct supervisor supervisor; /* pid 0 when there is none or it is gone */
  bool worker, ended, timed_out, input_ended, terminal, reading, killed, orphaned, connection, unfrozen;
  struct ending ending;
  int in, out, err;
  int read_error;
  int start_error; /* why the command could not be started, an errno */
  uint32_t credit[3];
  struct output outputs[3];
  struct queue input;
  int64_t deadline, quiet_since, ended_at;
  int64_t oom_kills_before; /* before the command began; negative: not known */
  int64_t kill_at; /* when a supervisor that was told to end it all is killed itself; 0: never */
  struct pending_file *file;
  struct call *next;
};

extern struct call *calls;

void close_fd(int *fd);
void flush_input(struct call *call);
void call_kill(struct call *call);
/* output.c: moves what one stream has to the channel, as far as credit goes. */
enum flow { FLOW_MORE, FLOW_EMPTY, FLOW_ENDED };
enum flow pump(struct call *call, int fd, int stream);
bool takes_output(const struct call *call, int stream);
/* From now on the last bytes are sent, and no more are read; false when there are none. */
bool end_output(struct output *output);
uint64_t left_out(const struct output *output);
/* Answers how the call ended, and forgets it. */
void call_finish(struct call *call);
#endif
