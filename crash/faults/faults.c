/*
 * A library between a server and its files: preloaded, it makes calls fail as the lab wants, and records every change
 * of the disk, so that the lab can simulate a power cut at any point of it afterwards.
 *
 * Only paths below PARTITA_FAULTS_ROOT are touched.
 *   PARTITA_FAULTS_RULE     a file mapped into memory: what to fail, and how often that happened (struct rule)
 *   PARTITA_FAULTS_JOURNAL  a file to append a record of every change to (struct record)
 *   PARTITA_FAULTS_CLOCK    a file mapped into memory: how many seconds all clocks are ahead, which may grow at any time
 * The lab reads and writes these layouts: crash/lab/src/faults.rs and crash/lab/src/journal.rs.
 *
 * A change and its record are made under one lock, so the journal has the order of the changes. Syncs are not: a write
 * during a sync may not be covered by it, and the records show that.
 */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <fnmatch.h>
#include <limits.h>
#include <linux/futex.h>
#include <pthread.h>
#include <stdarg.h>
#include <stdatomic.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/time.h>
#include <sys/uio.h>
#include <time.h>
#include <unistd.h>

enum call { CALL_WRITE, CALL_SYNC, CALL_OPEN, CALL_RENAME, CALL_UNLINK, CALL_TRUNCATE, CALL_ALLOCATE, CALL_LINK,
            CALL_MKDIR, CALL_CLOSE, CALL_SYNC_RANGE };

enum action { ACTION_FAIL, ACTION_SHORT };

enum armed { SAFE, ARMED, DYING };

struct rule {
  _Atomic uint32_t armed; /* enum armed */
  uint32_t calls;  /* bit of each enum call */
  uint32_t action;
  uint32_t error;
  uint64_t skip;   /* matching calls that still succeed */
  uint64_t times;  /* how many fail after these */
  char pattern[64];
  _Atomic uint64_t seen;
  _Atomic uint64_t injected;
};

enum kind { KIND_OPEN = 1, KIND_WRITE, KIND_TRUNCATE, KIND_ALLOCATE, KIND_RENAME, KIND_UNLINK, KIND_LINK, KIND_MKDIR,
            KIND_RMDIR, KIND_SYNC_BEGIN, KIND_SYNC_END, KIND_SYNC_FAILED };

/* Followed by a path, a second path and data of these lengths. */
struct record {
  uint32_t bytes;
  uint8_t kind;
  uint8_t pad[3];
  uint32_t process;
  uint32_t flags;
  uint64_t handle;
  uint64_t offset;
  uint32_t path_bytes;
  uint32_t target_bytes;
  uint64_t data_bytes;
};

#define FDS 65536

struct open_file {
  uint64_t handle; /* 0: not ours */
  char *path;
};

static struct open_file files[FDS];
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static char root[PATH_MAX];
static size_t root_bytes;
static struct rule *rule;
static _Atomic uint64_t *seconds_ahead;
static int journal = -1;
static uint64_t handles;
static pthread_once_t once = PTHREAD_ONCE_INIT;

#define REAL(name) static __typeof__(&name) real_##name
REAL(open); REAL(open64); REAL(openat); REAL(openat64); REAL(creat); REAL(creat64);
REAL(write); REAL(pwrite); REAL(pwrite64); REAL(writev); REAL(pwritev); REAL(pwritev64);
REAL(fsync); REAL(fdatasync); REAL(sync_file_range); REAL(ftruncate); REAL(ftruncate64); REAL(truncate);
REAL(fallocate); REAL(fallocate64); REAL(posix_fallocate); REAL(posix_fallocate64);
REAL(rename); REAL(renameat); REAL(renameat2); REAL(unlink); REAL(unlinkat); REAL(rmdir);
REAL(link); REAL(linkat); REAL(mkdir); REAL(mkdirat); REAL(close); REAL(dup); REAL(dup2); REAL(dup3); REAL(fcntl);
REAL(fcntl64); REAL(clock_gettime); REAL(gettimeofday); REAL(clock_nanosleep); REAL(syscall);
REAL(pthread_cond_timedwait); REAL(pthread_cond_clockwait);

