// Slices of a snapshot between turns of the loop; each replica's own task sends them.
#include "runtime/cache/master_side.hpp"

#include <eddy/io/loop.hpp>

#include "cache/clients/waits.hpp"
#include "cache/engine/engine_state.hpp"
#include "cache/rdb/snapshot.hpp"
#include "cache/script/script_gap.hpp"
#include "runtime/cache/yield.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <chrono>
#include <memory>
#include <new>
#include <utility>

namespace eddy::runtime::cache {
namespace {

using eddy::cache::replica;
using eddy::cache::replication;
using eddy::cache::rdb::snapshot;

/// What is sent to all takers as one piece.
constexpr std::size_t piece_bytes = 256 * 1024;
/// Of a snapshot in one go: some 100 us.
constexpr std::size_t slice_bytes = 48 * 1024;
/// Between polls while another snapshot is written.
constexpr duration snapshot_pause = std::chrono::milliseconds(20);
constexpr duration busy_pause = std::chrono::milliseconds(100);
/// Between polls, before a stop, of what the replicas have acknowledged.
constexpr duration poll_pause = std::chrono::milliseconds(5);
/// Without replicas only the backlog's end is polled.
constexpr duration idle_pause = std::chrono::seconds(1);

}  // namespace

task<void> master_side::make_copies() {
    eddy::cache::script_gap gap(context_.engine);
    for (;;) {
        copies_.reset();
        if (!links().copy_is_due()) {
            if (!co_await copies_.wait()) co_return;
            context_.update_time();
            continue;
        }
        // Half of what a script does must not be in a copy without the other half.
        if (!gap.is_there(snapshot::may_begin(context_.engine))) {
            if (!co_await loop::current().sleep_for(snapshot_pause)) co_return;
            context_.update_time();
            continue;
        }
        gap.release();
        context_.update_time();
        co_await make_copy();
        cancel_source* const source = co_await current_source();
        if (source != nullptr && source->requested()) co_return;
    }
}

task<void> master_side::make_copy() {
    cancel_source* const source = co_await current_source();
    replication& its = links();
    eddy::cache::rdb::snapshot_options options;
    // A master's stream is forwarded as it comes, and may not name its database for long.
    if (its.is_replica()) options.stream_database = its.stream_database;
    snapshot* const data = snapshot::begin(context_.engine, options);
    std::shared_ptr<eddy::cache::full_copy> copy;
    try {
        copy = its.begin_copy();
    } catch (...) {
        data->end();
        throw;
    }
    const std::uint64_t keys = data->keys();
    const std::size_t takers = its.takers(*copy);
    std::uint64_t bytes = 0;
    const char* fault = nullptr;
    try {
        byte_buffer out;
        while (its.takers(*copy) > 0) {
            if (copy->pieces.size() >= eddy::cache::full_copy::max_pieces) {
                copies_.reset();
                if (!co_await copies_.wait()) break;
                continue;
            }
            const snapshot::status now =
                data->step(out, std::min(out.size() + slice_bytes, piece_bytes));
            if (now == snapshot::status::failed) {
                fault = data->fault();
                break;
            }
            const bool is_last = now == snapshot::status::done;
            if (is_last || out.size() >= piece_bytes) {
                bytes += out.size();
                its.add_piece(*copy, std::move(out), is_last);
                out = byte_buffer();
            }
            if (is_last) break;
            co_await yield();
            if (source != nullptr && source->requested()) break;
            context_.update_time();
        }
    } catch (const std::bad_alloc&) {
        fault = "there is no memory";
    }
    data->end();
    if (!copy->complete) its.give_up(*copy);
    while (snapshot::is_clearing(context_.engine)) {
        static_cast<void>(context_.engine.upkeep());
        co_await yield();
    }
    context_.ask_upkeep();
    if (copy->complete) {
        context_.events.write(fmt::format("made a copy of {} keys, {} bytes, for {} {}", keys,
                                          bytes, takers, takers == 1 ? "replica" : "replicas"));
        co_return;
    }
    if (fault != nullptr) {
        ++context_.counted.errors;
        context_.events.write(fmt::format("no copy for replicas: {}", fault));
    }
}

replication::output master_side::next_output(client& to) {
    const loop_lock lock(context_.lockable.get());
    // The session is a replica as long as it lives, which is longer than the task that feeds it.
    return links().next_output(*replication::find(*to.session));
}

/// True when that was all.
bool master_side::note_sent(client& to, const replication::output& sent) {
    const loop_lock lock(context_.lockable.get());
    context_.update_time();
    replica& of = *replication::find(*to.session);
    links().note_sent(of, sent);
    return of.copy_only && of.now == replica::stage::copied;
}

task<void> master_side::feed(client& to, counters& counted) {
    event& grown = to.push_mode->feed;
    for (;;) {
        grown.reset();
        const replication::output next = next_output(to);
        if (next.text.empty()) {
            if (!co_await grown.wait()) co_return;
            continue;
        }
        if (!co_await to.socket.write_all(as_bytes(next.text))) {
            to.close();
            co_return;
        }
        to.touch();
        counted.bytes_out += next.text.size();
        ++counted.writes;
        if (note_sent(to, next)) {
            static_cast<void>(to.socket.shutdown_write());
            co_return;
        }
    }
}

void master_side::note_progress(client& from) {
    const loop_lock lock(context_.lockable.get());
    replica* const of = replication::find(*from.session);
    if (of == nullptr || of->now != replica::stage::copied) return;
    context_.update_time();
    of->progress_us = context_.engine.internals().env.steady_us;
}

task<void> await_replicas(eddy::cache::engine& of, journal& events, duration limit,
                          std::function<bool()> is_given_up) {
    eddy::cache::engine::state& state = of.internals();
    replication* const its = state.replicating.get();
    if (its == nullptr || its->is_replica() || its->replicas().empty()) co_return;
    eddy::cache::hold_writes(state, eddy::cache::write_hold::shutdown);
    if (its->late_replicas() == 0) co_return;
    its->ask_for_acknowledgements();
    const time_point end = loop::current().after(limit);
    while (its->late_replicas() > 0 && loop::current().now() < end) {
        if (is_given_up && is_given_up()) co_return;
        if (!co_await loop::current().sleep_for(poll_pause)) break;
    }
    if (const std::size_t late = its->late_replicas(); late > 0)
        events.write(fmt::format("stops though {} of {} replicas {} not acknowledged everything",
                                 late, its->replicas().size(), late == 1 ? "has" : "have"));
}

task<void> master_side::tend() {
    for (;;) {
        tended_.reset();
        replication& its = links();
        if (!its.is_active() && its.replicas().empty()) {
            if (!co_await tended_.wait()) co_return;
        }
        const duration pause = its.replicas().empty() ? idle_pause : busy_pause;
        if (!co_await loop::current().sleep_for(pause)) co_return;
        context_.update_time();
        its.tick();
    }
}

}  // namespace eddy::runtime::cache
