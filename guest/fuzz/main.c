/* fuzz requests|archives SEED CASES SECONDS DIRECTORY: exits with 0 when nothing broke. DIRECTORY is empty and ours. */
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/stat.h>
#include <unistd.h>

#include "fuzz.h"

static uint64_t state, seed;
static unsigned long number;

static uint32_t next_random(void) {
  state ^= state >> 12;
  state ^= state << 25;
  state ^= state >> 27;
  return (uint32_t)((state * 2685821657736338717ull) >> 32);
}

uint32_t random_below(uint32_t bound) { return bound ? next_random() % bound : 0; }
bool one_in(uint32_t chances) { return random_below(chances) == 0; }

uint32_t interesting_number(void) {
  static const uint32_t numbers[] = {0, 1, 2, 4, 5, 13, 255, 256, 4095, 4096, DATA_BYTES, DATA_BYTES + 1, MAX_BODY - 1, MAX_BODY,
                                     MAX_BODY + 1, 0x7fffffff, 0x80000000, 0xfffffffb, 0xffffffff};
  return one_in(3) ? next_random() : numbers[random_below(sizeof numbers / sizeof *numbers)];
}

void append_u32(struct queue *to, uint32_t value) {
  uint8_t bytes[4];
  write_u32(bytes, value);
  queue_append(to, bytes, sizeof bytes);
}

static void change(struct queue *bytes) {
  size_t length = queue_length(bytes), at = random_below((uint32_t)length);
  size_t part = 1 + random_below((uint32_t)(length - at < 64 ? length - at : 64));
  uint8_t *data = bytes->data + bytes->start;
  switch (random_below(7)) {
    case 0:
      data[at] ^= (uint8_t)(1u << random_below(8));
      break;
    case 1:
      data[at] = (uint8_t)next_random();
      break;
    case 2:
      if (at + 4 <= length) write_u32(data + at, interesting_number());
      break;
    case 3: /* cut off */
      bytes->end = bytes->start + at;
      break;
    case 4: { /* repeat */
      uint8_t copy[64];
      if (part > sizeof copy) part = sizeof copy;
      memcpy(copy, data + at, part);
      queue_append(bytes, copy, part);
      break;
    }
    case 5: /* remove a part */
      if (at + part > length) part = length - at;
      memmove(data + at, data + at + part, length - at - part);
      bytes->end -= part;
      break;
    default:
      for (size_t i = 0; i < 1 + random_below(24); i++) queue_append(bytes, &(uint8_t){(uint8_t)next_random()}, 1);
  }
}

void mutate(struct queue *bytes) {
  for (uint32_t changes = 1 + random_below(4); changes > 0 && queue_length(bytes) > 0; changes--) change(bytes);
}

void broken(const char *format, ...) {
  va_list arguments;
  va_start(arguments, format);
  fprintf(stderr, "seed %llu case %lu: ", (unsigned long long)seed, number);
  vfprintf(stderr, format, arguments);
  fputc('\n', stderr);
  va_end(arguments);
  exit(1);
}

static void must(bool good, const char *what) {
  if (!good) broken("%s: %s", what, strerror(errno));
}

static void put(const char *path, const char *text) {
  int fd = open(path, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0644);
  must(fd >= 0 && write(fd, text, strlen(text)) == (ssize_t)strlen(text), path);
  close(fd);
}

/* A root with all kinds of names in it, beside a directory that nobody may touch. */
static void build_world(void) {
  must(mkdir("root", 0755) == 0 && mkdir("outside", 0755) == 0 && mkdir("../elsewhere", 0755) == 0, "mkdir");
  put("outside/canary", "untouched");
}

static void fill_root(void) {
  must(mkdir("root/dir", 0755) == 0 && mkfifo("root/fifo", 0644) == 0, "furnish");
  must(symlink("../outside", "root/out") == 0 && symlink("../outside/canary", "root/out-file") == 0, "furnish");
  must(symlink("loop", "root/loop") == 0 && symlink("nowhere", "root/dangling") == 0 && symlink("dir", "root/in") == 0, "furnish");
  must(symlink("dir/file", "root/in-file") == 0 && symlink(".", "root/self") == 0, "furnish");
  put("root/file", "content");
  put("root/dir/file", "more");
}

static void check_outside(void) {
  char text[32] = "";
  int fd = open("outside/canary", O_RDONLY | O_CLOEXEC);
  if (fd < 0 || read(fd, text, sizeof text - 1) != 9 || strcmp(text, "untouched") != 0) broken("a file outside the root was changed");
  close(fd);
  int names = 0;
  for (const char *const *at = (const char *const[]){".", "outside", NULL}; *at; at++) {
    DIR *directory = opendir(*at);
    must(directory, *at);
    while (readdir(directory)) names++;
    closedir(directory);
  }
  if (names != 2 * 2 + 3) broken("a name was made or removed outside the root");
}

static void empty(const char *path) {
  int directory = open(path, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
  int error = directory < 0 ? errno : remove_contents(directory);
  if (error) broken("%s cannot be emptied: %s", path, strerror(error));
  close(directory);
}

static void empty_root(void) {
  empty("root");
  fill_root();
  empty("../elsewhere");
  must(mkdir("../elsewhere/dir", 0755) == 0 && symlink("loop", "../elsewhere/loop") == 0 && mkfifo("../elsewhere/fifo", 0644) == 0, "furnish");
  must(symlink("/place/elsewhere/dir/file", "../elsewhere/in-file") == 0 && symlink(".", "../elsewhere/self") == 0, "furnish");
  put("../elsewhere/file", "content");
  put("../elsewhere/dir/file", "more");
}

/* The file process has no environment to get these from. */
const char *__asan_default_options(void);
const char *__asan_default_options(void) { return "exitcode=86:detect_leaks=0:allocator_may_return_null=1:log_path=/place/sanitizer"; }

int main(int argc, char **argv) {
  if (argc == 2 && strcmp(argv[1], "serve-files") == 0) return serve_files_main();
  if (argc != 6) return 2;
  bool requests = strcmp(argv[1], "requests") == 0;
  seed = strtoull(argv[2], NULL, 10);
  unsigned long cases = strtoul(argv[3], NULL, 10);
  int64_t end = now_ms() + 1000 * strtol(argv[4], NULL, 10);
  must(chdir(argv[5]) == 0, argv[5]);
  signal(SIGPIPE, SIG_IGN);
  prctl(PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0);
  build_world();
  for (; number < cases && now_ms() < end; number++) {
    state = (seed * 1000003 + number) * 0x9e3779b97f4a7c15ull | 1;
    if (number % 25 == 0) empty_root();
    if (requests) request_case();
    else archive_case();
    check_outside();
  }
  empty_root();
  printf("cases %lu\n", number);
  if (requests) report_requests();
  else report_archives();
  return 0;
}
