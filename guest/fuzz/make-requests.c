/* Request streams: honest ones, and honest ones with lies in them. */
#include <stdlib.h>
#include <string.h>

#include "fuzz.h"

#define WORLD "/place/elsewhere/"

static bool honest;

static bool lies(uint32_t chances) { return !honest && one_in(chances); }

static void append_string(struct queue *to, const char *text, size_t length) {
  append_u32(to, lies(60) ? interesting_number() : (uint32_t)length);
  queue_append(to, text, length);
  if (!lies(60)) queue_append(to, "", 1);
}

static void append_text(struct queue *to, const char *text) { append_string(to, text, strlen(text)); }

static void append_path(struct queue *to) {
  static const char *const paths[] = {"",        "file",     "dir",      "dir/file",  "new",       "new/deeper/still", "in/file", "in-file",
                                      "fifo",    "loop",     "dangling", "out",       "out/evil",  "out-file",         "self",    "self/self/file",
                                      "../evil", "/etc/evil", "dir/../file", "dir/../../evil", ".",  "..",              "dir/",    "a//b",
                                      "file/below", "big", "big", "t", "t/t",
                                      /* Absolute ones may follow any link, and nothing there leads to `outside`. */
                                      WORLD "file", WORLD "dir", WORLD "dir/file", WORLD "new/deeper", WORLD "in-file", WORLD "loop", WORLD "self/self/big",
                                      WORLD "fifo", "/", "/proc/self/root/etc", "/proc/self/mem"};
  char text[4200];
  switch (random_below(16)) {
    case 0: { /* as many parts as a path can have */
      size_t parts = 1 + random_below(one_in(20) ? 2090 : 60);
      for (size_t i = 0; i < parts; i++) memcpy(text + 2 * i, "p/", 2);
      append_string(to, text, 2 * parts - 1);
      return;
    }
    case 1:
      memset(text, 'n', sizeof text);
      append_string(to, text, 250 + random_below(one_in(4) ? 3900 : 10));
      return;
    case 2: {
      size_t length = random_below(40);
      for (size_t i = 0; i < length; i++) text[i] = (char)(1 + random_below(255));
      append_string(to, text, length);
      return;
    }
    default:
      append_text(to, paths[random_below(sizeof paths / sizeof *paths)]);
  }
}

static void append_command(struct queue *to) {
  static const char *const commands[][4] = {
      {"true"}, {"false"}, {"cat"}, {"missing-program"}, {"sleep", "5"}, {"sh", "-c", "echo out; echo err >&2; exit 3"},
      {"sh", "-c", "setsid sleep 5 & (sleep 5 &) ; exit 0"}, {"head", "-c", "400000", "/dev/zero"}, {"sh", "-c", "kill -9 $$"},
      {"bash", "-c", "exec 3<>/dev/tcp/127.0.0.1/40000; echo hi >&3; cat <&3"},
      {"bash", "-c", "for i in 1 2 3; do echo hi > /dev/udp/127.77.0.1/40001; done; head -c 700 /dev/zero > /dev/udp/127.77.0.1/40001"},
      {"bash", "-c", "exec 3<>/dev/tcp/127.77.0.2/40001; echo hi >&3; cat <&3"}, {"./file"}, {""}};
  const uint8_t flags = (uint8_t)(random_below(one_in(20) ? 256 : 4) | (one_in(3) ? 16 : 0) | (one_in(4) ? 32 : 0) | (one_in(3) ? 128 : 0));
  queue_append(to, &flags, 1);
  const uint16_t size[2] = {(uint16_t)random_below(200), (uint16_t)random_below(100)};
  queue_append(to, size, sizeof size);
  append_u32(to, one_in(3) ? random_below(20) : one_in(10) ? interesting_number() : 0);
  if (one_in(4)) append_path(to);
  else append_text(to, "");
  const char *const *command = commands[random_below(sizeof commands / sizeof *commands)];
  uint32_t count = 0;
  while (count < 4 && command[count]) count++;
  append_u32(to, lies(40) ? interesting_number() : count);
  for (uint32_t i = 0; i < count; i++) append_text(to, command[i]);
  append_u32(to, lies(40) ? interesting_number() : 1);
  append_text(to, "PATH=/usr/bin:/bin");
  if (!(flags & 16)) return;
  for (int stream = 0; stream < 2; stream++) append_u32(to, one_in(20) ? interesting_number() : random_below(one_in(2) ? 3 : 200000));
}

static void append_bytes(struct queue *to, uint32_t most) {
  uint32_t length = random_below(most);
  if (length > 0) memset(queue_room(to, length), 'd', length);
  to->end += length;
}

