/* The entries of a directory, with or without a description of each, read as a stream of records. */
#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "../guest.h"

#define PART_BYTES (32u << 10)
#define DETAILS_BYTES 19u /* u8 kind, u16 permission bits, u64 size, u64 ms */

/* As the kernel gives them. A record is never longer than the entry that it is made from. */
struct entry {
  uint64_t inode, offset;
  uint16_t length;
  uint8_t type;
  char name[];
} __attribute__((packed));
_Static_assert(sizeof(struct entry) == DETAILS_BYTES, "a record fits where its entry was");

struct listing {
  bool details;
  size_t at, end; /* of the records that have not been read yet */
  uint8_t records[PART_BYTES];
};

struct listing *listing_new(bool details) {
  struct listing *listing = malloc(sizeof *listing);
  if (!listing) return NULL;
  listing->details = details;
  listing->at = listing->end = 0;
  return listing;
}

/* False when the entry has gone meanwhile, or, with errno set, cannot be described. */
static bool put_details(struct listing *listing, int directory, const char *name) {
  struct stat stat;
  if (fstatat(directory, name, &stat, AT_SYMLINK_NOFOLLOW) != 0) {
    if (errno == ENOENT) errno = 0;
    return false;
  }
  uint8_t *to = listing->records + listing->end;
  uint32_t mode = (uint32_t)stat.st_mode & 07777;
  to[0] = file_kind(stat.st_mode);
  to[1] = (uint8_t)mode;
  to[2] = (uint8_t)(mode >> 8);
  write_u64(to + 3, (uint64_t)stat.st_size);
  write_u64(to + 11, (uint64_t)((int64_t)stat.st_mtim.tv_sec * 1000 + stat.st_mtim.tv_nsec / 1000000));
  listing->end += DETAILS_BYTES;
  return true;
}

static bool put_record(struct listing *listing, int directory, const char *name) {
  errno = 0;
  if (strcmp(name, ".") == 0 || strcmp(name, "..") == 0) return true;
  if (listing->details && !put_details(listing, directory, name)) return errno == 0;
  size_t length = strlen(name);
  if (length > 255) return true; /* no name that a call could take */
  listing->records[listing->end++] = (uint8_t)length;
  memcpy(listing->records + listing->end, name, length);
  listing->end += length;
  return true;
}

/* 1: there are records; 0: there are no more; -1: errno. */
static int refill(struct listing *listing, int directory) {
  static uint8_t entries[PART_BYTES] __attribute__((aligned(8)));
  listing->at = listing->end = 0;
  while (listing->end == 0) {
    long got = syscall(SYS_getdents64, directory, entries, sizeof entries);
    if (got <= 0) return (int)got;
    for (long at = 0; at < got;) {
      const struct entry *entry = (const struct entry *)(entries + at);
      if (!put_record(listing, directory, entry->name)) return -1;
      at += entry->length;
    }
  }
  return 1;
}

ssize_t listing_read(struct listing *listing, int directory, uint8_t *to, size_t room) {
  size_t length = 0;
  while (length < room) {
    if (listing->at == listing->end) {
      int more = refill(listing, directory);
      if (more < 0) return -1;
      if (more == 0) break;
    }
    size_t part = listing->end - listing->at < room - length ? listing->end - listing->at : room - length;
    memcpy(to + length, listing->records + listing->at, part);
    listing->at += part;
    length += part;
  }
  return (ssize_t)length;
}
