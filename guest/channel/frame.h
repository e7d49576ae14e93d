/* The byte protocol: frames in both directions over one channel. All numbers are little-endian. */
#ifndef GLOVEBOX_FRAME_H
#define GLOVEBOX_FRAME_H
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define PROTOCOL_VERSION 2u
#define EDITION 4u /* which requests the guest knows: 1 without those from 0x20 on and without WITH_COMBINED, 2 without absolute paths, 3 without those from 0x32 on; in the upper half of a byte of ANS_HELLO */
#define LINK_VERSION 2u /* of the letters and pieces of link.c */
#define HEADER_BYTES 13u /* u32 body length, u32 sequence number, u8 type, u32 call */
#define MAX_BODY (4u << 20)
#define DATA_BYTES (64u << 10)

enum request {
  REQ_START = 0x01,
  REQ_STDIN = 0x02,
  REQ_STDIN_END = 0x03,
  REQ_SIGNAL = 0x04,
  REQ_CREDIT = 0x05,
  REQ_RESIZE = 0x06,
  REQ_READ = 0x10,
  REQ_WRITE = 0x11,
  REQ_WRITE_STREAM = 0x12,
  REQ_STAT = 0x13,
  REQ_LIST = 0x14,
  REQ_REMOVE = 0x15,
  REQ_RENAME = 0x16,
  REQ_MAKE_DIRECTORY = 0x17,
  REQ_TAR_OUT = 0x18,
  REQ_TAR_IN = 0x19,
  REQ_FREEZE = 0x1a,
  REQ_THAW = 0x1b,
  REQ_LISTEN = 0x1c,
  /* edition 2 */
  REQ_LIST_ENTRIES = 0x20,
  REQ_STAT_TARGET = 0x21,
  REQ_REMOVE_DIRECTORY = 0x22,
  REQ_COPY = 0x23,
  REQ_APPEND = 0x24,
  REQ_APPEND_STREAM = 0x25,
  REQ_READ_RANGE = 0x26,
  REQ_CONNECT = 0x30,
  REQ_AWAIT_PORT = 0x31,
  /* edition 4 */
  REQ_LISTEN_AT = 0x32,
  REQ_STOP_LISTENING = 0x33,
  REQ_RESOLVE = 0x34,
  REQ_REPLY = 0x35,
};

enum answer {
  ANS_HELLO = 0x80,
  ANS_STARTED = 0x81,
  ANS_STDOUT = 0x82,
  ANS_STDERR = 0x83,
  ANS_EXIT = 0x84,
  ANS_FAIL = 0x85,
  ANS_RESULT = 0x86,
  ANS_STDIN_CREDIT = 0x87,
  ANS_ACCEPTED = 0x88,
  ANS_ENDED = 0x89,
  ANS_LEFT_OUT = 0x8a,
  ANS_QUERY = 0x8b,
};

/* Bits of the last byte of ANS_EXIT. */
enum exit_flag { EXIT_TIMED_OUT = 1, EXIT_OOM_KNOWN = 2, EXIT_OOM = 4 };

/* A growing byte queue: bytes are appended at the end and taken from the front. */
struct queue {
  uint8_t *data;
  size_t start, end, capacity;
};

struct frame {
  uint8_t type;
  uint32_t call;
  const uint8_t *body;
  uint32_t length;
};

/* Reads a frame's body. Once `bad` is set, every further read returns zero. */
struct reader {
  const uint8_t *at, *end;
  bool bad;
};

uint8_t *queue_room(struct queue *q, size_t bytes);
void queue_append(struct queue *q, const void *bytes, size_t length);
/* Frees the memory of a large frame as soon as the queue is empty. */
void queue_take(struct queue *q, size_t length);
/* Keeps it for the next one, until the queue is trimmed: to get it anew for each costs more than to fill it. */
void queue_use(struct queue *q, size_t length);
bool queue_is_wide(const struct queue *q);
void queue_trim(struct queue *q);
static inline size_t queue_length(const struct queue *q) { return q->end - q->start; }

/* 1: *out is a whole frame, valid until the next append; 0: more bytes are needed; -1: the peer broke the protocol. */
int frame_next(struct queue *in, uint32_t *sequence, struct frame *out);
void frame_put(struct queue *out, uint32_t *sequence, uint8_t type, uint32_t call, const void *body, size_t length);
/* The same without a copy: the body is written to the room, before anything else is put into the queue. */
uint8_t *frame_room(struct queue *out, size_t length);
void frame_put_room(struct queue *out, uint32_t *sequence, uint8_t type, uint32_t call, size_t length);

uint8_t read_u8(struct reader *r);
uint16_t read_u16(struct reader *r);
uint32_t read_u32(struct reader *r);
uint64_t read_u64(struct reader *r);
/* A string: u32 length, the bytes, a zero byte; no zero byte within. The result points into the frame. */
const char *read_string(struct reader *r);
/* u32 count and that many strings, as a null-terminated array to be freed. Null when bad. */
char **read_strings(struct reader *r);

uint32_t load_u32(const uint8_t *at);
uint64_t load_u64(const uint8_t *at);
void write_u32(uint8_t *at, uint32_t value);
void write_u64(uint8_t *at, uint64_t value);
#endif
