// Loop pools: starting the loops, assigning connections to them, and ending them.
#include "serving/loop_pool.hpp"

#include <eddy/base/assert.hpp>
#include <eddy/io/loop.hpp>
#include <eddy/io/scope.hpp>

#include "serving/arriving_clients.hpp"

#include <new>
#include <utility>

namespace eddy::serving {
namespace {

task<std::unique_ptr<loop_worker>> make_there(loop_pool::factory make, worker_place place) {
    co_return make(place);
}

task<void> destroy(std::unique_ptr<loop_worker> gone) {
    gone.reset();
    co_return;
}

task<void> destroy_there(executor where, std::unique_ptr<loop_worker> gone) {
    static_cast<void>(co_await resume_on(where, destroy(std::move(gone))));
}

task<void> drain_there(executor where, loop_worker& its, duration limit) {
    static_cast<void>(co_await resume_on(where, its.drain(limit)));
}

}  // namespace

loop_pool::~loop_pool() { EDDY_ASSERT(!here_ && others_.empty()); }

result<> loop_pool::start_threads(std::size_t threads, std::string thread_name) {
    EDDY_ASSERT(!here_ && loops_.empty());
    if (threads < 2) return {};
    if (loop::current().kind() == io_backend_kind::sim) {
        loops_.assign(threads, executor::current());
        return {};
    }
    loop_group_options options;
    options.threads = threads;
    options.loop.kind = loop::current().kind();
    options.name = std::move(thread_name);
    auto started = loop_group::start(options);
    if (!started) return fail(started.error());
    threads_ = std::move(*started);
    for (std::size_t i = 0; i < threads_->size(); ++i) loops_.push_back(threads_->executor(i));
    return {};
}

task<result<>> loop_pool::make_workers(factory make) {
    worker_place place{limits_, events_, 0, loops_.size() + 1};
    here_ = make(place);
    for (const executor& where : loops_) {
        ++place.index;
        auto made = co_await resume_on(where, make_there(make, place));
        if (!made) co_return fail(made.error());
        others_.push_back({where, std::move(*made)});
    }
    co_return result<>();
}

/// The worker with the fewest connections, round robin among equals.
std::size_t loop_pool::choose_other() noexcept {
    EDDY_ASSERT(!others_.empty());
    std::size_t chosen = next_++ % others_.size();
    for (std::size_t i = 1; i < others_.size(); ++i) {
        const std::size_t other = (chosen + i) % others_.size();
        if (others_[other].its->slots().taken() < others_[chosen].its->slots().taken())
            chosen = other;
    }
    return chosen;
}

void loop_pool::assign(std::vector<passed_client> moved) {
    EDDY_ASSERT(here_);
    if (moved.empty()) return;
    if (others_.empty()) {
        for (passed_client& each : moved) here_->take_moved(std::move(each), nullptr);
        return;
    }
    struct assigned_client {
        passed_client its;
        connection_slot slot;
    };
    std::vector<std::vector<assigned_client>> groups(others_.size());
    for (passed_client& each : moved) {
        EDDY_ASSERT(each.socket);
        const std::size_t chosen = choose_other();
        groups[chosen].push_back({std::move(each), others_[chosen].its->slots().take()});
    }
    auto arriving = std::make_shared<arriving_clients>();
    std::vector<std::shared_ptr<event>> gates;
    for (const remote_worker& each : others_) gates.push_back(arriving->gate_of(each.where));
    for (std::size_t i = 0; i < others_.size(); ++i) {
        loop_worker* const its = others_[i].its.get();
        const auto posted = others_[i].where.post(
            [its, arriving, gate = std::move(gates[i]), group = std::move(groups[i])]() mutable {
                its->hold_until(std::move(gate));
                for (assigned_client& each : group)
                    its->take_moved(std::move(each.its), std::move(each.slot));
            });
        if (!posted) here_->note_lost("its thread cannot take more", posted.error());
    }
}

task<std::vector<passed_client>> loop_pool::move_clients() {
    std::vector<passed_client> all;
    if (here_) all = co_await here_->move_clients();
    for (const remote_worker& each : others_) {
        auto its = co_await resume_on(each.where, each.its->move_clients());
        if (!its) continue;
        for (passed_client& one : *its) all.push_back(std::move(one));
    }
    co_return all;
}

void loop_pool::assign(stream accepted, const served_listener& from) {
    const preamble first = from.preamble_of(accepted);
    const bool has_steps = from.has_steps(first);
    if (others_.empty()) {
        if (!has_steps) return here_->take(std::move(accepted), nullptr);
        // A handshake counts as a connection while it is under way.
        return here_->adopt(std::move(accepted), from, here_->slots().take(),
                            limits_.handshakes.begin(), first);
    }
    const remote_worker& next = others_[choose_other()];
    loop_worker* const its = next.its.get();
    connection_slot slot = its->slots().take();
    handshake begun = has_steps ? limits_.handshakes.begin() : nullptr;
    result<> posted;
    if (next.where.is_current()) {
        posted = next.where.post([its, &from, first, peer = std::move(accepted),
                                  taken = std::move(slot), shaking = std::move(begun)]() mutable {
            its->adopt(std::move(peer), from, std::move(taken), std::move(shaking), first);
        });
    } else {
        result<unique_fd> socket = accepted.detach();
        if (!socket) {
            here_->note_lost("its socket cannot be given to another thread", socket.error());
            return;
        }
        posted = next.where.post([its, &from, first, fd = std::move(*socket),
                                  taken = std::move(slot), shaking = std::move(begun)]() mutable {
            its->adopt(std::move(fd), from, std::move(taken), std::move(shaking), first);
        });
    }
    if (!posted) here_->note_lost("its thread cannot take more", posted.error());
}

task<void> loop_pool::drain(duration limit) {
    scope draining;
    for (const remote_worker& each : others_)
        draining.spawn(drain_there(each.where, *each.its, limit));
    if (here_) draining.spawn(here_->drain(limit));
    co_await draining.join();
}

void loop_pool::end_drain() noexcept {
    try {
        post_to_all([](loop_worker& of) { of.end_drain(); });
    } catch (const std::bad_alloc&) {  // NOLINT(bugprone-empty-catch): the drain has its limit
    }
}

task<void> loop_pool::end(std::function<void(loop_worker& last)> retire) {
    // Out of the list first: it may be counted and changed while this waits. All at once: one after
    // the other, each of up to max_threads would add its way to its thread and back.
    std::vector<remote_worker> leaving = std::exchange(others_, {});
    scope ending;
    for (remote_worker& last : leaving) {
        retire(*last.its);
        ending.spawn(destroy_there(last.where, std::move(last.its)));
    }
    co_await ending.join();
    loops_.clear();
    threads_.reset();
    if (here_) retire(*here_);
    here_.reset();
}

}  // namespace eddy::serving
