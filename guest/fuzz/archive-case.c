/* One archive, unpacked below the root by a process of its own. */
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "../files/tar.h"
#include "fuzz.h"

static unsigned long endings[256];

static void fix_checksum(uint8_t *header) {
  memset(header + 148, ' ', 8);
  unsigned sum = 0;
  for (size_t i = 0; i < BLOCK; i++) sum += header[i];
  char digits[8];
  snprintf(digits, sizeof digits, "%06o", sum & 0777777);
  memcpy(header + 148, digits, 7);
}

static void append_padded(struct queue *to, const void *bytes, size_t length) {
  queue_append(to, bytes, length);
  static const uint8_t zeros[BLOCK];
  queue_append(to, zeros, (BLOCK - length % BLOCK) % BLOCK);
}

static void append_member(struct queue *to, char type, const char *name, const char *link, const void *data, size_t length) {
  struct tar_header header = {.type = type, .magic = "ustar", .version = {'0', '0'}};
  memcpy(header.name, name, strnlen(name, sizeof header.name));
  memcpy(header.link, link, strnlen(link, sizeof header.link));
  snprintf(header.mode, sizeof header.mode, "%07o", one_in(2) ? 0644u : 07777u);
  snprintf(header.size, sizeof header.size, "%011llo", (unsigned long long)(one_in(40) ? interesting_number() : length));
  if (one_in(20)) memcpy(header.prefix, "../prefix", 10);
  if (one_in(40)) memset(header.size, 0x80, 1);
  fix_checksum((uint8_t *)&header);
  queue_append(to, &header, sizeof header);
  append_padded(to, data, length);
}

static const char *any_name(void) {
  static const char *const names[] = {"f", "dir/f", "d/e/f", "../evil", "/evil", "d/../../evil", "l", "l/evil", "out/evil", "out-file", "", ".", "./x/",
                                      "self/f", "fifo", "loop/x", "in/f", "dir", "file/below"};
  return names[random_below(one_in(2) ? 3 : sizeof names / sizeof *names)];
}

static void append_records(struct queue *to) {
  static char long_name[5000];
  struct queue records = {0};
  for (uint32_t left = 1 + random_below(3); left > 0; left--) {
    static const char *const keys[] = {"path", "linkpath", "size", "mtime", "p", ""};
    char record[6000];
    const char *key = keys[random_below(6)], *value = any_name();
    if (one_in(4)) {
      size_t length = random_below(sizeof long_name - 1);
      for (size_t i = 0; i < length; i++) long_name[i] = i % 2 ? '/' : 'k';
      long_name[length] = 0;
      value = long_name;
    }
    if (strcmp(key, "size") == 0) value = one_in(2) ? "18446744073709551615" : "-1";
    size_t length = strlen(key) + strlen(value) + 3;
    length += length + 2 > 99 ? length + 3 > 999 ? 4 : 3 : 2;
    if (one_in(10)) length = random_below(20);
    /* More digits than the length counts. */
    int wrote = one_in(10) ? snprintf(record, sizeof record, "%012u ", 1 + random_below(11))
                           : snprintf(record, sizeof record, "%0*zu %s=%s\n", one_in(10) ? 12 : 1, length, key, value);
    queue_append(&records, record, (size_t)wrote);
  }
  if (one_in(4)) mutate(&records);
  append_member(to, one_in(10) ? 'g' : 'x', "pax", "", records.data + records.start, queue_length(&records));
  free(records.data);
}

static void make_archive(struct queue *to) {
  static const uint8_t data[3000];
  static const char *const links[] = {"f", "..", "/", "../outside", "/etc", "l", ""};
  for (uint32_t left = 1 + random_below(8); left > 0; left--) {
    static const char types[] = {'0', '0', '0', 0, '5', '2', '1', '3', '4', '6', 'L', '7'};
    char type = types[random_below(one_in(8) ? sizeof types : 6)];
    if (one_in(3)) append_records(to);
    append_member(to, type, any_name(), links[random_below(7)], data, type == '0' || type == 0 ? random_below(sizeof data) : 0);
  }
  static const uint8_t end[2 * BLOCK];
  if (!one_in(10)) queue_append(to, end, sizeof end);
  if (one_in(3)) return;
  mutate(to);
  for (size_t at = 0; one_in(2) && at + BLOCK <= queue_length(to); at += BLOCK)
    if (memcmp(to->data + to->start + at + 257, "ustar", 5) == 0) fix_checksum(to->data + to->start + at);
}

/* No unpacked file has a mode or a type that it must not have. */
static void check_names(const char *path, int depth) {
  int fd = open(path, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
  if (fd < 0 || depth > 3) {
    if (fd >= 0) close(fd);
    return;
  }
  static const char *const names[] = {"f", "dir", "d", "e", "x", "l"};
  for (size_t i = 0; i < sizeof names / sizeof *names; i++) {
    struct stat stat;
    char below[256];
    if (fstatat(fd, names[i], &stat, AT_SYMLINK_NOFOLLOW) != 0) continue;
    if (S_ISREG(stat.st_mode) && (stat.st_mode & 07000)) broken("an unpacked file has the mode %o", (unsigned)stat.st_mode);
    if (!S_ISREG(stat.st_mode) && !S_ISDIR(stat.st_mode) && !S_ISLNK(stat.st_mode)) broken("an unpacked file is of no plain kind");
    snprintf(below, sizeof below, "%s/%s", path, names[i]);
    if (S_ISDIR(stat.st_mode)) check_names(below, depth + 1);
  }
  close(fd);
}

static int make_file(void) {
  struct queue archive = {0};
  make_archive(&archive);
  int file = memfd_create("archive", MFD_CLOEXEC);
  size_t length = queue_length(&archive);
  if (file < 0 || (length && pwrite(file, archive.data + archive.start, length, 0) != (ssize_t)length)) broken("no file: %s", strerror(errno));
  free(archive.data);
  return file;
}

/* Several archives in one process: a fork costs more than an archive. */
void archive_case(void) {
  enum { TOGETHER = 24 };
  static uint8_t *codes;
  if (!codes) codes = mmap(NULL, TOGETHER, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
  if (codes == MAP_FAILED) broken("no memory: %s", strerror(errno));
  pid_t pid = fork();
  if (pid == 0) {
    alarm(CASE_SECONDS);
    int null = open("/dev/null", O_RDWR | O_CLOEXEC), root = open("root", O_PATH | O_DIRECTORY | O_CLOEXEC);
    dup2(null, 1);
    dup2(null, 2);
    for (int i = 0; i < TOGETHER; i++) {
      int file = make_file();
      dup2(file, 0);
      close(file);
      codes[i] = (uint8_t)tar_in(root, one_in(4) ? random_below(4000) : 1 << 20);
    }
    _exit(0);
  }
  int status = 0;
  if (pid < 0 || waitpid(pid, &status, 0) != pid) broken("no process: %s", strerror(errno));
  if (!WIFEXITED(status) || WEXITSTATUS(status) != 0) broken("unpacking ended with status %#x", (unsigned)status);
  for (int i = 0; i < TOGETHER; i++) {
    if (codes[i] > 133 && (codes[i] < TAR_ESCAPES || codes[i] > TAR_BROKEN)) broken("unpacking ended with %u, which means nothing", codes[i]);
    endings[codes[i]]++;
  }
  check_names("root", 0);
}

void report_archives(void) {
  for (int code = 0; code < 256; code++)
    if (endings[code]) printf("ended with %d: %lu\n", code, endings[code]);
}
