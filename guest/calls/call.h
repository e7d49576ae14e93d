/* One call, as the files in this folder see it. */
#ifndef GLOVEBOX_CALL_H
#define GLOVEBOX_CALL_H
#include "../guest.h"

#define WINDOW (256u << 10) /* bytes per stream that may be sent before credit is needed */
#define INPUT_WINDOW (4u << 20) /* the same for stdin, where the round trip is long */

/* One output stream: the first bytes go to the channel as they come; after that only the last ones are sent, at the end. */
struct output {
  uint32_t pass; /* how many more bytes go to the channel as they come; or KEEP_ALL */
  uint32_t tail; /* how many of the last bytes are sent at the end */
  uint8_t *ring;
  size_t size;
  uint64_t buffered, sent; /* bytes that came after the first ones; the position up to which they were sent or left out */
  bool ended;
};

struct call {
  uint32_t id;
  struct supervisor supervisor; /* pid 0: there is none, or it has exited */
  bool worker, ended, timed_out, input_ended, terminal, reading, killed, orphaned, connection, unfrozen;
  struct ending ending;
  int in, out, err;
  int read_error;
  int start_error; /* errno: why the command could not be started; 0: it was */
  uint32_t credit[3];
  struct output outputs[3];
  struct queue input;
  int64_t deadline, quiet_since, ended_at;
  int64_t oom_kills_before; /* count before the command started; negative: unknown */
  int64_t kill_at; /* when a supervisor that was asked to kill everything is killed itself; 0: never */
  struct pending_file *file;
  struct call *next;
};

extern struct call *calls;

void close_fd(int *fd);
void flush_input(struct call *call);
void call_kill(struct call *call);
/* output.c: moves bytes of one stream to the channel, as far as credit goes. */
enum flow { FLOW_MORE, FLOW_EMPTY, FLOW_ENDED };
enum flow pump(struct call *call, int fd, int stream);
bool takes_output(const struct call *call, int stream);
/* No more is read, and the last bytes are sent from now on. False when there are none. */
bool end_output(struct output *output);
uint64_t left_out(const struct output *output);
/* Answers how the call ended, and frees it. */
void call_finish(struct call *call);
#endif
