// A server of lines without any library: one thread and level-triggered epoll. Each line goes to
// all other clients, or with --echo to the one that has sent it.
//
//     line_epoll --port N [--echo 1]
#include "../echo/socket.hpp"

#include <sys/epoll.h>

#include <cerrno>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

namespace {

constexpr int events_a_turn = 256;
constexpr std::size_t receive_size = 64 * 1024;
constexpr std::size_t most_unsent = 64 * 1024 * 1024;

struct client {
    int fd = -1;
    std::size_t place = 0;  // among all
    std::string begun;      // of a line
    std::string unsent;
    bool is_dirty = false;  // has got bytes in this turn
    bool is_full = false;   // waits for EPOLLOUT
};

std::vector<std::unique_ptr<client>> all;
std::vector<client*> dirty;
bool echoes = false;
int poller;

void watch(int how, client& of, std::uint32_t events) {
    epoll_event event{};
    event.events = events;
    event.data.ptr = &of;
    if (epoll_ctl(poller, how, of.fd, &event) < 0) die("epoll_ctl");
}

void accept_all(int listener) {
    for (;;) {
        const int fd = accept4(listener, nullptr, nullptr, SOCK_NONBLOCK | SOCK_CLOEXEC);
        if (fd < 0) return;
        auto made = std::make_unique<client>();
        made->fd = fd;
        made->place = all.size();
        watch(EPOLL_CTL_ADD, *made, EPOLLIN);
        all.push_back(std::move(made));
    }
}

void end(client& of) {
    close(of.fd);
    std::erase(dirty, &of);
    const std::size_t place = of.place;
    std::swap(all[place], all.back());
    all[place]->place = place;
    all.pop_back();
}

void give(client& to, std::string_view lines) {
    if (to.unsent.size() + lines.size() > most_unsent) return;
    to.unsent.append(lines);
    if (to.is_dirty) return;
    to.is_dirty = true;
    dirty.push_back(&to);
}

/// Takes the whole lines of what has come.
void receive(client& from) {
    static char bytes[receive_size];
    const ssize_t size = recv(from.fd, bytes, sizeof bytes, 0);
    if (size < 0 && (errno == EAGAIN || errno == EINTR)) return;
    if (size <= 0) return end(from);
    std::string_view came(bytes, static_cast<std::size_t>(size));
    const std::size_t last = came.rfind('\n');
    if (last == std::string_view::npos) {
        from.begun.append(came);
        return;
    }
    std::string_view lines = came.substr(0, last + 1);
    std::string joined;
    if (!from.begun.empty()) {
        joined = from.begun + std::string(lines);
        lines = joined;
    }
    if (echoes) {
        give(from, lines);
    } else {
        for (const auto& each : all)
            if (each.get() != &from) give(*each, lines);
    }
    from.begun.assign(came.substr(last + 1));
}

void flush(client& to) {
    std::size_t sent = 0;
    while (sent < to.unsent.size()) {
        const ssize_t size =
            send(to.fd, to.unsent.data() + sent, to.unsent.size() - sent, MSG_NOSIGNAL);
        if (size < 0) break;
        sent += static_cast<std::size_t>(size);
    }
    to.unsent.erase(0, sent);
    const bool is_full = !to.unsent.empty();
    if (is_full != to.is_full) watch(EPOLL_CTL_MOD, to, is_full ? EPOLLIN | EPOLLOUT : EPOLLIN);
    to.is_full = is_full;
}

}  // namespace

int main(int argc, char** argv) {
    const long port = port_option(argc, argv);
    echoes = number_option(argc, argv, "--echo", 0, 0, 1) == 1;
    client listener;
    listener.fd = listen_on(port, SOCK_NONBLOCK);
    poller = epoll_create1(EPOLL_CLOEXEC);
    if (poller < 0) die("epoll_create1");
    watch(EPOLL_CTL_ADD, listener, EPOLLIN);
    say_ready(port);

    epoll_event events[events_a_turn];
    for (;;) {
        const int count = epoll_wait(poller, events, events_a_turn, -1);
        for (int i = 0; i < count; ++i) {
            client& which = *static_cast<client*>(events[i].data.ptr);
            if (&which == &listener)
                accept_all(listener.fd);
            else if ((events[i].events & EPOLLOUT) != 0)
                flush(which);
            else
                receive(which);
        }
        for (std::size_t i = 0; i < dirty.size(); ++i) {
            dirty[i]->is_dirty = false;
            if (!dirty[i]->is_full) flush(*dirty[i]);
        }
        dirty.clear();
    }
}
