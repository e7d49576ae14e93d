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

/* A connection that is being opened to a server in the sandbox, or was. */
enum reach_state { REACH_DONE, REACH_CONNECT, REACH_AWAIT };
struct reach {
  enum reach_state state;
  uint16_t port; /* 0: the call is no such connection */
  uint8_t tried; /* how many of the two addresses */
  bool ready;    /* the attempt in `in` has ended */
  int error;     /* why the first one failed */
  int64_t retry_at;
};

struct call {
  uint32_t id;
  struct supervisor supervisor; /* pid 0: there is none, or it has exited */
  bool worker, ended, timed_out, input_ended, terminal, reading, killed, orphaned, connection, unfrozen, entering;
  struct ending ending;
  int in, out, err;
  int read_error;
  int start_error; /* errno: why the command could not be started; 0: it was */
  uint32_t credit[3];
  struct output outputs[3];
  uint64_t sent_at; /* which of all pieces of output was its last */
  struct queue input;
  int64_t deadline, quiet_since, ended_at;
  int64_t oom_kills_before; /* count before the command started; negative: unknown */
  int64_t kill_at; /* when a supervisor that was asked to kill everything is killed itself; 0: never */
  struct pending_file *file;
  struct reach reach;
  struct listing *listing; /* what is read, if it is a directory */
  uint64_t read_left; /* how much more of a file is read */
  int undo_parent; /* where the worker's unfinished work is removed; -1: nowhere */
  char undo_name[TEMPORARY_NAME];
  struct call *next;
};

extern struct call *calls;

void close_fd(int *fd);
void flush_input(struct call *call);
void call_kill(struct call *call);
/* Starts the process that removes a failed worker's work. */
void undo_work(struct call *call);
/* output.c: moves bytes of one stream to the channel, as far as credit goes. */
enum flow { FLOW_MORE, FLOW_EMPTY, FLOW_ENDED };
enum flow pump(struct call *call, int fd, int stream);
bool takes_output(const struct call *call, int stream);
/* No more is read, and the last bytes are sent from now on. False when there are none. */
bool end_output(struct output *output);
uint64_t left_out(const struct output *output);
/* ../channel/reach.c: goes on with an attempt, and may free the call. Returns the ms until it must be looked at again, or -1. */
int settle_reach(struct call *call, int64_t now);
/* Whatever the other side has not read is lost when the connection is closed. */
void reset_connection(const struct call *call);
/* Answers how the call ended, and frees it. */
void call_finish(struct call *call);
#endif
