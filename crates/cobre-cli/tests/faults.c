/* Lets one call of a process fail that never fails in a test otherwise. Loaded by LD_PRELOAD; TEST_FAULT says which:
 * clock   the time is not known, for which Rust panics
 * malloc  there is no memory for Rust, which aborts
 * new     there is no memory for C++, which calls its handler
 * words   a library writes to standard output when a rank loads it
 * TEST_FAULT_CALL says which call of the main thread, and TEST_FAULT_RANK which rank of a job. */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

extern void *__libc_malloc(size_t);

/* The C++ library calls these functions too, for HiGHS. */
static int is_of_cpp(void *caller) {
    Dl_info info;
    return !dladdr(caller, &info) || strstr(info.dli_fname, "libstdc++") != NULL;
}

static int is_due(const char *fault, long *calls, void *caller) {
    const char *asked = getenv("TEST_FAULT"), *rank = getenv("TEST_FAULT_RANK"), *own = getenv("COBRE_LAUNCH_RANK");
    if (!asked || strcmp(asked, fault) != 0 || gettid() != getpid()) return 0;
    if (rank && (!own || strcmp(rank, own) != 0)) return 0;
    if (caller && is_of_cpp(caller)) return 0;
    return ++*calls == atol(getenv("TEST_FAULT_CALL"));
}

int clock_gettime(clockid_t id, struct timespec *now) {
    static long calls;
    if (is_due("clock", &calls, __builtin_return_address(0))) {
        errno = EINVAL;
        return -1;
    }
    int (*real)(clockid_t, struct timespec *) = (int (*)(clockid_t, struct timespec *))dlsym(RTLD_NEXT, "clock_gettime");
    return real(id, now);
}

void *malloc(size_t size) {
    static long calls;
    static int inside;
    if (gettid() != getpid() || inside) return __libc_malloc(size);
    inside = 1;
    int due = is_due("malloc", &calls, __builtin_return_address(0));
    inside = 0;
    return due ? NULL : __libc_malloc(size);
}

/* operator new(unsigned long) */
void *_Znwm(size_t size) {
    static long calls;
    void *(*real)(size_t) = (void *(*)(size_t))dlsym(RTLD_NEXT, "_Znwm");
    return real(is_due("new", &calls, NULL) ? (size_t)1 << 60 : size);
}

__attribute__((constructor)) static void say(void) {
    const char *asked = getenv("TEST_FAULT"), words[] = "words of a library\n";
    if (asked && strcmp(asked, "words") == 0 && getenv("COBRE_LAUNCH_RANK"))
        if (write(STDOUT_FILENO, words, sizeof words - 1) < 0) abort();
}
