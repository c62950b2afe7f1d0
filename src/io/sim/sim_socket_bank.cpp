// Coroutines of the simulated bank. They share a connection with its slot, since they end in a
// later turn than a close() or the end of the bank.
#include "io/sim/sim_socket_bank.hpp"

#include <eddy/base/frame_pool.hpp>
#include <eddy/io/event.hpp>
#include <eddy/io/executor.hpp>
#include <eddy/io/scope.hpp>

#include "io/sim/sim_stream.hpp"

#include <array>
#include <cerrno>
#include <cstddef>
#include <memory>
#include <utility>

namespace eddy {
namespace {

// Flags of a slot, beside bank_slot::is_queued.
constexpr std::uint32_t is_closing = 1;
constexpr std::uint32_t is_begun = 2;    // its write waits for flush()
constexpr std::uint32_t is_writing = 4;  // its write waits for room

int to_errno(std::error_code error) noexcept {
    if (!error) return 0;
    if (error == errc::cancelled) return -ECANCELED;
    return error.category() == std::generic_category() ? -error.value() : -EIO;
}

}  // namespace

struct sim_socket_bank::connection {
    sim_socket_bank* bank = nullptr;  // null once it is gone
    std::uint32_t slot = 0;
    std::uint32_t tasks = 0;  // that use this
    stream peer;
    const_bytes rest;  // of a write that waits
};

/// The scope of the bank's coroutines, which outlives the bank until they have ended.
struct sim_socket_bank::coroutines {
    static task<void> run(std::shared_ptr<coroutines> self) {
        co_await with_scope([&self](scope& children) -> task<> {
            self->children = &children;
            for (task<void>& each : std::exchange(self->early, {})) children.spawn(std::move(each));
            static_cast<void>(co_await self->over.wait());
            self->children = nullptr;
        });
    }

    using step = task<void>(std::shared_ptr<connection>);

    void spawn(step* what, const std::shared_ptr<connection>& of) {
        // It outlives what the caller has inherited.
        const detail::frames_from pool(nullptr);
        if (children)
            children->spawn(what(of));
        else
            early.push_back(what(of));
    }

    scope* children = nullptr;
    std::vector<task<void>> early;  // begun before the loop ran
    event over;
};

sim_socket_bank::sim_socket_bank(bank_observer& to)
    : batching_bank(to), coroutines_(std::make_shared<coroutines>()) {}

result<std::unique_ptr<socket_bank>> sim_socket_bank::open(const socket_bank_options& options,
                                                           bank_observer& to) {
    auto made = std::make_unique<sim_socket_bank>(to);
    if (auto mapped = made->slots_.open(options.capacity); !mapped) return fail(mapped.error());
    const detail::frames_from pool(nullptr);
    if (auto begun = executor::current().dispatch(coroutines::run(made->coroutines_)); !begun)
        return fail(begun.error());
    return made;
}

sim_socket_bank::~sim_socket_bank() {
    for (const auto& each : connections_)
        if (each) {
            each->bank = nullptr;
            each->peer.close();
        }
    coroutines_->over.set();
}

result<std::uint32_t> sim_socket_bank::add(unique_fd) { return fail(errc::unsupported); }

result<std::uint32_t> sim_socket_bank::add(stream from) {
    if (slots_.is_full()) return fail(errc::limit_reached);
    const std::uint32_t slot = slots_.take();
    if (connections_.size() == slot) connections_.emplace_back();
    auto made = std::make_shared<connection>();
    made->bank = this;
    made->slot = slot;
    made->peer = std::move(from);
    made->tasks = 1;
    connections_[slot] = made;
    coroutines_->spawn(read_to_end, made);
    return slot;
}

void sim_socket_bank::write(std::uint32_t slot, const_bytes bytes) {
    bank_slot& to = slots_[slot];
    EDDY_ASSERT(connections_[slot] && !to.has(is_closing | is_begun | is_writing));
    EDDY_ASSERT(!bytes.empty() && bytes.size() <= UINT32_MAX);
    connections_[slot]->rest = bytes;
    to.set(is_begun);
    begin(slot);
}

void sim_socket_bank::close(std::uint32_t slot) {
    bank_slot& one = slots_[slot];
    EDDY_ASSERT(connections_[slot] && !one.has(is_closing));
    connections_[slot]->peer.close();
    one.clear(is_begun);
    one.set(is_closing);
    begin(slot);
}

void sim_socket_bank::reset(std::uint32_t slot) {
    EDDY_ASSERT(connections_[slot]);
    auto* const its = dynamic_cast<sim_stream*>(&connections_[slot]->peer.driver());
    EDDY_ASSERT(its);
    its->reset_peer();
    close(slot);
}

void sim_socket_bank::begin(std::uint32_t slot) noexcept {
    begun_.push(slots_, slot);
    begin_work();
}

void sim_socket_bank::run_batch() {
    for (std::uint32_t left = begun_.size(); left > 0; --left) {
        const std::uint32_t slot = begun_.pop(slots_);
        if (!slots_[slot].has(is_closing)) {
            send(slot);
        } else if (connections_[slot]->tasks == 0) {
            connections_[slot].reset();
            slots_.give_back(slot);
            to().on_closed(slot);
        }
    }
}

void sim_socket_bank::send(std::uint32_t slot) {
    bank_slot& from = slots_[slot];
    if (!from.has(is_begun)) return;
    from.clear(is_begun);
    connection& over = *connections_[slot];
    const result<std::size_t> written = over.peer.try_write(over.rest);
    if (!written) return to().on_written(slot, to_errno(written.error()));
    over.rest = over.rest.subspan(*written);
    if (over.rest.empty()) return to().on_written(slot, 0);
    from.set(is_writing);
    ++over.tasks;
    coroutines_->spawn(write_rest, connections_[slot]);
}

// Both yield first, so that nothing is reported inside of add() or in the middle of a batch.

task<void> sim_socket_bank::read_to_end(std::shared_ptr<connection> of) {
    std::array<std::byte, 256> memory;
    const mutable_bytes dropped(memory);
    std::error_code error;
    co_await loop::current().yield();
    while (!error) {
        const result<std::size_t> got = co_await of->peer.read_some(dropped);
        if (!got) error = got.error();
    }
    --of->tasks;
    if (of->bank) of->bank->on_read_end(of->slot, error);
}

task<void> sim_socket_bank::write_rest(std::shared_ptr<connection> of) {
    co_await loop::current().yield();
    const result<> written = co_await of->peer.write_all(of->rest);
    --of->tasks;
    if (of->bank) of->bank->on_write_end(of->slot, written ? std::error_code() : written.error());
}

void sim_socket_bank::on_read_end(std::uint32_t slot, std::error_code error) noexcept {
    report([&] {
        if (slots_[slot].has(is_closing))
            begin(slot);
        else if (error != errc::cancelled)  // that is the end of the loop's work
            to().on_hangup(slot);
    });
}

void sim_socket_bank::on_write_end(std::uint32_t slot, std::error_code error) noexcept {
    report([&] {
        slots_[slot].clear(is_writing);
        if (slots_[slot].has(is_closing))
            begin(slot);
        else
            to().on_written(slot, to_errno(error));
    });
}

}  // namespace eddy
