#include "frame.h"

#include <stdlib.h>
#include <string.h>
#include <unistd.h>

/* Without memory we exit. That closes the channel and ends everything in the sandbox. */
static void *must_allocate(void *old, size_t bytes) {
  void *memory = realloc(old, bytes);
  if (!memory) _exit(70);
  return memory;
}

uint8_t *queue_room(struct queue *q, size_t bytes) {
  if (q->start == q->end) q->start = q->end = 0;
  if (q->end + bytes > q->capacity && q->start > 0) {
    memmove(q->data, q->data + q->start, q->end - q->start);
    q->end -= q->start;
    q->start = 0;
  }
  if (q->end + bytes > q->capacity) {
    size_t capacity = q->capacity ? q->capacity : 4096;
    while (capacity < q->end + bytes) capacity *= 2;
    q->data = must_allocate(q->data, capacity);
    q->capacity = capacity;
  }
  return q->data + q->end;
}

void queue_append(struct queue *q, const void *bytes, size_t length) {
  if (length == 0) return;
  memcpy(queue_room(q, length), bytes, length);
  q->end += length;
}

void queue_use(struct queue *q, size_t length) {
  q->start += length;
  if (q->start == q->end) q->start = q->end = 0;
}

bool queue_is_wide(const struct queue *q) { return q->capacity > 4 * DATA_BYTES; }

void queue_trim(struct queue *q) {
  if (queue_length(q) > 0 || !queue_is_wide(q)) return;
  free(q->data);
  *q = (struct queue){0};
}

void queue_take(struct queue *q, size_t length) {
  queue_use(q, length);
  queue_trim(q);
}

uint32_t load_u32(const uint8_t *at) {
  return (uint32_t)at[0] | (uint32_t)at[1] << 8 | (uint32_t)at[2] << 16 | (uint32_t)at[3] << 24;
}

uint64_t load_u64(const uint8_t *at) { return load_u32(at) | (uint64_t)load_u32(at + 4) << 32; }

void write_u32(uint8_t *at, uint32_t value) {
  for (int i = 0; i < 4; i++) at[i] = (uint8_t)(value >> (8 * i));
}

void write_u64(uint8_t *at, uint64_t value) {
  for (int i = 0; i < 8; i++) at[i] = (uint8_t)(value >> (8 * i));
}

int frame_next(struct queue *in, uint32_t *sequence, struct frame *out) {
  if (queue_length(in) < HEADER_BYTES) return 0;
  const uint8_t *header = in->data + in->start;
  uint32_t length = load_u32(header);
  if (length > MAX_BODY || load_u32(header + 4) != *sequence) return -1;
  if (queue_length(in) < HEADER_BYTES + (size_t)length) return 0;
  *sequence += 1;
  out->type = header[8];
  out->call = load_u32(header + 9);
  out->body = header + HEADER_BYTES;
  out->length = length;
  return 1;
}

uint8_t *frame_room(struct queue *out, size_t length) { return queue_room(out, HEADER_BYTES + length) + HEADER_BYTES; }

void frame_put_room(struct queue *out, uint32_t *sequence, uint8_t type, uint32_t call, size_t length) {
  uint8_t *header = out->data + out->end;
  write_u32(header, (uint32_t)length);
  write_u32(header + 4, (*sequence)++);
  header[8] = type;
  write_u32(header + 9, call);
  out->end += HEADER_BYTES + length;
}

void frame_put(struct queue *out, uint32_t *sequence, uint8_t type, uint32_t call, const void *body, size_t length) {
  uint8_t *room = frame_room(out, length);
  if (length) memcpy(room, body, length);
  frame_put_room(out, sequence, type, call, length);
}

static const uint8_t *read_bytes(struct reader *r, size_t length) {
  if (r->bad || (size_t)(r->end - r->at) < length) {
    r->bad = true;
    return NULL;
  }
  const uint8_t *bytes = r->at;
  r->at += length;
  return bytes;
}

uint8_t read_u8(struct reader *r) {
  const uint8_t *bytes = read_bytes(r, 1);
  return bytes ? bytes[0] : 0;
}

uint16_t read_u16(struct reader *r) {
  const uint8_t *bytes = read_bytes(r, 2);
  return bytes ? (uint16_t)(bytes[0] | bytes[1] << 8) : 0;
}

uint32_t read_u32(struct reader *r) {
  const uint8_t *bytes = read_bytes(r, 4);
  return bytes ? load_u32(bytes) : 0;
}

uint64_t read_u64(struct reader *r) {
  uint64_t low = read_u32(r);
  return low | (uint64_t)read_u32(r) << 32;
}

const char *read_string(struct reader *r) {
  uint32_t length = read_u32(r);
  const uint8_t *bytes = read_bytes(r, (size_t)length + 1);
  if (!bytes || bytes[length] != 0 || memchr(bytes, 0, length)) {
    r->bad = true;
    return "";
  }
  return (const char *)bytes;
}

char **read_strings(struct reader *r) {
  uint32_t count = read_u32(r);
  /* Every string takes at least five bytes, so a larger count is a lie and gets no memory. */
  if (r->bad || count > (size_t)(r->end - r->at) / 5) {
    r->bad = true;
    return NULL;
  }
  char **strings = must_allocate(NULL, ((size_t)count + 1) * sizeof *strings);
  for (uint32_t i = 0; i < count; i++) strings[i] = (char *)(uintptr_t)read_string(r);
  strings[count] = NULL;
  if (!r->bad) return strings;
  free(strings);
  return NULL;
}
