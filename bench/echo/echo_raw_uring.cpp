// An echo server on io_uring without any library but liburing: one thread, multishot accept and
// receive into a ring of provided buffers, and send(2) at once in the completion's handler. The
// floor that a completion-based library can be held against.
//
//     echo_raw_uring --port N
#include "socket.hpp"

#include <liburing.h>
#include <sys/mman.h>

#include <cerrno>
#include <vector>

namespace {

constexpr unsigned buffer_count = 256;  // a power of two
constexpr unsigned buffer_size = 16 * 1024;
constexpr std::size_t most_unsent = std::size_t{1} << 20;

enum class request : std::uint64_t { accept, receive, send };

struct connection {
    std::vector<char> in_flight;  // the kernel reads it: it does not change until its completion
    std::vector<char> waiting;    // what came meanwhile
    bool ended = false;           // no receive is armed any more
};

io_uring ring;
io_uring_buf_ring* buffer_ring;
char* buffers;
int listener;
std::vector<connection> connections;  // by descriptor

connection& peer_of(int fd) { return connections[static_cast<std::size_t>(fd)]; }

io_uring_sqe* next_entry(request kind, int fd) {
    io_uring_sqe* entry = io_uring_get_sqe(&ring);
    if (!entry) {
        io_uring_submit(&ring);
        entry = io_uring_get_sqe(&ring);
    }
    entry->user_data = static_cast<std::uint64_t>(kind) << 32 | static_cast<std::uint32_t>(fd);
    return entry;
}

// The io_uring_prep_* functions leave user_data as it is.
void arm_accept() {
    io_uring_prep_multishot_accept(next_entry(request::accept, listener), listener, nullptr,
                                   nullptr, SOCK_CLOEXEC);
}

void arm_receive(int fd) {
    io_uring_sqe* entry = next_entry(request::receive, fd);
    io_uring_prep_recv_multishot(entry, fd, nullptr, 0, 0);
    entry->flags |= IOSQE_BUFFER_SELECT;
    entry->buf_group = 0;
}

void give_back(unsigned id) {
    io_uring_buf_ring_add(buffer_ring, buffers + std::size_t{id} * buffer_size, buffer_size,
                          static_cast<unsigned short>(id), io_uring_buf_ring_mask(buffer_count), 0);
    io_uring_buf_ring_advance(buffer_ring, 1);
}

void open_buffers() {
    const auto map = [](std::size_t size) {
        void* at = mmap(nullptr, size, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
        if (at == MAP_FAILED) die("mmap");
        return at;
    };
    buffer_ring = static_cast<io_uring_buf_ring*>(map(buffer_count * sizeof(io_uring_buf)));
    buffers = static_cast<char*>(map(std::size_t{buffer_count} * buffer_size));
    io_uring_buf_reg registration{};
    registration.ring_addr = reinterpret_cast<std::uintptr_t>(buffer_ring);
    registration.ring_entries = buffer_count;
    if (int error = io_uring_register_buf_ring(&ring, &registration, 0); error < 0) {
        errno = -error;
        die("io_uring_register_buf_ring");
    }
    io_uring_buf_ring_init(buffer_ring);
    for (unsigned id = 0; id < buffer_count; ++id) give_back(id);
}

void end_if_idle(int fd) {
    connection& peer = peer_of(fd);
    if (!peer.ended || !peer.in_flight.empty()) return;
    peer = {};
    close(fd);
}

void send_in_flight(int fd) {
    const std::vector<char>& bytes = peer_of(fd).in_flight;
    io_uring_prep_send(next_entry(request::send, fd), fd, bytes.data(), bytes.size(),
                       MSG_NOSIGNAL | MSG_WAITALL);
}

void echo(int fd, const char* bytes, std::size_t size) {
    connection& peer = peer_of(fd);
    if (!peer.in_flight.empty()) {
        peer.waiting.insert(peer.waiting.end(), bytes, bytes + size);
        if (peer.waiting.size() > most_unsent) shutdown(fd, SHUT_RDWR);
        return;
    }
    ssize_t sent = send(fd, bytes, size, MSG_NOSIGNAL | MSG_DONTWAIT);
    if (sent < 0 && errno != EAGAIN && errno != EINTR) {
        shutdown(fd, SHUT_RDWR);  // which ends the receive, too
        return;
    }
    if (sent < 0) sent = 0;
    if (static_cast<std::size_t>(sent) < size) {
        peer.in_flight.assign(bytes + sent, bytes + size);
        send_in_flight(fd);
    }
}

void on_accept(int result, unsigned flags) {
    if (result >= 0) {
        if (connections.size() <= static_cast<std::size_t>(result))
            connections.resize(static_cast<std::size_t>(result) * 2);
        arm_receive(result);
    }
    if (!(flags & IORING_CQE_F_MORE)) arm_accept();
}

void on_receive(int fd, int result, unsigned flags) {
    if (result > 0) {
        const unsigned id = flags >> IORING_CQE_BUFFER_SHIFT;
        echo(fd, buffers + std::size_t{id} * buffer_size, static_cast<std::size_t>(result));
        give_back(id);
    }
    if (flags & IORING_CQE_F_MORE) return;
    if (result > 0 || result == -ENOBUFS) {
        arm_receive(fd);
    } else {
        peer_of(fd).ended = true;
        end_if_idle(fd);
    }
}

void on_send(int fd, int result) {
    connection& peer = peer_of(fd);
    const bool whole = result >= 0 && static_cast<std::size_t>(result) == peer.in_flight.size();
    peer.in_flight.clear();
    if (!whole) {
        shutdown(fd, SHUT_RDWR);
    } else if (!peer.waiting.empty()) {
        peer.in_flight.swap(peer.waiting);
        send_in_flight(fd);
    }
    end_if_idle(fd);
}

}  // namespace

int main(int argc, char** argv) {
    const long port = port_option(argc, argv);
    listener = listen_on(port, 0);
    connections.resize(1024);
    io_uring_params params{};
    params.flags = IORING_SETUP_SINGLE_ISSUER | IORING_SETUP_DEFER_TASKRUN | IORING_SETUP_CQSIZE;
    params.cq_entries = 16 * 1024;
    if (int error = io_uring_queue_init_params(1024, &ring, &params); error < 0) {
        errno = -error;
        die("io_uring_queue_init_params");
    }
    io_uring_register_ring_fd(&ring);
    open_buffers();
    arm_accept();
    say_ready(port);

    for (;;) {
        io_uring_submit_and_wait(&ring, 1);
        io_uring_cqe* entry;
        unsigned head;
        unsigned count = 0;
        io_uring_for_each_cqe(&ring, head, entry) {
            ++count;
            const int fd = static_cast<int>(entry->user_data & 0xffffffff);
            switch (static_cast<request>(entry->user_data >> 32)) {
                case request::accept: on_accept(entry->res, entry->flags); break;
                case request::receive: on_receive(fd, entry->res, entry->flags); break;
                case request::send: on_send(fd, entry->res); break;
            }
        }
        io_uring_cq_advance(&ring, count);
    }
}
