/* A library that is loaded before the C library and lets the n-th change of a file below a directory fail, once or from then on.
 * FAULTY_IO_BELOW names the directory, FAULTY_IO a file of three numbers: which change fails (0: none), whether all later ones do too, and
 * how many there have been. */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <stdarg.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/types.h>
#include <sys/uio.h>
#include <unistd.h>

static struct plan {
  _Atomic long fails;
  _Atomic long lasting;
  _Atomic long count;
} *plan;

__attribute__((constructor)) static void begin(void) {
  const char *path = getenv("FAULTY_IO");
  int file = path ? open(path, O_RDWR | O_CLOEXEC) : -1;
  if (file < 0) return;
  void *memory = mmap(NULL, sizeof *plan, PROT_READ | PROT_WRITE, MAP_SHARED, file, 0);
  if (memory != MAP_FAILED) plan = memory;
}

static int concerned(const char *path) {
  const char *below = getenv("FAULTY_IO_BELOW");
  return plan && below && path && strncmp(path, below, strlen(below)) == 0;
}

static int fails(const char *path) {
  if (!concerned(path)) return 0;
  long count = atomic_fetch_add(&plan->count, 1) + 1;
  long wanted = plan->fails;
  if (wanted == 0 || count < wanted || (count > wanted && !plan->lasting)) return 0;
  errno = EIO;
  return 1;
}

static int file_fails(int file) {
  char link[64], path[4096];
  int before = errno;
  snprintf(link, sizeof link, "/proc/self/fd/%d", file);
  ssize_t length = readlink(link, path, sizeof path - 1);
  errno = before;
  if (length < 0) return 0;
  path[length] = 0;
  return fails(path);
}

#define REAL(name) ((__typeof__(&name))dlsym(RTLD_NEXT, #name))

ssize_t write(int file, const void *bytes, size_t size) { return file_fails(file) ? -1 : REAL(write)(file, bytes, size); }
ssize_t writev(int file, const struct iovec *parts, int count) {
  return file_fails(file) ? -1 : REAL(writev)(file, parts, count);
}
ssize_t pwrite(int file, const void *bytes, size_t size, off_t at) {
  return file_fails(file) ? -1 : REAL(pwrite)(file, bytes, size, at);
}
ssize_t pwrite64(int file, const void *bytes, size_t size, off64_t at) {
  return file_fails(file) ? -1 : REAL(pwrite64)(file, bytes, size, at);
}
int fsync(int file) { return file_fails(file) ? -1 : REAL(fsync)(file); }
int fdatasync(int file) { return file_fails(file) ? -1 : REAL(fdatasync)(file); }
int rename(const char *from, const char *to) { return fails(to) ? -1 : REAL(rename)(from, to); }
int link(const char *from, const char *to) { return fails(to) ? -1 : REAL(link)(from, to); }
int mkdir(const char *path, mode_t mode) { return fails(path) ? -1 : REAL(mkdir)(path, mode); }
int unlink(const char *path) { return fails(path) ? -1 : REAL(unlink)(path); }
