/* Files beneath one root, or, by an absolute path, anywhere in the sandbox. Commands can swap any name for a link at any time, so every
 * lookup is done by the kernel, with openat2. */
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <linux/openat2.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/random.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "../guest.h"

static int root = -1;
static int sandbox_root = -1; /* the root of the file system, where absolute paths may be used */

int files_open_root(const char *path) {
  root = open(path, O_PATH | O_DIRECTORY | O_CLOEXEC);
  return root < 0 ? -errno : 0;
}

void files_use_root(int directory) { root = directory; }

int files_allow_absolute(void) {
  sandbox_root = open("/", O_PATH | O_DIRECTORY | O_CLOEXEC);
  return sandbox_root < 0 ? -errno : 0;
}

static bool is_absolute(const char *path) { return *path == '/'; }

/* The kernel returns EXDEV when a path leads outside, and EAGAIN when something was renamed meanwhile. An absolute path leads nowhere
 * outside; for it ELOOP is a loop, or a link of /proc to what a process has open. */
static int open_beneath(const char *path, uint64_t flags) {
  bool absolute = is_absolute(path);
  int from = absolute ? sandbox_root : root;
  if (from < 0) return -ESCAPES;
  struct open_how how = {.flags = flags | O_CLOEXEC, .resolve = (absolute ? RESOLVE_IN_ROOT : RESOLVE_BENEATH) | RESOLVE_NO_MAGICLINKS};
  if (*path == 0) { /* the root itself, without any lookup */
    int fd = openat(root, ".", (int)how.flags);
    return fd < 0 ? -errno : fd;
  }
  for (int attempt = 0; attempt < 256; attempt++) {
    long fd = syscall(SYS_openat2, from, path, &how, sizeof how);
    if (fd >= 0) return (int)fd;
    if (errno != EAGAIN && errno != EINTR) break;
  }
  return errno == EXDEV || (errno == ELOOP && !absolute) ? -ESCAPES : -errno;
}

int files_open_directory(const char *path) { return open_beneath(path, O_PATH | O_DIRECTORY); }

int files_open_read(const char *path, uint64_t *size) {
  int fd = open_beneath(path, O_RDONLY | O_NONBLOCK | O_NOCTTY);
  if (fd < 0) return fd == -ENXIO ? -NOT_REGULAR : fd; /* ENXIO: a socket */
  struct stat stat;
  if (fstat(fd, &stat) != 0 || !S_ISREG(stat.st_mode)) {
    close(fd);
    return -NOT_REGULAR;
  }
  *size = (uint64_t)stat.st_size;
  return fd;
}

/* Splits off the last name. `path` is normalised: no empty parts, no dots. */
static int split(const char *path, char parent[4096], char name[256]) {
  const char *slash = strrchr(path, '/');
  const char *last = slash ? slash + 1 : path;
  size_t length = slash ? (size_t)(slash - path) : 0;
  if (slash == path) length = 1; /* the root of the file system */
  if (*last == 0 || strcmp(last, "..") == 0 || strcmp(last, ".") == 0) return -EISDIR;
  if (length >= 4096 || strlen(last) > 255) return -ENAMETOOLONG;
  memcpy(parent, path, length);
  parent[length] = 0;
  strcpy(name, last);
  return 0;
}

/* The length of the path above the one that ends at `end`: "" is above "a", and "/" above "/a". */
static size_t parent_length(const char *path, size_t end) {
  while (end > 0 && path[end - 1] != '/') end--;
  return end > 1 ? end - 1 : end;
}

/* Makes `name` in `above`, closes `above`, and opens the new directory. If something else than a directory has the name, the
 * whole path is opened: it may be a link to a directory. */
