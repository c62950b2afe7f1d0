// Driver of listeners of handed-over sockets: a receiver and a queue of clients.
#include "handoff/listener.hpp"

#include <eddy/base/assert.hpp>
#include <eddy/io/executor.hpp>
#include <eddy/io/loop.hpp>

#include "handoff/client_check.hpp"
#include "io/posix/sockets.hpp"

#include <netinet/in.h>
#include <netinet/tcp.h>
#include <sys/socket.h>

#include <cerrno>
#include <deque>
#include <memory>
#include <new>
#include <utility>

namespace eddy::handoff {
namespace {

/// As of sockets that a TCP listener accepts.
void send_without_delay(int client) noexcept {
    const int on = 1;
    if (is_tcp(client))
        static_cast<void>(::setsockopt(client, IPPROTO_TCP, TCP_NODELAY, &on, sizeof(on)));
}

class handoff_listener final : public listener_driver, private receiver::sink {
public:
    /// After a failure the object may be deleted directly.
    result<> open(std::string_view path, const receiver_options& options) {
        return receiver_.listen(path, options);
    }
    result<> open(handoff_socket from, const receiver_options& options) {
        return receiver_.listen(std::move(from), options);
    }
    ~handoff_listener() { receiver_.close_socket(); }

    bool start(accept_operation& op) override;
    void cancel(accept_operation& op) noexcept override;
    endpoint local() const noexcept override { return receiver_.local(); }
    int native_handle() const noexcept override { return receiver_.native_handle(); }
    void close() noexcept override;
    void pause() noexcept override;
    void resume() noexcept override;
    void set_shared(bool is_shared) noexcept override;
    void observe(failure_observer observer) { observer_ = std::move(observer); }

private:
    static task<void> receive(handoff_listener* self);
    bool start_receiving() noexcept;
    bool give(accept_operation& op);
    void end_waiter(std::error_code why = errc::cancelled) noexcept;
    void end_paused(std::size_t still_pending) noexcept;
    void arrive(arrival what) override;
    void fail_handoff(fault why) noexcept override {
        note(to_string(why));
        end_paused(1);
    }
    void end_group() noexcept override;
    void note(std::string_view reason) const noexcept {
        if (observer_) observer_(reason);
    }

    receiver receiver_{*this};
    std::deque<unique_fd> ready_;
    accept_operation* waiter_ = nullptr;
    failure_observer observer_;
    event closing_;
    bool is_receiving_ = false;  // receive() runs
    bool is_paused_ = false;
};

bool handoff_listener::start(accept_operation& op) {
    EDDY_ASSERT(!waiter_);
    if (give(op)) return true;
    if (is_paused_ && receiver_.pending() == 0) {
        op.set_error(errc::closed);
        return true;
    }
    if (!is_receiving_ && !start_receiving()) {
        op.set_error(errno_code(ENOMEM));
        return true;
    }
    waiter_ = &op;
    return false;
}

/// Completes `op` with the client that came first; false if there is none.
bool handoff_listener::give(accept_operation& op) {
    if (ready_.empty()) return false;
    unique_fd client = std::move(ready_.front());
    ready_.pop_front();
    if (ready_.size() < max_ready_clients && !is_paused_) receiver_.resume();
    auto adopted = loop::current().adopt(std::move(client));
    if (adopted)
        op.set_accepted(std::move(*adopted));
    else
        op.set_error(adopted.error());
    return true;
}

/// Receiving waits in coroutines, which end before the loop's run() returns, as its posted tasks
/// do: so nothing waits when the loop is destroyed after the listener. The next accept() begins
/// anew.
bool handoff_listener::start_receiving() noexcept try {
    // It outlives what the accepting coroutine has inherited.
    const detail::frames_from pool(nullptr);
    // It runs here until its first wait, or not at all for want of memory.
    static_cast<void>(executor::current().dispatch(receive(this)));
    return is_receiving_;
} catch (const std::bad_alloc&) {
    return false;
}

task<void> handoff_listener::receive(handoff_listener* self) {
    self->receiver_.begin();
    self->is_receiving_ = true;
    static_cast<void>(co_await self->closing_.wait());  // or the end of the run
    co_await self->receiver_.end();
    self->is_receiving_ = false;
    if (self->closing_.is_set())
        delete self;
    else
        self->end_waiter();
}

void handoff_listener::arrive(arrival what) {
    if (const std::string_view why = find_fault(what.client.get()); !why.empty()) return note(why);
    send_without_delay(what.client.get());
    ready_.push_back(std::move(what.client));
    if (ready_.size() >= max_ready_clients) receiver_.pause();
}

void handoff_listener::end_group() noexcept {
    if (!waiter_ || !give(*waiter_)) return end_paused(1);
    std::exchange(waiter_, nullptr)->complete_later();
}

/// Ends an accept for which nothing comes any more: no other sender has a message on its way than
/// the ones that the caller knows of.
void handoff_listener::end_paused(std::size_t still_pending) noexcept {
    if (is_paused_ && ready_.empty() && receiver_.pending() <= still_pending)
        end_waiter(errc::closed);
}

void handoff_listener::pause() noexcept {
    EDDY_ASSERT(!closing_.is_set());
    is_paused_ = true;
    receiver_.pause();
    end_paused(0);
}

void handoff_listener::resume() noexcept {
    is_paused_ = false;
    if (ready_.size() < max_ready_clients) receiver_.resume();
}

void handoff_listener::set_shared(bool is_shared) noexcept {
    if (is_shared)
        receiver_.disown_file();
    else
        receiver_.own_file();
}

void handoff_listener::end_waiter(std::error_code why) noexcept {
    if (!waiter_) return;
    accept_operation& op = *std::exchange(waiter_, nullptr);
    op.set_error(why);
    op.complete_later();
}

void handoff_listener::cancel(accept_operation& op) noexcept {
    EDDY_ASSERT(waiter_ == &op);
    end_waiter();
}

void handoff_listener::close() noexcept {
    end_waiter();
    observer_ = nullptr;
    ready_.clear();
    receiver_.refuse_senders();
    closing_.set();
    if (!is_receiving_) delete this;
}

}  // namespace

result<listener> listen(std::string_view path, const receiver_options& options) {
    receiver_options dropping = options;
    dropping.keeps_messages = false;
    auto made = std::make_unique<handoff_listener>();
    if (auto opened = made->open(path, dropping); !opened) return fail(opened.error());
    return listener(*made.release());
}

result<listener> adopt(unique_fd socket, std::string_view path, const receiver_options& options) {
    EDDY_ASSERT(socket);
    auto local = endpoint::unix_path(path);
    if (!local) return fail(errc::bad_address);
    handoff_socket from;
    from.local = *local;
    from.socket.local = *local;
    from.socket.socket = std::move(socket);
    receiver_options dropping = options;
    dropping.keeps_messages = false;
    auto made = std::make_unique<handoff_listener>();
    if (auto opened = made->open(std::move(from), dropping); !opened) return fail(opened.error());
    made->set_shared(true);
    return listener(*made.release());
}

bool observe_failures(listener& of, failure_observer observer) {
    auto* const driver = dynamic_cast<handoff_listener*>(&of.driver());
    if (driver != nullptr) driver->observe(std::move(observer));
    return driver != nullptr;
}

}  // namespace eddy::handoff
