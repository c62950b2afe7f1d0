// Epoll instances that an io-backend polls, as any descriptor of another library.
#include "io/epoll/epoll_watch.hpp"

#include <algorithm>
#include <cerrno>
#include <utility>

namespace eddy {

/// A poll on the instance. Its last completion comes after the watch has gone, so it owns itself.
class epoll_watch::waiter final : public completion {
public:
    waiter(io_backend& where, driver_counts& drivers, observer& to, unique_fd epoll) noexcept
        : io_backend_(&where), drivers_(&drivers), observer_(&to), epoll_(std::move(epoll)) {
        ++drivers.existing;
        ++drivers.open;
        start();
    }

    int fd() const noexcept { return epoll_.get(); }

    void close() noexcept {
        observer_ = nullptr;
        --drivers_->open;
        io_backend_->cancel_poll(*this);
    }

    void on_completion(int, unsigned) override {
        if (observer_) {
            observer_->on_events_ready();
            // It is a level: what was not fetched completes this poll at once.
            return start();
        }
        --drivers_->existing;
        delete this;
    }

private:
    void start() { io_backend_->start_poll(epoll_.get(), readiness::readable, *this); }

    io_backend* io_backend_;
    driver_counts* drivers_;
    observer* observer_;
    unique_fd epoll_;
};

epoll_watch::~epoll_watch() {
    if (waiter_) waiter_->close();
}

result<> epoll_watch::open(io_backend& where, driver_counts& drivers, observer& to) {
    EDDY_ASSERT(!waiter_);
    unique_fd epoll(epoll_create1(EPOLL_CLOEXEC));
    if (!epoll) return fail_errno();
    waiter_ = new waiter(where, drivers, to, std::move(epoll));
    return {};
}

result<> epoll_watch::add(int fd, std::uint32_t events, std::uint64_t data) noexcept {
    epoll_event event{};
    event.events = events;
    event.data.u64 = data;
    if (epoll_ctl(waiter_->fd(), EPOLL_CTL_ADD, fd, &event) < 0) return fail_errno();
    return {};
}

result<> epoll_watch::change(int fd, std::uint32_t events, std::uint64_t data) noexcept {
    epoll_event event{};
    event.events = events;
    event.data.u64 = data;
    if (epoll_ctl(waiter_->fd(), EPOLL_CTL_MOD, fd, &event) < 0) return fail_errno();
    return {};
}

void epoll_watch::remove(int fd) noexcept { epoll_ctl(waiter_->fd(), EPOLL_CTL_DEL, fd, nullptr); }

int epoll_watch::fetch(epoll_event (&into)[batch_size]) noexcept {
    const int count = epoll_wait(waiter_->fd(), into, batch_size, 0);
    EDDY_ASSERT(count >= 0 || errno == EINTR);
    return std::max(count, 0);
}

}  // namespace eddy