static void start(void) {
#define FIND(name) real_##name = (__typeof__(&name))dlsym(RTLD_NEXT, #name)
  FIND(open); FIND(open64); FIND(openat); FIND(openat64); FIND(creat); FIND(creat64);
  FIND(write); FIND(pwrite); FIND(pwrite64); FIND(writev); FIND(pwritev); FIND(pwritev64);
  FIND(fsync); FIND(fdatasync); FIND(sync_file_range); FIND(ftruncate); FIND(ftruncate64); FIND(truncate);
  FIND(fallocate); FIND(fallocate64); FIND(posix_fallocate); FIND(posix_fallocate64);
  FIND(rename); FIND(renameat); FIND(renameat2); FIND(unlink); FIND(unlinkat); FIND(rmdir);
  FIND(link); FIND(linkat); FIND(mkdir); FIND(mkdirat); FIND(close); FIND(dup); FIND(dup2); FIND(dup3); FIND(fcntl);
  FIND(fcntl64); FIND(clock_gettime); FIND(gettimeofday); FIND(clock_nanosleep); FIND(syscall);
  FIND(pthread_cond_clockwait);
  /* An older version of this one is for condition variables of another layout. */
  real_pthread_cond_timedwait = dlvsym(RTLD_NEXT, "pthread_cond_timedwait", "GLIBC_2.3.2");
  if (!real_pthread_cond_timedwait) FIND(pthread_cond_timedwait);
  const char *clocks = getenv("PARTITA_FAULTS_CLOCK");
  if (clocks) {
    int fd = real_open(clocks, O_RDONLY | O_CLOEXEC);
    void *at = fd < 0 ? MAP_FAILED : mmap(NULL, sizeof *seconds_ahead, PROT_READ, MAP_SHARED, fd, 0);
    if (at == MAP_FAILED) {
      fprintf(stderr, "faults: can't map %s: %s\n", clocks, strerror(errno));
      _exit(70);
    }
    seconds_ahead = at;
    real_close(fd);
  }
  const char *where = getenv("PARTITA_FAULTS_ROOT");
  if (!where || where[0] != '/' || strlen(where) >= sizeof root) return;
  strcpy(root, where);
  root_bytes = strlen(root);
  const char *rules = getenv("PARTITA_FAULTS_RULE");
  if (rules) {
    int fd = real_open(rules, O_RDWR | O_CLOEXEC);
    void *at = fd < 0 ? MAP_FAILED : mmap(NULL, sizeof *rule, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
    if (at == MAP_FAILED) {
      fprintf(stderr, "faults: can't map %s: %s\n", rules, strerror(errno));
      _exit(70);
    }
    rule = at;
    real_close(fd);
  }
  const char *name = getenv("PARTITA_FAULTS_JOURNAL");
  if (name) {
    journal = real_open(name, O_WRONLY | O_APPEND | O_CLOEXEC);
    if (journal < 0) {
      fprintf(stderr, "faults: can't open %s: %s\n", name, strerror(errno));
      _exit(70);
    }
  }
}

/* Calls can happen before constructors run, for example those of the allocator. */
static void ready(void) { pthread_once(&once, start); }

/* SIGKILL may interrupt a write and its record. A recorded process that is to be killed ends here instead, where no
 * other thread is making a change. */
static void enter(void) {
  pthread_mutex_lock(&lock);
  if (rule && atomic_load(&rule->armed) == DYING) _exit(137);
}

static void leave(void) { pthread_mutex_unlock(&lock); }

/* The path below the root, or NULL for other paths. "" is the root itself. */
static const char *inside(const char *path) {
  if (!root_bytes || !path || strncmp(path, root, root_bytes) != 0) return NULL;
  if (path[root_bytes] == 0) return path + root_bytes;
  return path[root_bytes] == '/' ? path + root_bytes + 1 : NULL;
}

/* As `inside`, for a path that may be relative to an open directory. */
static const char *inside_at(int directory, const char *path, char *space) {
  if (!path || path[0] == '/' || directory == AT_FDCWD) return inside(path);
  if (directory < 0 || directory >= FDS || !files[directory].handle) return NULL;
  const char *base = files[directory].path;
  snprintf(space, PATH_MAX, "%s%s%s", base, base[0] ? "/" : "", path);
  return space;
}

static struct open_file *file_of(int fd) {
  return fd >= 0 && fd < FDS && files[fd].handle ? &files[fd] : NULL;
}

/* Whether the lab wants this call to fail; 2 if half of the data is to be written first. */
static int fails(enum call call, const char *path) {
  if (!rule || atomic_load(&rule->armed) != ARMED || !(rule->calls & (1u << call))) return 0;
  if (fnmatch(rule->pattern, path, 0) != 0) return 0;
  uint64_t before = atomic_fetch_add(&rule->seen, 1);
  if (before < rule->skip || before - rule->skip >= rule->times) return 0;
  atomic_fetch_add(&rule->injected, 1);
  errno = (int)rule->error;
  return rule->action == ACTION_SHORT && before == rule->skip ? 2 : 1;
}

static void note(enum kind kind, uint32_t flags, uint64_t handle, uint64_t offset, const char *path, const char *target,
                 const struct iovec *data, int pieces, uint64_t data_bytes) {
  if (journal < 0) return;
  struct record record = {.kind = (uint8_t)kind, .process = (uint32_t)getpid(), .flags = flags, .handle = handle,
                          .offset = offset, .path_bytes = path ? (uint32_t)strlen(path) : 0,
                          .target_bytes = target ? (uint32_t)strlen(target) : 0, .data_bytes = data_bytes};
  uint64_t bytes = sizeof record + record.path_bytes + record.target_bytes + data_bytes;
  if (bytes > UINT32_MAX || pieces > 1000) {
    fprintf(stderr, "faults: a write of %llu bytes is too long to record\n", (unsigned long long)data_bytes);
    _exit(70);
  }
  record.bytes = (uint32_t)bytes;
  struct iovec parts[1003];
  int count = 0;
  parts[count++] = (struct iovec){&record, sizeof record};
  if (path) parts[count++] = (struct iovec){(void *)path, record.path_bytes};
  if (target) parts[count++] = (struct iovec){(void *)target, record.target_bytes};
  uint64_t left = data_bytes;
  for (int i = 0; i < pieces && left; i++) {
    size_t part = data[i].iov_len < left ? data[i].iov_len : (size_t)left;
    parts[count++] = (struct iovec){data[i].iov_base, part};
    left -= part;
  }
  int kept = errno;
  if (real_writev(journal, parts, count) != (ssize_t)bytes) {
    fprintf(stderr, "faults: the journal can't be written: %s\n", strerror(errno));
    _exit(70);
  }
  errno = kept;
}

static void forget(int fd) {
  if (fd < 0 || fd >= FDS) return;
  files[fd].handle = 0;
  free(files[fd].path);
  files[fd].path = NULL;
}

static int opened(int fd, const char *path, int flags) {
  if (fd < 0) return fd;
  if (fd >= FDS) {
    fprintf(stderr, "faults: more than %d files are open\n", FDS);
    _exit(70);
  }
  forget(fd);
  files[fd].handle = ++handles;
  files[fd].path = strdup(path);
  note(KIND_OPEN, (uint32_t)flags, files[fd].handle, 0, path, NULL, NULL, 0, 0);
  return fd;
}

#define OPEN(call) \
  do { \
    char space[PATH_MAX]; \
    const char *within = inside_at(directory, path, space); \
    if (!within) return call; \
    if ((flags & O_CREAT) && fails(CALL_OPEN, within)) return -1; \
    enter(); \
    int fd = opened(call, within, flags); \
    leave(); \
    return fd; \
  } while (0)

#define MODE \
  mode_t mode = 0; \
  if ((flags & O_CREAT) || (flags & O_TMPFILE) == O_TMPFILE) { \
    va_list list; \
    va_start(list, flags); \
    mode = (mode_t)va_arg(list, int); \
    va_end(list); \
  }

int open(const char *path, int flags, ...) {
  ready();
  MODE
  int directory = AT_FDCWD;
  OPEN(real_open(path, flags, mode));
}

int open64(const char *path, int flags, ...) {
  ready();
  MODE
  int directory = AT_FDCWD;
  OPEN(real_open64(path, flags, mode));
}

int openat(int directory, const char *path, int flags, ...) {
  ready();
  MODE
  OPEN(real_openat(directory, path, flags, mode));
}

int openat64(int directory, const char *path, int flags, ...) {
  ready();
  MODE
  OPEN(real_openat64(directory, path, flags, mode));
}

int creat(const char *path, mode_t mode) {
  ready();
  int directory = AT_FDCWD, flags = O_CREAT | O_WRONLY | O_TRUNC;
  OPEN(real_creat(path, mode));
}

int creat64(const char *path, mode_t mode) {
  ready();
  int directory = AT_FDCWD, flags = O_CREAT | O_WRONLY | O_TRUNC;
  OPEN(real_creat64(path, mode));
}

int close(int fd) {
  ready();
  enter();
  struct open_file *file = file_of(fd);
  int fail = file && fails(CALL_CLOSE, file->path);
  if (file) forget(fd);
  int result = real_close(fd);
  leave();
  if (fail) {
    errno = (int)rule->error;
    return -1;
  }
  return result;
}

/* The same open file with a second number. */
static int doubled(int from, int to) {
  if (to < 0 || to >= FDS) return to;
  forget(to);
  struct open_file *file = file_of(from);
  if (file) {
    files[to].handle = file->handle;
    files[to].path = strdup(file->path);
  }
  return to;
}

#define DOUBLE(call) \
  do { \
    enter(); \
    int result = doubled(fd, call); \
    leave(); \
    return result; \
  } while (0)

int dup(int fd) {
  ready();
  DOUBLE(real_dup(fd));
}

int dup2(int fd, int to) {
  ready();
  if (fd == to) return real_dup2(fd, to);
  DOUBLE(real_dup2(fd, to));
}

int dup3(int fd, int to, int flags) {
  ready();
  DOUBLE(real_dup3(fd, to, flags));
}

#define FCNTL(call) \
  do { \
    va_list list; \
    va_start(list, command); \
    void *argument = va_arg(list, void *); \
    va_end(list); \
    if (command == F_DUPFD || command == F_DUPFD_CLOEXEC) DOUBLE(call); \
    return call; \
  } while (0)

int fcntl(int fd, int command, ...) {
  ready();
  FCNTL(real_fcntl(fd, command, argument));
}

int fcntl64(int fd, int command, ...) {
  ready();
  FCNTL((real_fcntl64 ? real_fcntl64 : real_fcntl)(fd, command, argument));
}

/* Writes all data, half of it, or nothing; `offset` is -1 to use the file's own position. */
static ssize_t put(int fd, const struct iovec *data, int pieces, off64_t offset) {
  enter();
  struct open_file *file = file_of(fd);
  int fail = file ? fails(CALL_WRITE, file->path) : 0;
  if (fail == 1) {
    leave();
    return -1;
  }
  struct iovec half;
  if (fail == 2 && data[0].iov_len > 1) {
    half = (struct iovec){data[0].iov_base, data[0].iov_len / 2};
    data = &half;
    pieces = 1;
  }
  if (!file) leave(); /* Sockets may wait. */
  ssize_t written = offset >= 0 ? real_pwritev64(fd, data, pieces, offset) : real_writev(fd, data, pieces);
  if (!file) return written;
  if (written > 0) {
    /* The position of a file open for appending is now after the written data. */
    uint64_t at = offset >= 0 ? (uint64_t)offset : (uint64_t)(lseek64(fd, 0, SEEK_CUR) - written);
    note(KIND_WRITE, 0, file->handle, at, NULL, NULL, data, pieces, (uint64_t)written);
  }
  leave();
  return written;
}

ssize_t write(int fd, const void *bytes, size_t count) {
  ready();
  struct iovec one = {(void *)bytes, count};
  return file_of(fd) ? put(fd, &one, 1, -1) : real_write(fd, bytes, count);
}

ssize_t pwrite(int fd, const void *bytes, size_t count, off_t offset) {
  ready();
  struct iovec one = {(void *)bytes, count};
  return file_of(fd) ? put(fd, &one, 1, offset) : real_pwrite(fd, bytes, count, offset);
}

ssize_t pwrite64(int fd, const void *bytes, size_t count, off64_t offset) {
  ready();
  struct iovec one = {(void *)bytes, count};
  return file_of(fd) ? put(fd, &one, 1, offset) : real_pwrite64(fd, bytes, count, offset);
}

ssize_t writev(int fd, const struct iovec *data, int pieces) {
  ready();
  return file_of(fd) ? put(fd, data, pieces, -1) : real_writev(fd, data, pieces);
}

ssize_t pwritev(int fd, const struct iovec *data, int pieces, off_t offset) {
  ready();
  return file_of(fd) ? put(fd, data, pieces, offset) : real_pwritev(fd, data, pieces, offset);
}

ssize_t pwritev64(int fd, const struct iovec *data, int pieces, off64_t offset) {
  ready();
  return file_of(fd) ? put(fd, data, pieces, offset) : real_pwritev64(fd, data, pieces, offset);
}

static int synced(int fd, int (*call)(int)) {
  enter();
  struct open_file *file = file_of(fd);
  uint64_t handle = file ? file->handle : 0;
  int fail = file && fails(CALL_SYNC, file->path);
  /* After a failed sync, some pages are never written again. */
  if (file) note(fail ? KIND_SYNC_FAILED : KIND_SYNC_BEGIN, 0, handle, 0, NULL, NULL, NULL, 0, 0);
  leave();
  if (fail) return -1;
  int result = call(fd);
  if (handle && result == 0) {
    enter();
    note(KIND_SYNC_END, 0, handle, 0, NULL, NULL, NULL, 0, 0);
    leave();
  }
  return result;
}

int fsync(int fd) {
  ready();
  return synced(fd, real_fsync);
}

int fdatasync(int fd) {
  ready();
  return synced(fd, real_fdatasync);
}

/* It only begins to write and guarantees nothing, so there is nothing to record. */
int sync_file_range(int fd, off64_t offset, off64_t count, unsigned int flags) {
  ready();
  enter();
  struct open_file *file = file_of(fd);
  int fail = file && fails(CALL_SYNC_RANGE, file->path);
  leave();
  return fail ? -1 : real_sync_file_range(fd, offset, count, flags);
}

#define TRUNCATE(call) \
  do { \
    enter(); \
    struct open_file *file = file_of(fd); \
    int result = file && fails(CALL_TRUNCATE, file->path) ? -1 : call(fd, length); \
    if (file && result == 0) note(KIND_TRUNCATE, 0, file->handle, (uint64_t)length, NULL, NULL, NULL, 0, 0); \
    leave(); \
    return result; \
  } while (0)

int ftruncate(int fd, off_t length) {
  ready();
  TRUNCATE(real_ftruncate);
}

int ftruncate64(int fd, off64_t length) {
  ready();
  TRUNCATE(real_ftruncate64);
}

int truncate(const char *path, off_t length) {
  ready();
  if (!inside(path)) return real_truncate(path, length);
  int fd = open(path, O_WRONLY | O_CLOEXEC);
  if (fd < 0) return -1;
  int result = ftruncate(fd, length), kept = errno;
  close(fd);
  errno = kept;
  return result;
}

/* The record's flags are the mode, which says whether the length stays; its offset is the end of the reserved range. */
static void note_allocation(struct open_file *file, int mode, off64_t offset, off64_t length) {
  uint64_t end = (uint64_t)offset + (uint64_t)length;
  note(KIND_ALLOCATE, (uint32_t)mode, file->handle, end, NULL, NULL, NULL, 0, 0);
}

#define ALLOCATE(call, mode, failed) \
  do { \
    enter(); \
    struct open_file *file = file_of(fd); \
    int result = file && fails(CALL_ALLOCATE, file->path) ? (failed) : (call); \
    if (file && result == 0) note_allocation(file, (mode), offset, length); \
    leave(); \
    return result; \
  } while (0)

int fallocate(int fd, int mode, off_t offset, off_t length) {
  ready();
  ALLOCATE(real_fallocate(fd, mode, offset, length), mode, -1);
}

int fallocate64(int fd, int mode, off64_t offset, off64_t length) {
  ready();
  ALLOCATE(real_fallocate64(fd, mode, offset, length), mode, -1);
}

int posix_fallocate(int fd, off_t offset, off_t length) {
  ready();
  ALLOCATE(real_posix_fallocate(fd, offset, length), 0, (int)rule->error);
}

int posix_fallocate64(int fd, off64_t offset, off64_t length) {
  ready();
  ALLOCATE(real_posix_fallocate64(fd, offset, length), 0, (int)rule->error);
}

#define NAMES(which, kind, real, path, target, flags) \
  do { \
    if (!(path) && !(target)) return real; \
    enter(); \
    int result = fails(which, (path) ? (path) : (target)) ? -1 : (real); \
    if (result == 0) note(kind, flags, 0, 0, path, target, NULL, 0, 0); \
    leave(); \
    return result; \
  } while (0)

int rename(const char *from, const char *to) {
  ready();
  const char *path = inside(from), *target = inside(to);
  NAMES(CALL_RENAME, KIND_RENAME, real_rename(from, to), path, target, 0);
}

int renameat(int from_directory, const char *from, int to_directory, const char *to) {
  ready();
  char space[PATH_MAX], more[PATH_MAX];
  const char *path = inside_at(from_directory, from, space), *target = inside_at(to_directory, to, more);
  NAMES(CALL_RENAME, KIND_RENAME, real_renameat(from_directory, from, to_directory, to), path, target, 0);
}

int renameat2(int from_directory, const char *from, int to_directory, const char *to, unsigned int flags) {
  ready();
  char space[PATH_MAX], more[PATH_MAX];
  const char *path = inside_at(from_directory, from, space), *target = inside_at(to_directory, to, more);
  NAMES(CALL_RENAME, KIND_RENAME, real_renameat2(from_directory, from, to_directory, to, flags), path, target, flags);
}

int unlink(const char *name) {
  ready();
  const char *path = inside(name), *none = NULL;
  NAMES(CALL_UNLINK, KIND_UNLINK, real_unlink(name), path, none, 0);
}

int unlinkat(int directory, const char *name, int flags) {
  ready();
  char space[PATH_MAX];
  const char *path = inside_at(directory, name, space), *none = NULL;
  NAMES(CALL_UNLINK, (flags & AT_REMOVEDIR) ? KIND_RMDIR : KIND_UNLINK, real_unlinkat(directory, name, flags), path, none,
        0);
}

int rmdir(const char *name) {
  ready();
  const char *path = inside(name), *none = NULL;
  NAMES(CALL_UNLINK, KIND_RMDIR, real_rmdir(name), path, none, 0);
}

int link(const char *from, const char *to) {
  ready();
  const char *path = inside(from), *target = inside(to);
  NAMES(CALL_LINK, KIND_LINK, real_link(from, to), path, target, 0);
}

int linkat(int from_directory, const char *from, int to_directory, const char *to, int flags) {
  ready();
  char space[PATH_MAX], more[PATH_MAX];
  const char *path = inside_at(from_directory, from, space), *target = inside_at(to_directory, to, more);
  NAMES(CALL_LINK, KIND_LINK, real_linkat(from_directory, from, to_directory, to, flags), path, target, 0);
}

int mkdir(const char *name, mode_t mode) {
  ready();
  const char *path = inside(name), *none = NULL;
  NAMES(CALL_MKDIR, KIND_MKDIR, real_mkdir(name, mode), path, none, 0);
}

int mkdirat(int directory, const char *name, mode_t mode) {
  ready();
  char space[PATH_MAX];
  const char *path = inside_at(directory, name, space), *none = NULL;
  NAMES(CALL_MKDIR, KIND_MKDIR, real_mkdirat(directory, name, mode), path, none, 0);
}

/* Clocks that are ahead. Whoever waits until a time gets the kernel's time for it. */

static time_t ahead(void) { return seconds_ahead ? (time_t)atomic_load(seconds_ahead) : 0; }

static const struct timespec *kernel_time(const struct timespec *time, struct timespec *space) {
  if (!time) return NULL;
  *space = *time;
  space->tv_sec = time->tv_sec > ahead() ? time->tv_sec - ahead() : 0;
  return space;
}

int clock_gettime(clockid_t clock, struct timespec *time) {
  ready();
  int result = real_clock_gettime(clock, time);
  if (result == 0 && clock != CLOCK_PROCESS_CPUTIME_ID && clock != CLOCK_THREAD_CPUTIME_ID && clock >= 0)
    time->tv_sec += ahead();
  return result;
}

int gettimeofday(struct timeval *restrict time, void *restrict zone) {
  ready();
  int result = real_gettimeofday(time, zone);
  if (result == 0) time->tv_sec += ahead();
  return result;
}

time_t time(time_t *into) {
  struct timespec now;
  clock_gettime(CLOCK_REALTIME, &now);
  if (into) *into = now.tv_sec;
  return now.tv_sec;
}

int clock_nanosleep(clockid_t clock, int flags, const struct timespec *request, struct timespec *left) {
  ready();
  struct timespec space;
  if (flags & TIMER_ABSTIME) request = kernel_time(request, &space);
  return real_clock_nanosleep(clock, flags, request, left);
}

int pthread_cond_timedwait(pthread_cond_t *restrict condition, pthread_mutex_t *restrict mutex,
                           const struct timespec *restrict until) {
  ready();
  struct timespec space;
  return real_pthread_cond_timedwait(condition, mutex, kernel_time(until, &space));
}

int pthread_cond_clockwait(pthread_cond_t *restrict condition, pthread_mutex_t *restrict mutex, clockid_t clock,
                           const struct timespec *restrict until) {
  ready();
  struct timespec space;
  return real_pthread_cond_clockwait(condition, mutex, clock, kernel_time(until, &space));
}

/* Rust waits for a futex until a time. */
long syscall(long number, ...) {
  ready();
  va_list list;
  va_start(list, number);
  long a[6];
  for (int i = 0; i < 6; i++) a[i] = va_arg(list, long);
  va_end(list);
  struct timespec space;
  if (number == SYS_futex && (a[1] & FUTEX_CMD_MASK) == FUTEX_WAIT_BITSET)
    a[3] = (long)kernel_time((const struct timespec *)a[3], &space);
  return real_syscall(number, a[0], a[1], a[2], a[3], a[4], a[5]);
}
