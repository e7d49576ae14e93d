/* compare-index INDEX TREE-ID TREE MAX: prints the paths of a tree that may differ from a git index, each ended by a zero byte.
 * An INDEX of the form "-SECONDS" is read from stdin, and was written at that time. A directory that the index does not have, or
 * that is gone, stands for everything in it. The index is the host's, and must be exactly that of the tree object TREE-ID. The
 * tree is hostile: every name is looked up in its directory, no link is followed, no file is opened.
 *
 * Git compares whole seconds, so it has to read every file written in the same second as the index. The change time (ctime) has
 * nanoseconds, and no program can set it. */
#include <endian.h>
#include <errno.h>
#include <fcntl.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include "../guest.h"
#include "changed-paths.h"

#define MAX_DEPTH 200
#define FLAGS_BUT_LENGTH 0xf000
#define GITLINK 0160000

struct entry {
  const unsigned char *data; /* ten 32-bit numbers, the object id, the flags, the name */
  const char *name;
  size_t length;
};

struct span {
  size_t from, to;
};

#define MAX_WORKERS 4
#define ENTRIES_PER_WORKER 5000 /* fewer are not worth a process */

static struct entry *entries;
static char path[1 << 16];
static size_t workers = 1, own_worker;
static time_t index_time;
static bool refuses_nested_git;

static uint32_t read_be32(const unsigned char *data) {
  uint32_t value;
  memcpy(&value, data, sizeof value);
  return be32toh(value);
}

/* Whether the tree object that the index has for all of its entries is this one. */
static bool is_of_tree(const unsigned char *data, const unsigned char *end, size_t count, const char *id) {
  size_t id_length = strlen(id) / 2;
  while (end - data >= 8) {
    uint32_t size = read_be32(data + 4);
    if ((size_t)(end - data - 8) < size) return false;
    /* An extension whose name starts with a capital letter may be ignored. */
    if (memcmp(data, "TREE", 4) != 0 && (data[0] < 'A' || data[0] > 'Z')) return false;
    if (memcmp(data, "TREE", 4) == 0) {
      char head[64];
      int length = snprintf(head, sizeof head, "%zu ", count);
      const unsigned char *text = data + 8, *line = memchr(text, '\n', size);
      if (!line || text[0] != 0 || line - text <= length || memcmp(text + 1, head, (size_t)length) != 0) return false;
      if ((size_t)(text + size - line - 1) < id_length) return false;
      for (size_t i = 0; i < id_length; i++) {
        char hex[3];
        snprintf(hex, sizeof hex, "%02x", line[1 + i]);
        if (memcmp(hex, id + 2 * i, 2) != 0) return false;
      }
      return true;
    }
    data += 8 + size;
  }
  return false;
}

static const unsigned char *map_file(const char *file, size_t *size) {
  struct stat found;
  int fd = open(file, O_RDONLY | O_CLOEXEC | O_NOFOLLOW);
  if (fd < 0 || fstat(fd, &found) < 0) exit_needs_git();
  index_time = found.st_mtime;
  *size = (size_t)found.st_size;
  return mmap(NULL, *size, PROT_READ, MAP_PRIVATE, fd, 0);
}

static const unsigned char *read_stdin(size_t *size) {
  size_t room = 1 << 16;
  unsigned char *data = malloc(room);
  *size = 0;
  for (ssize_t got; data && (got = read(0, data + *size, room - *size)) != 0;) {
    if (got < 0) exit_needs_git();
    *size += (size_t)got;
    if (*size == room) data = realloc(data, room *= 2);
  }
  return data ? data : MAP_FAILED;
}

