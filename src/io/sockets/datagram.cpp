// Glue between a message socket's operations and its driver, and the driver of a closed socket.
#include <eddy/io/datagram.hpp>

namespace eddy {
namespace {

class closed_messaging final : public datagram_driver {
public:
    bool start(receive_from_operation& op) override {
        op.set_error(errc::closed);
        return true;
    }
    bool start(send_datagrams_operation& op) override {
        op.set_error(errc::closed);
        return true;
    }
    // Operations never wait on it, so there is nothing to cancel.
    void cancel(receive_from_operation&) noexcept override {}
    void cancel(send_datagrams_operation&) noexcept override {}
    result<> try_receive(datagram_message&) noexcept override { return fail(errc::closed); }
    result<std::size_t> try_send(std::span<const outgoing_datagram>) noexcept override {
        return fail(errc::closed);
    }
    result<> connect(const endpoint&) noexcept override { return fail(errc::closed); }
    result<> set(const datagram_options&) noexcept override { return fail(errc::closed); }
    result<> set_member(const endpoint&, std::uint32_t, bool) noexcept override {
        return fail(errc::closed);
    }
    endpoint local() const noexcept override { return {}; }
    endpoint peer() const noexcept override { return {}; }
    int native_handle() const noexcept override { return -1; }
    void close() noexcept override {}
};

constinit closed_messaging the_closed_messaging;

}  // namespace

datagram_driver& closed_datagram_driver() noexcept { return the_closed_messaging; }

bool receive_from_operation::start() { return driver_->start(*this); }
void receive_from_operation::on_cancel() noexcept { driver_->cancel(*this); }

bool send_datagrams_operation::start() {
    if (count_ > datagram::max_batch) {
        set_error(errc::limit_reached);
        return true;
    }
    if (count_ == 0) return true;
    return driver_->start(*this);
}
void send_datagrams_operation::on_cancel() noexcept { driver_->cancel(*this); }

}  // namespace eddy
