// Glue between the operations of streams and listeners and their drivers, and the drivers of closed
// handles.
#include <eddy/io/stream.hpp>

#include "base/files/descriptors.hpp"

#include <fcntl.h>

namespace eddy {
namespace {

class closed_driver final : public stream_driver {
public:
    bool start(read_operation& op) override {
        op.set_error(errc::closed);
        return true;
    }
    bool start(write_operation& op) override {
        op.set_error(errc::closed);
        return true;
    }
    result<std::size_t> try_write(const_bytes) noexcept override { return fail(errc::closed); }
    result<std::size_t> try_send_file(const_bytes, int, std::uint64_t,
                                      std::size_t) noexcept override {
        return fail(errc::closed);
    }
    // Operations never wait on it, so there is nothing to cancel.
    void cancel(read_operation&) noexcept override {}
    void cancel(write_operation&) noexcept override {}
    result<> shutdown_write() noexcept override { return fail(errc::closed); }
    endpoint local() const noexcept override { return {}; }
    endpoint peer() const noexcept override { return {}; }
    int native_handle() const noexcept override { return -1; }
    void close() noexcept override {}
};

class closed_accepting final : public listener_driver {
public:
    bool start(accept_operation& op) override {
        op.set_error(errc::closed);
        return true;
    }
    void cancel(accept_operation&) noexcept override {}
    endpoint local() const noexcept override { return {}; }
    int native_handle() const noexcept override { return -1; }
    void close() noexcept override {}
};

constinit closed_driver the_closed_driver;
constinit closed_accepting the_closed_accepting;

}  // namespace

stream_driver& closed_stream_driver() noexcept { return the_closed_driver; }
listener_driver& closed_listener_driver() noexcept { return the_closed_accepting; }

result<std::size_t> stream_driver::try_write(const_bytes) noexcept { return 0; }

result<std::size_t> stream_driver::try_send_file(const_bytes, int, std::uint64_t,
                                                 std::size_t) noexcept {
    return fail(errc::unsupported);
}

bool read_operation::start() { return driver_->start(*this); }
void read_operation::on_cancel() noexcept { driver_->cancel(*this); }

void read_exactly_operation::count() noexcept {
    into_ = into_.subspan(size_);
    total_ += size_;
    if (received_size_) *received_size_ = total_;
    bytes_this_turn_ += size_;
    ++reads_this_turn_;
    had_its_share_ = bytes_this_turn_ >= most_bytes_a_turn || reads_this_turn_ >= most_reads_a_turn;
    size_ = 0;
}

bool read_exactly_operation::start() {
    // An empty span would ask the driver for a lease.
    return into_.empty() || (driver_->start(*this) && !goes_on());
}

/// The driver still exists: it calls this, or has just been called. A coroutine that read part by
/// part could find it closed.
bool read_exactly_operation::goes_on() {
    while (!error_) {
        count();
        if (into_.empty()) return false;
        if (driver_->start(*this)) continue;
        bytes_this_turn_ = 0;
        reads_this_turn_ = 0;
        had_its_share_ = false;
        return true;
    }
    return false;
}

bool write_operation::start() {
    // Empty pieces in front would look like a finished write to a driver.
    if (advance(0)) return true;
    return driver_->start(*this);
}
void write_operation::on_cancel() noexcept { driver_->cancel(*this); }

bool write_operation::advance(std::size_t size) noexcept {
    while (count_ > 0) {
        const std::size_t left = pieces_[0].size() - offset_;
        if (size < left) {
            offset_ += size;
            return false;
        }
        size -= left;
        offset_ = 0;
        ++pieces_;
        --count_;
    }
    EDDY_ASSERT(size == 0);
    return true;
}

result<unique_fd> stream::detach() {
    // A second descriptor, since the driver closes its own only after its last completion.
    unique_fd copy(fcntl(native_handle(), F_DUPFD_CLOEXEC, 0));
    if (!copy) return fail_errno();
    close();
    // The copy must not keep a number of the reserve when the first one, which is below, is free.
    descriptors::lower(copy);
    return copy;
}

bool accept_operation::start() { return driver_->start(*this); }
void accept_operation::on_cancel() noexcept { driver_->cancel(*this); }

}  // namespace eddy