static size_t read_index(const char *file, const char *id) {
  size_t id_length = strlen(id) / 2, size;
  if (file[0] == '-') index_time = atoll(file + 1);
  const unsigned char *data = file[0] == '-' ? read_stdin(&size) : map_file(file, &size);
  if (data == MAP_FAILED || size < 12 + id_length) exit_needs_git();
  const unsigned char *end = data + size - id_length;
  if (memcmp(data, "DIRC", 4) != 0 || read_be32(data + 4) != 2) exit_needs_git();
  size_t count = read_be32(data + 8), head = 40 + id_length + 2;
  entries = calloc(count + 1, sizeof *entries);
  if (!entries) exit_needs_git();
  const unsigned char *at = data + 12;
  for (size_t i = 0; i < count; i++) {
    if ((size_t)(end - at) < head + 1) exit_needs_git();
    const unsigned char *stop = memchr(at + head, 0, (size_t)(end - at) - head);
    /* Conflicts, and entries that the user told git to ignore, need git itself. */
    if (!stop || ((at[head - 2] << 8) & FLAGS_BUT_LENGTH)) exit_needs_git();
    size_t length = (size_t)(stop - at) - head;
    entries[i] = (struct entry){at, (const char *)at + head, length};
    size_t padded = (head + length + 8) & ~(size_t)7;
    if ((size_t)(end - at) < padded) exit_needs_git();
    at += padded;
  }
  if (!is_of_tree(at, end, count, id)) exit_needs_git();
  return count;
}

/* Whether a file is, to the nanosecond, the one that the index describes. */
static bool is_same(const struct entry *entry, const struct stat *now) {
  const unsigned char *data = entry->data;
  uint32_t mode = read_be32(data + 24), seconds = read_be32(data + 8), nanoseconds = read_be32(data + 12);
  uint32_t kind = S_ISREG(now->st_mode) ? (now->st_mode & 0100 ? 0100755 : 0100644) : now->st_mode & S_IFMT;
  if (mode != kind || mode == GITLINK || read_be32(data + 36) != (uint32_t)now->st_size) return false;
  /* If the index has whole seconds only, a file written in the same second may have been changed afterwards. */
  if (nanoseconds == 0 && read_be32(data + 4) == 0 && (time_t)seconds >= index_time) return false;
  return seconds == (uint32_t)now->st_mtim.tv_sec && nanoseconds == (uint32_t)now->st_mtim.tv_nsec &&
         read_be32(data) == (uint32_t)now->st_ctim.tv_sec && read_be32(data + 4) == (uint32_t)now->st_ctim.tv_nsec;
}

/* The first entry that does not sort before `path`. */
static const struct entry *find_entry(struct span in, size_t length) {
  size_t end = in.to;
  while (in.from < in.to) {
    size_t middle = in.from + (in.to - in.from) / 2;
    const struct entry *entry = &entries[middle];
    int order = memcmp(entry->name, path, entry->length < length ? entry->length : length);
    if (order < 0 || (order == 0 && entry->length < length)) in.from = middle + 1;
    else in.to = middle;
  }
  return in.from < end ? &entries[in.from] : NULL;
}

/* Whether the index has this path, or anything below it. */
static bool is_known(struct span in, size_t length) {
  const struct entry *file = find_entry(in, length);
  if (file && file->length == length && memcmp(file->name, path, length) == 0) return true;
  path[length] = '/';
  const struct entry *below = find_entry(in, length + 1);
  return below && below->length > length && memcmp(below->name, path, length + 1) == 0;
}

static void walk(int directory, size_t length, struct span in, int depth);

