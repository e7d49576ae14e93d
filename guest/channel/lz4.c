/* Compression in the LZ4 block format: greedy, one pass, for blocks of at most 64 KiB. */
#include <string.h>

#include "../guest.h"

#define HASH_BITS 12
#define MIN_MATCH 4
#define TAIL 12 /* the format wants the last bytes uncompressed */

static uint32_t load_4(const uint8_t *at) {
  uint32_t value;
  memcpy(&value, at, sizeof value);
  return value;
}

static uint8_t *put_length(uint8_t *to, size_t length) {
  for (; length >= 255; length -= 255) *to++ = 255;
  *to++ = (uint8_t)length;
  return to;
}

static uint8_t *put_sequence(uint8_t *to, const uint8_t *literals, size_t count, size_t match, size_t offset) {
  size_t code = match ? match - MIN_MATCH : 0;
  *to++ = (uint8_t)((count < 15 ? count : 15) << 4 | (code < 15 ? code : 15));
  if (count >= 15) to = put_length(to, count - 15);
  memcpy(to, literals, count);
  to += count;
  if (!match) return to;
  *to++ = (uint8_t)offset;
  *to++ = (uint8_t)(offset >> 8);
  return code >= 15 ? put_length(to, code - 15) : to;
}

size_t lz4_compress(const uint8_t *from, size_t length, uint8_t *to) {
  uint16_t seen[1 << HASH_BITS] = {0};
  uint8_t *start = to;
  size_t at = 1, anchor = 0;
  while (length > TAIL && at < length - TAIL) {
    uint32_t hash = load_4(from + at) * 2654435761u >> (32 - HASH_BITS);
    size_t before = seen[hash];
    seen[hash] = (uint16_t)at;
    if (before >= at || load_4(from + before) != load_4(from + at)) {
      at++;
      continue;
    }
    size_t match = MIN_MATCH;
    while (at + match < length - TAIL && from[before + match] == from[at + match]) match++;
    to = put_sequence(to, from + anchor, at - anchor, match, at - before);
    at += match;
    anchor = at;
  }
  return (size_t)(put_sequence(to, from + anchor, length - anchor, 0, 0) - start);
}
