// Epoll instance beside a loop's io-backend, on which that io-backend waits: for sockets by the
// thousand whose events carry a number instead of an object.
#pragma once

#include <eddy/base/result.hpp>

#include "io/io_backend.hpp"
#include "io/posix/sockets.hpp"

#include <sys/epoll.h>

#include <cstdint>

namespace eddy {

/// Notifies its observer, from the loop's turn, while events wait to be fetched.
class epoll_watch {
public:
    class observer {
    public:
        /// Fetch at least some; it is called again while more wait. It must not destroy the watch.
        virtual void on_events_ready() noexcept = 0;

    protected:
        ~observer() = default;
    };

    epoll_watch() noexcept = default;
    ~epoll_watch();
    epoll_watch(const epoll_watch&) = delete;
    epoll_watch& operator=(const epoll_watch&) = delete;

    /// `drivers` counts the wait until its last completion, which the io-backend must outlive.
    /// Errors are epoll_create1(2)'s. Once.
    result<> open(io_backend& where, driver_counts& drivers, observer& to);

    /// Errors are epoll_ctl(2)'s.
    result<> add(int fd, std::uint32_t events, std::uint64_t data) noexcept;
    /// Reports anew what is true by now.
    result<> change(int fd, std::uint32_t events, std::uint64_t data) noexcept;
    /// Before `fd` is closed, since another process may share the open file description.
    void remove(int fd) noexcept;

    static constexpr int batch_size = 256;
    /// Fetches at most batch_size events without waiting; how many.
    int fetch(epoll_event (&into)[batch_size]) noexcept;

private:
    class waiter;

    waiter* waiter_ = nullptr;  // deletes itself after its last completion
};

}  // namespace eddy
