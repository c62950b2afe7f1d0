/* JNI library of the Java module for JDK 17 to 21: the system calls of io.eddy.shm.Native, one function each. Results
 * are 0 or more, or the negated errno. */
#define _GNU_SOURCE
#include <jni.h>

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <linux/futex.h>
#include <linux/magic.h>
#include <linux/membarrier.h>
#include <poll.h>
#include <sched.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/un.h>
#include <sys/vfs.h>
#include <time.h>
#include <unistd.h>

#ifndef F_SEAL_FUTURE_WRITE
#define F_SEAL_FUTURE_WRITE 0x0010
#endif
#ifndef MFD_NOEXEC_SEAL
#define MFD_NOEXEC_SEAL 0x0008U
#endif

#define SEALS (F_SEAL_SHRINK | F_SEAL_GROW | F_SEAL_FUTURE_WRITE | F_SEAL_SEAL)
#define HEADER_SIZE 65536
/* On every architecture; older headers lack it. */
#define SYS_CACHESTAT 451
/* As many as one message may have, SCM_MAX_FD: what does not fit is dropped, which blocks for a socket that lingers. */
#define MOST_DESCRIPTORS 253
/* Bytes that send() and receive() go through the stack with, at most. */
#define MOST_BYTES 65536
#define MOST_EVENTS 64

#define NATIVE(result, name) \
    JNIEXPORT result JNICALL Java_io_eddy_shm_Native_##name(JNIEnv* env, jclass type

#define UNUSED (void)env, (void)type

static jint outcome(long result) { return result >= 0 ? (jint)result : -errno; }

NATIVE(jint, socket)) {
    UNUSED;
    return outcome(socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0));
}

NATIVE(jint, socketPair), jintArray fds) {
    UNUSED;
    int both[2];
    if (socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0, both) < 0) return -errno;
    const jint found[2] = {both[0], both[1]};
    (*env)->SetIntArrayRegion(env, fds, 0, 2, found);
    return 0;
}

static socklen_t address_of(JNIEnv* env, jbyteArray name, struct sockaddr_un* into) {
    jsize size = (*env)->GetArrayLength(env, name);
    memset(into, 0, sizeof(*into));
    into->sun_family = AF_UNIX;
    if (size > (jsize)sizeof(into->sun_path)) size = sizeof(into->sun_path);
    (*env)->GetByteArrayRegion(env, name, 0, size, (jbyte*)into->sun_path);
    return (socklen_t)(offsetof(struct sockaddr_un, sun_path) + (size_t)size);
}

NATIVE(jint, connect), jint fd, jbyteArray name) {
    UNUSED;
    struct sockaddr_un to;
    const socklen_t size = address_of(env, name, &to);
    return outcome(connect(fd, (struct sockaddr*)&to, size));
}

NATIVE(jint, bind), jint fd, jbyteArray name) {
    UNUSED;
    struct sockaddr_un at;
    const socklen_t size = address_of(env, name, &at);
    return outcome(bind(fd, (struct sockaddr*)&at, size));
}

NATIVE(jint, listen), jint fd, jint backlog) {
    UNUSED;
    return outcome(listen(fd, backlog));
}

NATIVE(jint, accept), jint fd) {
    UNUSED;
    return outcome(accept4(fd, NULL, NULL, SOCK_CLOEXEC | SOCK_NONBLOCK));
}

NATIVE(jint, shutdown), jint fd, jint how) {
    UNUSED;
    return outcome(shutdown(fd, how));
}

NATIVE(jint, close), jint fd) {
    UNUSED;
    return outcome(close(fd));
}

NATIVE(jint, send), jint fd, jbyteArray bytes, jint from, jint size) {
    UNUSED;
    jbyte copy[MOST_BYTES];
    if (size > MOST_BYTES) size = MOST_BYTES;
    (*env)->GetByteArrayRegion(env, bytes, from, size, copy);
    return outcome(send(fd, copy, (size_t)size, MSG_DONTWAIT | MSG_NOSIGNAL));
}

NATIVE(jint, receive), jint fd, jbyteArray into, jint from, jint size) {
    UNUSED;
    jbyte copy[MOST_BYTES];
    if (size > MOST_BYTES) size = MOST_BYTES;
    const ssize_t got = recv(fd, copy, (size_t)size, MSG_DONTWAIT);
    if (got < 0) return -errno;
    (*env)->SetByteArrayRegion(env, into, from, (jsize)got, copy);
    return (jint)got;
}

NATIVE(jint, available), jint fd) {
    UNUSED;
    int size = 0;
    return ioctl(fd, FIONREAD, &size) < 0 ? -errno : size;
}

NATIVE(void, signal), jint fd) {
    UNUSED;
    (void)!send(fd, "!", 1, MSG_DONTWAIT | MSG_NOSIGNAL);
}

