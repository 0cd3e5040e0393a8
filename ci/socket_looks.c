/* The cost of a look at many sockets of which none has news: trying each, asking epoll, and poll over all.

       cc -O2 -o target/socket_looks ci/socket_looks.c && target/socket_looks

   Prints microseconds of processor time, medians of 31. */
#define _GNU_SOURCE
#include <arpa/inet.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/epoll.h>
#include <sys/socket.h>
#include <time.h>
#include <unistd.h>

enum { MOST = 255, LOOKS = 200, ROUNDS = 31 };

static double now(void)
{
    struct timespec time;
    clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &time);
    return time.tv_sec * 1e6 + time.tv_nsec / 1e3;
}

static int compare(const void *one, const void *other)
{
    double difference = *(const double *)one - *(const double *)other;
    return (difference > 0) - (difference < 0);
}

static void measure(const int *sockets, int count)
{
    struct pollfd polled[MOST];
    struct epoll_event events[64];
    double times[3][ROUNDS];
    char byte;
    int queue = epoll_create1(0);
    for (int i = 0; i < count; i++) {
        struct epoll_event wanted = {.events = EPOLLIN | EPOLLOUT | EPOLLET, .data.u32 = i};
        epoll_ctl(queue, EPOLL_CTL_ADD, sockets[i], &wanted);
        polled[i] = (struct pollfd){sockets[i], POLLIN, 0};
    }
    while (epoll_wait(queue, events, 64, 0) > 0) {
    }
    for (int round = 0; round < ROUNDS; round++) {
        double begin = now();
        for (int look = 0; look < LOOKS; look++)
            for (int i = 0; i < count; i++)
                (void)!recv(sockets[i], &byte, 1, 0);
        times[0][round] = (now() - begin) / LOOKS;
        begin = now();
        for (int look = 0; look < LOOKS; look++)
            epoll_wait(queue, events, 64, 0);
        times[1][round] = (now() - begin) / LOOKS;
        begin = now();
        for (int look = 0; look < LOOKS; look++)
            poll(polled, count, 0);
        times[2][round] = (now() - begin) / LOOKS;
    }
    for (int way = 0; way < 3; way++)
        qsort(times[way], ROUNDS, sizeof(double), compare);
    printf("| %d | %.2f | %.2f | %.2f |\n", count, times[0][ROUNDS / 2], times[1][ROUNDS / 2], times[2][ROUNDS / 2]);
    close(queue);
}

int main(void)
{
    static const int counts[] = {1, 7, 15, 31, 127, MOST};
    struct sockaddr_in address = {.sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
    socklen_t length = sizeof address;
    int sockets[MOST], listener = socket(AF_INET, SOCK_STREAM, 0);
    if (bind(listener, (struct sockaddr *)&address, length) || listen(listener, 1024) ||
        getsockname(listener, (struct sockaddr *)&address, &length))
        return 1;
    for (int i = 0; i < MOST; i++) {
        int other = socket(AF_INET, SOCK_STREAM, 0);
        if (connect(other, (struct sockaddr *)&address, length))
            return 1;
        sockets[i] = accept4(listener, NULL, NULL, SOCK_NONBLOCK);
    }
    for (unsigned i = 0; i < sizeof counts / sizeof *counts; i++)
        measure(sockets, counts[i]);
    return 0;
}