static int make_in(int above, const char *name, const char *path) {
  int error = mkdirat(above, name, 0755) == 0 || errno == EEXIST ? 0 : -errno;
  int fd = error ? error : openat(above, name, O_PATH | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
  if (!error && fd < 0) fd = files_open_directory(path);
  close(above);
  return fd;
}

/* Opens a directory and makes the missing parts. No recursion: a path can have two thousand parts. */
static int make_beneath(const char *path) {
  char part[4096];
  size_t whole = strlen(path), length = whole;
  if (whole >= sizeof part) return -ENAMETOOLONG;
  memcpy(part, path, whole + 1);
  int fd = files_open_directory(part);
  size_t least = is_absolute(path) ? 1 : 0;
  while (fd == -ENOENT && length > least) {
    length = parent_length(part, length);
    part[length] = 0;
    fd = files_open_directory(part);
  }
  while (fd >= 0 && length < whole) {
    const char *name = part + (length > least ? length + 1 : least);
    memcpy(part, path, whole + 1);
    length = (size_t)(name - part) + strcspn(name, "/");
    part[length] = 0;
    if (length == (size_t)(name - part) || strlen(name) > 255 || strcmp(name, "..") == 0) {
      close(fd);
      return strlen(name) > 255 ? -ENAMETOOLONG : -EISDIR;
    }
    fd = make_in(fd, name, part);
  }
  return fd;
}

int files_make_directory(const char *path) {
  int fd = make_beneath(path);
  if (fd < 0) return fd;
  close(fd);
  return 0;
}

int files_open_parent(const char *path, bool make, char name[256]) {
  char parent[4096];
  int error = split(path, parent, name);
  if (error) return error;
  return make ? make_beneath(parent) : files_open_directory(parent);
}

/* If `path` is a link, `target` gets where it leads, as a path beneath the root, or an absolute one if `path` is absolute, and the result is 1.
 * 0: it is no link. */
static int follow(const char *path, char target[4096]) {
  int fd = open_beneath(path, O_PATH | O_NOFOLLOW);
  if (fd == -ENOENT) return 0;
  if (fd < 0) return fd;
  struct stat stat;
  bool link = fstat(fd, &stat) == 0 && S_ISLNK(stat.st_mode);
  close(fd);
  if (!link) return 0;
  fd = open_beneath(path, O_PATH);
  if (fd < 0) return fd;
  /* A file that has lost its name meanwhile cannot be replaced. */
  if (fstat(fd, &stat) != 0 || stat.st_nlink == 0 || S_ISDIR(stat.st_mode)) {
    close(fd);
    return S_ISDIR(stat.st_mode) ? -NOT_REGULAR : -ENOENT;
  }
  char of_fd[64], base[4096], full[4096];
  snprintf(of_fd, sizeof of_fd, "/proc/self/fd/%d", fd);
  ssize_t length = readlink(of_fd, full, sizeof full - 1);
  snprintf(of_fd, sizeof of_fd, "/proc/self/fd/%d", is_absolute(path) ? sandbox_root : root);
  ssize_t base_length = readlink(of_fd, base, sizeof base - 1);
  close(fd);
  if (length <= base_length || base_length < 0 || strncmp(full, base, (size_t)base_length) != 0) return -ESCAPES;
  full[length] = 0;
  const char *inner = full + base_length;
  if (is_absolute(path)) inner = full + base_length - 1; /* its slash is that of "/" */
  else if (base_length > 1 && *inner++ != '/') return -ESCAPES;
  strcpy(target, inner);
  return 1;
}

int files_open_target(const char *path, char name[256]) {
  char target[4096];
  int followed = follow(path, target);
  if (followed < 0) return followed;
  return files_open_parent(followed ? target : path, true, name);
}

void make_temporary_name(char name[TEMPORARY_NAME]) {
  uint64_t random[2];
  if (getrandom(random, sizeof random, 0) != sizeof random) random[0] = random[1] = (uint64_t)now_ms();
  snprintf(name, TEMPORARY_NAME, ".gb-%016llx%08llx", (unsigned long long)random[0], (unsigned long long)random[1] & 0xffffffff);
}

int pending_create(const char *path, uint32_t mode, struct pending_file *out) {
  out->parent = files_open_target(path, out->name);
  if (out->parent < 0) return out->parent;
  struct stat stat;
  bool replaces = fstatat(out->parent, out->name, &stat, AT_SYMLINK_NOFOLLOW) == 0;
  /* A file in the place of /dev/null would break what runs later. */
  if (replaces && (S_ISDIR(stat.st_mode) || S_ISCHR(stat.st_mode) || S_ISBLK(stat.st_mode))) {
    close(out->parent);
    return -NOT_REGULAR;
  }
  make_temporary_name(out->temporary);
  out->appends = false;
  out->mode = (mode & KEEPS_MODE && replaces && S_ISREG(stat.st_mode) ? stat.st_mode : mode) & 0777;
  out->fd = openat(out->parent, out->temporary, O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC, 0600);
  if (out->fd >= 0) return 0;
  int error = errno;
  close(out->parent);
  return -error;
}

int pending_append(struct pending_file *file, const uint8_t *bytes, size_t length) {
  while (length > 0) {
    ssize_t wrote = write(file->fd, bytes, length);
    if (wrote < 0 && errno == EINTR) continue;
    if (wrote <= 0) return wrote < 0 ? -errno : -EIO;
    bytes += wrote;
    length -= (size_t)wrote;
  }
  return 0;
}

void pending_discard(struct pending_file *file) {
  if (file->fd < 0) return;
  unlinkat(file->parent, file->temporary, 0);
  close(file->fd);
  close(file->parent);
  file->fd = -1;
}

int pending_commit(struct pending_file *file) {
  if (file->appends) {
    int failed = append_pending(file);
    pending_discard(file);
    return failed;
  }
  int error = fchmod(file->fd, file->mode) != 0 || renameat(file->parent, file->temporary, file->parent, file->name) != 0 ? -errno : 0;
  if (error) {
    pending_discard(file);
    return error == -EISDIR ? -NOT_REGULAR : error;
  }
  close(file->fd);
  close(file->parent);
  file->fd = -1;
  return 0;
}

int files_write(const char *path, uint32_t mode, const uint8_t *bytes, size_t length) {
  struct pending_file file;
  int error = pending_create(path, mode, &file);
  if (error) return error;
  error = pending_append(&file, bytes, length);
  if (!error) return pending_commit(&file);
  pending_discard(&file);
  return error;
}

uint8_t file_kind(mode_t mode) { return S_ISREG(mode) ? 0 : S_ISDIR(mode) ? 1 : S_ISLNK(mode) ? 2 : 3; }

/* Closes `fd`. */
static int describe(int fd, uint8_t out[21]) {
  struct stat stat;
  int error = fstat(fd, &stat) == 0 ? 0 : -errno;
  close(fd);
  if (error) return error;
  out[0] = file_kind(stat.st_mode);
  write_u64(out + 1, (uint64_t)stat.st_size);
  write_u32(out + 9, (uint32_t)stat.st_mode & 07777);
  write_u64(out + 13, (uint64_t)((int64_t)stat.st_mtim.tv_sec * 1000 + stat.st_mtim.tv_nsec / 1000000));
  return 0;
}

int files_stat(const char *path, uint8_t out[21]) {
  int fd = open_beneath(path, O_PATH | O_NOFOLLOW);
  return fd < 0 ? fd : describe(fd, out);
}

int files_stat_target(const char *path, uint8_t out[21]) {
  int fd = open_beneath(path, O_PATH);
  if (fd < 0) return fd == -ESCAPES && errno == ELOOP ? -ELOOP : fd;
  return describe(fd, out);
}

int files_open_readable_directory(const char *path) { return open_beneath(path, O_RDONLY | O_DIRECTORY); }

int files_list(const char *path, struct queue *out) {
  int fd = files_open_readable_directory(path);
  if (fd < 0) return fd;
  DIR *directory = fdopendir(fd);
  if (!directory) {
    close(fd);
    return -ENOMEM;
  }
  int error = 0;
  for (;;) {
    errno = 0;
    struct dirent *entry = readdir(directory);
    if (!entry) {
      error = -errno;
      break;
    }
    if (strcmp(entry->d_name, ".") == 0 || strcmp(entry->d_name, "..") == 0) continue;
    uint8_t length[4];
    write_u32(length, (uint32_t)strlen(entry->d_name));
    queue_append(out, length, sizeof length);
    queue_append(out, entry->d_name, strlen(entry->d_name));
    if (queue_length(out) > MAX_BODY - 1024) {
      error = -E2BIG;
      break;
    }
  }
  closedir(directory);
  return error;
}

int files_remove(const char *path) {
  char name[256];
  int parent = files_open_parent(path, false, name);
  if (parent < 0) return parent;
  int error = unlinkat(parent, name, 0) == 0 ? 0 : -errno;
  struct stat stat;
  if (error && fstatat(parent, name, &stat, AT_SYMLINK_NOFOLLOW) == 0 && S_ISDIR(stat.st_mode)) error = -NOT_REGULAR;
  close(parent);
  return error;
}

int files_remove_directory(const char *path) {
  char name[256];
  int parent = files_open_parent(path, false, name);
  if (parent < 0) return parent;
  int error = unlinkat(parent, name, AT_REMOVEDIR) == 0 ? 0 : errno == EEXIST ? -ENOTEMPTY : -errno;
  close(parent);
  return error;
}

int files_rename(const char *from, const char *to) {
  char old_name[256], new_name[256];
  int old_parent = files_open_parent(from, false, old_name);
  if (old_parent < 0) return old_parent;
  if (is_mount_point(old_parent, old_name)) {
    close(old_parent);
    return -EBUSY;
  }
  int new_parent = files_open_parent(to, true, new_name);
  int error = new_parent < 0 ? new_parent : renameat(old_parent, old_name, new_parent, new_name) == 0 ? 0 : -errno;
  /* The host would copy it instead, and only then find out that it cannot be removed. */
  if (error == -EXDEV && faccessat(old_parent, ".", W_OK | X_OK, 0) != 0) error = -errno;
  close(old_parent);
  if (new_parent >= 0) close(new_parent);
  return error;
}