NATIVE(jint, sendDescriptor), jint fd, jbyteArray bytes, jint descriptor) {
    UNUSED;
    jbyte copy[256];
    const jsize size = (*env)->GetArrayLength(env, bytes);
    if (size > (jsize)sizeof(copy)) return -EMSGSIZE;
    (*env)->GetByteArrayRegion(env, bytes, 0, size, copy);
    _Alignas(struct cmsghdr) char control[CMSG_SPACE(sizeof(int))];
    memset(control, 0, sizeof(control));
    struct iovec span = {copy, (size_t)size};
    struct msghdr message = {.msg_iov = &span, .msg_iovlen = 1, .msg_control = control, .msg_controllen = sizeof(control)};
    struct cmsghdr* const head = CMSG_FIRSTHDR(&message);
    head->cmsg_level = SOL_SOCKET;
    head->cmsg_type = SCM_RIGHTS;
    head->cmsg_len = CMSG_LEN(sizeof(int));
    memcpy(CMSG_DATA(head), &descriptor, sizeof(int));
    return outcome(sendmsg(fd, &message, MSG_DONTWAIT | MSG_NOSIGNAL));
}

NATIVE(jint, receiveMessage), jint fd, jbyteArray into, jint from, jintArray found, jboolean peeks) {
    UNUSED;
    jbyte copy[2048];
    jint result[2] = {-1, 0};
    size_t room = (size_t)((*env)->GetArrayLength(env, into) - from);
    if (room > sizeof(copy)) room = sizeof(copy);
    _Alignas(struct cmsghdr) char control[CMSG_SPACE(MOST_DESCRIPTORS * sizeof(int))];
    struct iovec span = {copy, room};
    struct msghdr message = {.msg_iov = &span, .msg_iovlen = 1, .msg_control = control, .msg_controllen = sizeof(control)};
    const ssize_t got = recvmsg(fd, &message, MSG_DONTWAIT | MSG_CMSG_CLOEXEC | (peeks ? MSG_PEEK : 0));
    const int failed = errno;
    if (got >= 0) {
        if (message.msg_flags & MSG_CTRUNC) result[1] = 2;
        for (struct cmsghdr* each = CMSG_FIRSTHDR(&message); each; each = CMSG_NXTHDR(&message, each)) {
            if (each->cmsg_level != SOL_SOCKET || each->cmsg_type != SCM_RIGHTS) continue;
            const size_t count = (each->cmsg_len - CMSG_LEN(0)) / sizeof(int);
            for (size_t i = 0; i < count; ++i) {
                int descriptor;
                memcpy(&descriptor, CMSG_DATA(each) + i * sizeof(int), sizeof(int));
                const struct linger none = {0, 0};
                (void)setsockopt(descriptor, SOL_SOCKET, SO_LINGER, &none, sizeof(none));
                if (result[0] < 0) {
                    result[0] = descriptor;
                    continue;
                }
                close(descriptor);
                if (result[1] == 0) result[1] = 1;
            }
        }
        (*env)->SetByteArrayRegion(env, into, from, (jsize)got, copy);
    }
    (*env)->SetIntArrayRegion(env, found, 0, 2, result);
    return got < 0 ? -failed : (jint)got;
}

NATIVE(jint, setOption), jint fd, jint name, jint value) {
    UNUSED;
    const int number = value;
    return outcome(setsockopt(fd, SOL_SOCKET, name, &number, sizeof(number)));
}

NATIVE(jint, peer), jint fd, jintArray into) {
    UNUSED;
    struct ucred peer;
    socklen_t size = sizeof(peer);
    if (getsockopt(fd, SOL_SOCKET, SO_PEERCRED, &peer, &size) < 0) return -errno;
    const jint both[2] = {(jint)peer.uid, (jint)peer.pid};
    (*env)->SetIntArrayRegion(env, into, 0, 2, both);
    return 0;
}

NATIVE(jint, user)) {
    UNUSED;
    return (jint)geteuid();
}

NATIVE(jint, memoryFile), jlong size) {
    UNUSED;
    const unsigned flags = MFD_CLOEXEC | MFD_ALLOW_SEALING;
    int fd = memfd_create("eddy-shm", flags | MFD_NOEXEC_SEAL);
    /* Kernels before 6.3 do not know the flag. */
    if (fd < 0 && errno == EINVAL) fd = memfd_create("eddy-shm", flags);
    if (fd < 0) return -errno;
    if (ftruncate(fd, size) < 0) {
        const int failed = errno;
        close(fd);
        return -failed;
    }
    return fd;
}

NATIVE(jint, addSeals), jint fd, jint seals) {
    UNUSED;
    return outcome(fcntl(fd, F_ADD_SEALS, seals));
}

NATIVE(jint, seal), jint fd) {
    UNUSED;
    return outcome(fcntl(fd, F_ADD_SEALS, SEALS));
}

NATIVE(jint, isMemoryFile), jint fd, jlong size) {
    UNUSED;
    const int found = fcntl(fd, F_GET_SEALS);
    if (found < 0 || (found & SEALS) != SEALS) return 0;
    struct statfs system;
    if (fstatfs(fd, &system) < 0) return -errno;
    /* Those of huge pages may have none when they are touched. */
    if ((unsigned long)system.f_type != TMPFS_MAGIC) return 0;
    struct stat info;
    if (fstat(fd, &info) < 0) return -errno;
    return S_ISREG(info.st_mode) && info.st_size == size;
}