static void append_body(struct queue *to, uint8_t type) {
  /* None by which a crash would show. */
  static const uint8_t signals[] = {1, 2, 3, 9, 9, 9, 10, 12, 13, 15, 18, 19};
  const uint8_t byte = (uint8_t)random_below(256), stream = (uint8_t)(1 + random_below(2));
  switch (type) {
    case REQ_START:
      append_command(to);
      return;
    case REQ_STDIN:
      append_bytes(to, lies(20) ? DATA_BYTES + 2 : 5000);
      return;
    case REQ_STDIN_END:
    case REQ_FREEZE:
    case REQ_THAW:
      return;
    case REQ_LISTEN:
      queue_append(to, one_in(10) ? &(uint16_t){(uint16_t)interesting_number()} : &(uint16_t){40000}, 2);
      return;
    case REQ_CONNECT:
    case REQ_AWAIT_PORT:
      queue_append(to, lies(10) ? &(uint16_t){0} : one_in(4) ? &(uint16_t){1} : &(uint16_t){40000}, 2);
      if (type == REQ_AWAIT_PORT) append_u32(to, lies(20) ? interesting_number() : random_below(30));
      return;
    case REQ_LISTEN_AT:
    case REQ_STOP_LISTENING:
    case REQ_RESOLVE:
      append_u32(to, lies(20) ? interesting_number() : 0x7f4d0001 + random_below(3));
      queue_append(to, lies(20) ? &(uint16_t){0} : &(uint16_t){40001}, 2);
      return;
    case REQ_REPLY:
      append_u32(to, one_in(3) ? interesting_number() : random_below(3));
      append_bytes(to, one_in(5) ? 600 : 100);
      return;
    case REQ_SIGNAL:
      queue_append(to, lies(20) ? &(uint8_t){0} : &signals[random_below(sizeof signals)], 1);
      return;
    case REQ_CREDIT:
      queue_append(to, lies(20) ? &byte : &stream, 1);
      append_u32(to, one_in(3) ? interesting_number() : 65536);
      return;
    case REQ_RESIZE:
      append_u32(to, interesting_number());
      return;
    default:
      append_path(to);
  }
  if (type == REQ_WRITE || type == REQ_WRITE_STREAM || type == REQ_APPEND || type == REQ_APPEND_STREAM) append_u32(to, interesting_number());
  if (type == REQ_WRITE || type == REQ_APPEND) append_bytes(to, one_in(20) ? 300000 : 200);
  if (type == REQ_RENAME || type == REQ_COPY) append_path(to);
  if (type == REQ_REMOVE || type == REQ_COPY || type == REQ_LIST_ENTRIES) queue_append(to, one_in(2) ? &(uint8_t){0} : &byte, 1);
  if (type == REQ_READ_RANGE)
    for (int number = 0; number < 4; number++) append_u32(to, one_in(2) ? interesting_number() : 0);
  if (type == REQ_TAR_IN) append_u32(to, one_in(3) ? interesting_number() : 1);
}

bool make_requests(struct queue *out) {
  static const uint8_t types[] = {REQ_START, REQ_START, REQ_STDIN, REQ_STDIN, REQ_STDIN_END, REQ_SIGNAL, REQ_CREDIT, REQ_RESIZE,
                                  REQ_READ, REQ_WRITE, REQ_WRITE_STREAM, REQ_STAT, REQ_LIST, REQ_REMOVE, REQ_RENAME, REQ_MAKE_DIRECTORY,
                                  REQ_TAR_OUT, REQ_TAR_IN, REQ_FREEZE, REQ_THAW, REQ_LISTEN, REQ_LISTEN, REQ_LIST_ENTRIES, REQ_STAT_TARGET, REQ_REMOVE_DIRECTORY, REQ_COPY, REQ_APPEND,
                                  REQ_APPEND_STREAM, REQ_READ_RANGE, REQ_CONNECT, REQ_CONNECT, REQ_AWAIT_PORT, REQ_LISTEN_AT, REQ_LISTEN_AT, REQ_STOP_LISTENING, REQ_RESOLVE, REQ_REPLY};
  if (one_in(20)) {
    honest = false;
    for (uint32_t left = random_below(400); left > 0; left--) queue_append(out, &(uint8_t){(uint8_t)random_below(256)}, 1);
    return false;
  }
  honest = one_in(2);
  uint32_t sequence = 0, fresh = 1;
  for (uint32_t left = 1 + random_below(40); left > 0; left--) {
    uint8_t type = types[random_below(sizeof types)];
    bool opens = type == REQ_START || type >= REQ_READ;
    uint32_t call = opens && !lies(100) ? fresh++ : one_in(8) ? 0x80000000u : 1 + random_below(fresh);
    struct queue body = {0};
    append_body(&body, type);
    if (type != REQ_SIGNAL && lies(8)) mutate(&body);
    if (lies(100)) type = (uint8_t)random_below(256);
    if (lies(200)) sequence++;
    frame_put(out, &sequence, type, call, body.data ? body.data + body.start : NULL, queue_length(&body));
    free(body.data);
  }
  struct queue last = {0};
  append_text(&last, "");
  frame_put(out, &sequence, REQ_STAT, LAST_CALL, last.data, queue_length(&last));
  free(last.data);
  if (!lies(3)) return true;
  mutate(out);
  return false;
}