/* Compares what the index has in a directory. */
static void compare_known(int directory, size_t length, struct span in, int depth, bool is_ours) {
  for (size_t i = in.from; i < in.to;) {
    const struct entry *entry = &entries[i];
    const char *name = entry->name + length, *slash = memchr(name, '/', entry->length - length);
    size_t end = slash ? (size_t)(slash - entry->name) : entry->length;
    if (end + 1 >= sizeof path) exit_needs_git();
    memcpy(path + length, name, end - length);
    path[end] = 0;
    if (!slash && !is_ours) {
      i++;
      continue;
    }
    if (!slash) {
      struct stat now;
      int answer = fstatat(directory, path + length, &now, AT_SYMLINK_NOFOLLOW);
      if (answer < 0 && errno != ENOENT && errno != ENOTDIR) exit_needs_git();
      if (answer < 0 || !is_same(entry, &now)) add_changed_path(path, end);
      i++;
      continue;
    }
    struct span below = {i, i};
    while (below.to < in.to && entries[below.to].length > end && memcmp(entries[below.to].name, entry->name, end + 1) == 0) below.to++;
    int next = openat(directory, path + length, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
    if (next < 0 && errno != ENOENT && errno != ENOTDIR && errno != ELOOP) exit_needs_git();
    if (next < 0 && is_ours) add_changed_path(path, end);
    if (next >= 0) {
      path[end] = '/';
      walk(next, end + 1, below, depth + 1);
      close(next);
    }
    i = below.to;
  }
}

/* Finds what is in a directory but not in the index. */
static void find_unknown(int directory, size_t length, struct span in) {
  _Alignas(8) char buffer[1 << 15];
  for (long size; (size = syscall(SYS_getdents64, directory, buffer, sizeof buffer)) != 0;) {
    if (size < 0) exit_needs_git();
    for (long at = 0; at < size;) {
      const struct directory_record *record = (const struct directory_record *)(buffer + at);
      at += record->size;
      const char *name = record->name;
      if (strcmp(name, ".") == 0 || strcmp(name, "..") == 0) continue;
      bool is_git = strcmp(name, ".git") == 0;
      if (is_git && refuses_nested_git && length > 0) exit_needs_git();
      if (is_git) continue;
      size_t end = length + strlen(name);
      if (end + 1 >= sizeof path) exit_needs_git();
      memcpy(path + length, name, end - length);
      if (!is_known(in, end)) add_changed_path(path, end);
    }
  }
}

static void walk(int directory, size_t length, struct span in, int depth) {
  if (depth > MAX_DEPTH) exit_needs_git();
  /* Decided by the index alone: changes made to the tree meanwhile must not change which worker looks at a directory. */
  bool is_ours = ((uint32_t)in.from * 2654435761u >> 16) % workers == own_worker;
  if (is_ours) find_unknown(directory, length, in);
  compare_known(directory, length, in, depth, is_ours);
}

/* Forks processes that share the directories; `from` gets a pipe from each of them. */
static void fork_workers(size_t count, int from[MAX_WORKERS]) {
  long cores = sysconf(_SC_NPROCESSORS_ONLN);
  workers = 1 + count / ENTRIES_PER_WORKER;
  if (workers > MAX_WORKERS) workers = MAX_WORKERS;
  if (cores > 0 && workers > (size_t)cores) workers = (size_t)cores;
  for (size_t other = 1; other < workers; other++) {
    int ends[2];
    pid_t pid = pipe2(ends, O_CLOEXEC) == 0 ? fork() : -1;
    if (pid < 0) exit_needs_git();
    close(ends[pid > 0]);
    from[other] = ends[pid == 0];
    if (pid > 0) continue;
    own_worker = other;
    return;
  }
}

/* Adds the paths that another process has found. */
static void add_paths_of_worker(int from) {
  static char found[sizeof changed_paths];
  size_t length = 0;
  for (ssize_t got; (got = read(from, found + length, sizeof found - length)) != 0; length += (size_t)got)
    if (got < 0) exit_needs_git();
  int status;
  if (wait(&status) < 0 || !WIFEXITED(status) || WEXITSTATUS(status) != 0) exit_needs_git();
  for (char *each = found, *end; each < found + length; each = end + 1) {
    end = memchr(each, 0, (size_t)(found + length - each));
    if (!end) exit_needs_git();
    add_changed_path(each, (size_t)(end - each));
  }
}

int compare_index(int argc, char **argv, bool refuse_nested_git) {
  int root = argc == 4 ? open(argv[2], O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC) : -1;
  if (root < 0) return root;
  size_t count = read_index(argv[0], argv[1]);
  int from[MAX_WORKERS];
  refuses_nested_git = refuse_nested_git;
  changed_paths_left = atol(argv[3]);
  fork_workers(count, from);
  walk(root, 0, (struct span){0, count}, 0);
  if (own_worker > 0) _exit(write_all(from[own_worker], changed_paths, changed_paths_length) ? 0 : EXIT_NEEDS_GIT);
  for (size_t other = 1; other < workers; other++) add_paths_of_worker(from[other]);
  return root;
}

int compare_index_main(int argc, char **argv) { return compare_index(argc, argv, false) >= 0 && write_all(1, changed_paths, changed_paths_length) ? 0 : 125; }