NATIVE(jlong, existingPages), jint fd, jlong offset, jlong size) {
    UNUSED;
    const uint64_t range[2] = {(uint64_t)offset, (uint64_t)size};
    /* cached, dirty, written back, evicted, recently evicted */
    uint64_t counts[5];
    if (syscall(SYS_CACHESTAT, fd, range, counts, 0U) < 0) return -errno;
    return (jlong)(counts[0] + counts[3]);
}

NATIVE(jint, pageSize)) {
    UNUSED;
    return (jint)sysconf(_SC_PAGESIZE);
}

NATIVE(jlong, map), jint fd, jint ring_size, jboolean is_writable) {
    UNUSED;
    const size_t once = HEADER_SIZE + (size_t)ring_size;
    const size_t all = once + (size_t)ring_size;
    const int protection = is_writable ? PROT_READ | PROT_WRITE : PROT_READ;
    /* The room for both first, so that the second one has its place. */
    char* const base = mmap(NULL, all, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    if (base == MAP_FAILED) return -errno;
    if (mmap(base, once, protection, MAP_SHARED | MAP_FIXED, fd, 0) == MAP_FAILED ||
        mmap(base + once, (size_t)ring_size, protection, MAP_SHARED | MAP_FIXED, fd, HEADER_SIZE) == MAP_FAILED) {
        const int failed = errno;
        munmap(base, all);
        return -failed;
    }
    return (jlong)(intptr_t)base;
}

NATIVE(jint, unmap), jlong address, jlong size) {
    UNUSED;
    return outcome(munmap((void*)(intptr_t)address, (size_t)size));
}

NATIVE(jobject, buffer), jlong address, jlong size) {
    (void)type;
    return (*env)->NewDirectByteBuffer(env, (void*)(intptr_t)address, size);
}

NATIVE(void, futexWait), jlong address, jint seen, jlong nanos) {
    UNUSED;
    const struct timespec time = {nanos / 1000000000, nanos % 1000000000};
    /* Not FUTEX_PRIVATE_FLAG: the waker is another process. */
    syscall(SYS_futex, (void*)(intptr_t)address, FUTEX_WAIT, seen, nanos == INT64_MAX ? NULL : &time, NULL, 0);
}

NATIVE(void, futexWake), jlong address) {
    UNUSED;
    syscall(SYS_futex, (void*)(intptr_t)address, FUTEX_WAKE, INT_MAX, NULL, NULL, 0);
}

NATIVE(jboolean, registerFence)) {
    UNUSED;
    return syscall(SYS_membarrier, MEMBARRIER_CMD_REGISTER_GLOBAL_EXPEDITED, 0U, 0) == 0;
}

NATIVE(void, fenceEverywhere)) {
    UNUSED;
    syscall(SYS_membarrier, MEMBARRIER_CMD_GLOBAL_EXPEDITED, 0U, 0);
}

NATIVE(jint, processor)) {
    UNUSED;
    return sched_getcpu();
}

NATIVE(jint, pin), jint processor) {
    UNUSED;
    cpu_set_t set;
    CPU_ZERO(&set);
    CPU_SET((unsigned)processor, &set);
    return outcome(sched_setaffinity(0, sizeof(set), &set));
}

NATIVE(jint, epollCreate)) {
    UNUSED;
    return outcome(epoll_create1(EPOLL_CLOEXEC));
}

NATIVE(jint, epollControl), jint epoll, jint operation, jint fd, jint events, jlong data) {
    UNUSED;
    struct epoll_event event = {.events = (uint32_t)events, .data.u64 = (uint64_t)data};
    return outcome(epoll_ctl(epoll, operation, fd, &event));
}

NATIVE(jint, epollWait), jint epoll, jlongArray data, jintArray events, jint milliseconds) {
    UNUSED;
    struct epoll_event found[MOST_EVENTS];
    jlong tokens[MOST_EVENTS];
    jint what[MOST_EVENTS];
    jsize most = (*env)->GetArrayLength(env, data);
    if (most > MOST_EVENTS) most = MOST_EVENTS;
    const int count = epoll_wait(epoll, found, most, milliseconds);
    if (count < 0) return -errno;
    for (int i = 0; i < count; ++i) {
        tokens[i] = (jlong)found[i].data.u64;
        what[i] = (jint)found[i].events;
    }
    (*env)->SetLongArrayRegion(env, data, 0, count, tokens);
    (*env)->SetIntArrayRegion(env, events, 0, count, what);
    return count;
}

NATIVE(jint, poll), jint fd, jint events, jint milliseconds) {
    UNUSED;
    struct pollfd watched = {fd, (short)events, 0};
    return outcome(poll(&watched, 1, milliseconds));
}
