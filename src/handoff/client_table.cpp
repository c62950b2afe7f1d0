// Table of the clients of event streams.
#include "handoff/client_table.hpp"

#include <eddy/base/assert.hpp>
#include <eddy/io/loop.hpp>

#include <netinet/in.h>
#include <netinet/tcp.h>
#include <sys/socket.h>

#include <cerrno>
#include <utility>

namespace eddy::handoff {

std::string_view to_string(loss why) noexcept {
    switch (why) {
        case loss::hung_up: return "client_hung_up";
        case loss::write_failed: return "write_failed";
        case loss::too_slow: return "client_too_slow";
    }
    EDDY_ASSERT(false);
}

client_table::client_table(std::size_t max_backlog, observer& owner, duration finish_time)
    : owner_(owner), max_backlog_(max_backlog), finish_time_(finish_time) {}

client_table::~client_table() { loop::current().disarm(*this); }

result<std::unique_ptr<client_table>> client_table::open(std::uint32_t capacity,
                                                         std::size_t max_backlog, observer& owner,
                                                         duration finish_time) {
    EDDY_ASSERT(capacity > 0 && finish_time > duration::zero());
    std::unique_ptr<client_table> made(new client_table(max_backlog, owner, finish_time));
    socket_bank_options options;
    options.capacity = capacity;
    // The web server may keep its copy of the socket for a while.
    options.shuts_down = true;
    auto bank = socket_bank::open(options, *made);
    if (!bank) return fail(bank.error());
    made->bank_ = std::move(*bank);
    return made;
}

result<std::uint32_t> client_table::add(unique_fd socket, std::string_view first) {
    // A message must not wait until the client has acknowledged the one before. Only TCP has that.
    const int on = 1;
    static_cast<void>(::setsockopt(socket.get(), IPPROTO_TCP, TCP_NODELAY, &on, sizeof(on)));
    // While it has a plain descriptor, one call without waiting is the shortest way.
    ssize_t sent = 0;
    do {
        sent = ::send(socket.get(), first.data(), first.size(), MSG_NOSIGNAL | MSG_DONTWAIT);
    } while (sent < 0 && errno == EINTR);
    if (sent < 0 && errno != EAGAIN) return fail_errno();
    if (sent > 0) first.remove_prefix(static_cast<std::size_t>(sent));
    auto added = bank_->add(std::move(socket));
    if (!added) return added;
    if (sent > 0) bytes_sent_ += static_cast<std::uint64_t>(sent);
    begin(*added, first);
    return added;
}

result<std::uint32_t> client_table::add(stream connection, std::string_view first) {
    auto added = bank_->add(std::move(connection));
    if (added) begin(*added, first);
    return added;
}

client_table::client_state& client_table::at(std::uint32_t client) noexcept {
    EDDY_ASSERT(client < clients_.size());
    client_state& its = clients_[client];
    EDDY_ASSERT(its.now == phase::idle || its.now == phase::writing);
    EDDY_ASSERT(!its.is_finishing);
    return its;
}

void client_table::begin(std::uint32_t client, std::string_view rest) {
    if (client >= clients_.size()) clients_.resize(client + 1);
    client_state& its = clients_[client];
    EDDY_ASSERT(its.now == phase::free && !its.late);
    its.now = phase::idle;
    its.is_finishing = false;
    its.is_awaited = false;
    its.is_late = false;
    its.is_unframed = false;
    its.is_broken = false;
    ++active_;
    if (!rest.empty()) static_cast<void>(send_owned(client, std::string(rest)));
}

bool client_table::send(std::uint32_t client, std::string_view shared) {
    client_state& its = at(client);
    if (its.now == phase::writing) return enqueue(client, shared);
    its.now = phase::writing;
    bytes_sent_ += shared.size();
    bank_->write(client, as_bytes(shared));
    return true;
}

bool client_table::send_owned(std::uint32_t client, std::string bytes) {
    client_state& its = at(client);
    if (its.now == phase::writing) return enqueue(client, bytes);
    if (!its.late) its.late = std::make_unique<backlog>();
    its.late->under_way = std::move(bytes);
    its.now = phase::writing;
    bytes_sent_ += its.late->under_way.size();
    bank_->write(client, as_bytes(its.late->under_way));
    return true;
}

bool client_table::enqueue(std::uint32_t client, std::string_view bytes) {
    client_state& its = clients_[client];
    if (!its.late) its.late = std::make_unique<backlog>();
    if (its.late->waiting.size() + bytes.size() > max_backlog_) {
        lose(client, loss::too_slow);
        return false;
    }
    its.late->waiting += bytes;
    return true;
}

void client_table::finish(std::uint32_t client) { end(client); }

void client_table::break_off(std::uint32_t client) {
    at(client).is_broken = true;
    end(client);
}

void client_table::end(std::uint32_t client) {
    client_state& its = at(client);
    --active_;
    its.is_finishing = true;
    if (its.now == phase::idle) return close(client, !its.is_broken);
    loop& here = loop::current();
    if (!armed()) here.arm(*this, here.after(finish_time_));
}

void client_table::fire() noexcept {
    bool is_needed = false;
    for (std::uint32_t i = 0; i < clients_.size(); ++i) {
        client_state& its = clients_[i];
        if (its.now != phase::writing || !its.is_finishing) continue;
        if (its.is_late) {
            close(i, false);
            owner_.on_unsent();
        } else {
            its.is_late = is_needed = true;
        }
    }
    if (is_needed) loop::current().arm(*this, loop::current().after(finish_time_));
    flush();
}

std::uint32_t client_table::unsent() const noexcept {
    std::uint32_t count = active_;
    for (const client_state& each : clients_)
        if (each.now == phase::writing && each.is_finishing) ++count;
    return count;
}

void client_table::abandon(std::uint32_t client) {
    client_state& its = at(client);
    --active_;
    its.is_finishing = true;
    close(client, false);
}

void client_table::abandon_all() {
    for (std::uint32_t i = 0; i < clients_.size(); ++i) {
        client_state& its = clients_[i];
        if (its.now != phase::idle && its.now != phase::writing) continue;
        its.is_finishing = true;
        close(i, false);
    }
    active_ = 0;
}

void client_table::notify_when_idle(std::uint32_t client) noexcept {
    EDDY_ASSERT(is_writing(client));
    at(client).is_awaited = true;
}

void client_table::flush() { bank_->flush(); }

void client_table::lose(std::uint32_t client, loss why) noexcept {
    const bool is_of_owner = !clients_[client].is_finishing;
    clients_[client].is_finishing = true;
    close(client, false);
    if (!is_of_owner) return;
    --active_;
    owner_.on_loss(client, why);
}

void client_table::close(std::uint32_t client, bool is_whole) noexcept {
    client_state& its = clients_[client];
    its.now = phase::closing;
    its.is_unframed && !is_whole ? bank_->reset(client) : bank_->close(client);
}

void client_table::on_written(std::uint32_t slot, int result) noexcept {
    client_state& its = clients_[slot];
    if (its.now == phase::closing) return;
    EDDY_ASSERT(its.now == phase::writing);
    if (result < 0) return lose(slot, loss::write_failed);
    if (its.late && !its.late->waiting.empty()) {
        its.late->under_way = std::exchange(its.late->waiting, {});
        bytes_sent_ += its.late->under_way.size();
        return bank_->write(slot, as_bytes(its.late->under_way));
    }
    its.late.reset();
    its.now = phase::idle;
    if (its.is_finishing) return close(slot, !its.is_broken);
    if (std::exchange(its.is_awaited, false)) owner_.on_idle(slot);
}

void client_table::on_hangup(std::uint32_t slot) noexcept {
    if (clients_[slot].now != phase::closing) lose(slot, loss::hung_up);
}

void client_table::on_closed(std::uint32_t slot) noexcept {
    client_state& its = clients_[slot];
    EDDY_ASSERT(its.now == phase::closing);
    its.late.reset();
    its.now = phase::free;
    closed_.set();
}

task<result<>> client_table::all_closed() {
    while (bank_->size() > 0) {
        closed_.reset();
        if (auto woken = co_await closed_.wait(); !woken) co_return woken;
    }
    co_return result<>();
}

}  // namespace eddy::handoff
