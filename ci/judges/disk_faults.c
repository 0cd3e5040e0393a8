/* Faults of a disk, for the files below a directory. Loaded by LD_PRELOAD.
 *
 * DISK_BELOW   the directory
 * DISK_LOG     a file for what happened: one line per call, "NUMBER CALL PATH [MORE]"
 * DISK_FAULT   the fault, none if unset:
 *   eio, enospc   the calls from the one of DISK_CALL on that write or sync fail with this error
 *   eio-once      that call alone fails
 *   erofs         it and everything after it that would change the directory fails
 *   short         every write takes at most 7 bytes
 *   eintr         every second write is interrupted by a signal before it begins
 *   rename        the renames from that call on fail with EIO
 *   fsync         the syncs from that call on fail with EIO
 *   power         the process ends before that call, without a word
 *
 * Calls are numbered from 1 in the order in which they begin. With DISK_SAVED, a directory, a rename keeps what it
 * replaces there, so that it can be undone after a loss of power. */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <pthread.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/uio.h>
#include <unistd.h>

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static long calls;

enum kind { WRITE, SYNC, RENAME, CHANGE };

static void *next(const char *name) { return dlsym(RTLD_NEXT, name); }

static int is_below(const char *path) {
    const char *below = getenv("DISK_BELOW");
    size_t length = below ? strlen(below) : 0;
    return length && strncmp(path, below, length) == 0 && (path[length] == '/' || path[length] == 0);
}

/* The path of a descriptor, if it is below the directory. */
static int of_descriptor(int fd, char *path) {
    char link[64];
    snprintf(link, sizeof link, "/proc/self/fd/%d", fd);
    ssize_t length = readlink(link, path, PATH_MAX - 1);
    if (length < 0) return 0;
    path[length] = 0;
    return is_below(path);
}

static void note(long number, const char *call, const char *path, const char *more) {
    char line[3 * PATH_MAX];
    const char *place = getenv("DISK_LOG");
    int length = snprintf(line, sizeof line, "%ld %s %s %s\n", number, call, path, more);
    int (*open_)(const char *, int, ...) = next("open64");
    ssize_t (*write_)(int, const void *, size_t) = next("write");
    int fd = place ? open_(place, O_WRONLY | O_APPEND | O_CREAT | O_CLOEXEC, 0600) : -1;
    if (fd < 0) return;
    if (write_(fd, line, (size_t)length) != length) abort();
    close(fd);
}

/* Numbers a call; the error with which it must fail, or 0. */
static int begin(enum kind kind, const char *call, const char *path, const char *more) {
    const char *fault = getenv("DISK_FAULT"), *at = getenv("DISK_CALL");
    pthread_mutex_lock(&lock);
    long number = ++calls;
    int due = fault && at && number >= atol(at), error = 0;
    if (due && strcmp(fault, "power") == 0) _exit(137);
    if (due && strcmp(fault, "erofs") == 0) error = EROFS;
    if (due && kind != CHANGE && strcmp(fault, "eio") == 0) error = EIO;
    if (due && kind == WRITE && strcmp(fault, "enospc") == 0) error = ENOSPC;
    if (due && number == atol(at) && kind != CHANGE && strcmp(fault, "eio-once") == 0) error = EIO;
    if (due && kind == RENAME && strcmp(fault, "rename") == 0) error = EIO;
    if (due && kind == SYNC && strcmp(fault, "fsync") == 0) error = EIO;
    note(number, error ? "FAILED" : call, path, more);
    pthread_mutex_unlock(&lock);
    return error;
}

static int is_fault(const char *name) {
    const char *fault = getenv("DISK_FAULT");
    return fault && strcmp(fault, name) == 0;
}

ssize_t write(int fd, const void *bytes, size_t count) {
    static ssize_t (*real)(int, const void *, size_t);
    static _Thread_local int interrupted;
    char path[PATH_MAX];
    if (!real) real = next("write");
    if (!of_descriptor(fd, path)) return real(fd, bytes, count);
    int error = begin(WRITE, "write", path, "");
    if (!error && is_fault("eintr") && (interrupted ^= 1)) error = EINTR;
    if (error) {
        errno = error;
        return -1;
    }
    return real(fd, bytes, is_fault("short") && count > 7 ? 7 : count);
}

ssize_t writev(int fd, const struct iovec *parts, int count) {
    static ssize_t (*real)(int, const struct iovec *, int);
    char path[PATH_MAX];
    if (!real) real = next("writev");
    if (!of_descriptor(fd, path)) return real(fd, parts, count);
    int first = 0;
    while (first + 1 < count && parts[first].iov_len == 0) first++;
    return write(fd, parts[first].iov_base, parts[first].iov_len);
}

static int sync_of(int fd, int (*real)(int)) {
    char path[PATH_MAX], size[32] = "";
    struct stat status;
    if (!of_descriptor(fd, path)) return real(fd);
    if (fstat(fd, &status) == 0 && S_ISREG(status.st_mode)) snprintf(size, sizeof size, "%lld", (long long)status.st_size);
    int error = begin(SYNC, "sync", path, size);
    if (error) {
        errno = error;
        return -1;
    }
    return real(fd);
}

int fsync(int fd) { return sync_of(fd, next("fsync")); }
int fdatasync(int fd) { return sync_of(fd, next("fdatasync")); }

int rename(const char *from, const char *to) {
    int (*real)(const char *, const char *) = next("rename");
    char absolute[PATH_MAX], target[PATH_MAX], more[2 * PATH_MAX + 2], saved[PATH_MAX] = "-";
    const char *directory = getenv("DISK_SAVED");
    if (!realpath(from, absolute) || !is_below(absolute)) return real(from, to);
    if (!realpath(to, target)) snprintf(target, sizeof target, "%s", to);
    if (directory && access(target, F_OK) == 0) {
        static long replaced;
        /* Its own number: two threads that rename at once may come between the same two calls. */
        long number = __atomic_add_fetch(&replaced, 1, __ATOMIC_RELAXED);
        snprintf(saved, sizeof saved, "%s/%d-%ld", directory, getpid(), number);
        if (link(target, saved) != 0) abort();
    }
    snprintf(more, sizeof more, "%s %s", target, saved);
    int error = begin(RENAME, "rename", absolute, more);
    if (error) {
        errno = error;
        return -1;
    }
    return real(from, to);
}

int unlink(const char *path) {
    int (*real)(const char *) = next("unlink");
    if (!is_below(path)) return real(path);
    int error = begin(CHANGE, "unlink", path, "");
    if (error) {
        errno = error;
        return -1;
    }
    return real(path);
}

int mkdir(const char *path, mode_t mode) {
    int (*real)(const char *, mode_t) = next("mkdir");
    if (!is_below(path)) return real(path, mode);
    int error = begin(CHANGE, "mkdir", path, access(path, F_OK) != 0 ? "new" : "");
    if (error) {
        errno = error;
        return -1;
    }
    return real(path, mode);
}

int open64(const char *path, int flags, ...) {
    int (*real)(const char *, int, ...) = next("open64");
    va_list rest;
    va_start(rest, flags);
    mode_t mode = va_arg(rest, mode_t);
    va_end(rest);
    if (!is_below(path) || !(flags & (O_WRONLY | O_RDWR | O_CREAT))) return real(path, flags, mode);
    int is_new = (flags & O_CREAT) && access(path, F_OK) != 0;
    int error = begin(CHANGE, "open", path, is_new ? "new" : "");
    if (error) {
        errno = error;
        return -1;
    }
    return real(path, flags, mode);
}
