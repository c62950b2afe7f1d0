// Slices of a snapshot between turns of the loop; each replica's own task sends them. A copy with
// its size is a file, of which each replica takes pieces at its own pace while the next copy is
// made.
#include "runtime/cache/replication/master_side.hpp"

#include <eddy/base/assert.hpp>
#include <eddy/io/loop.hpp>

#include "base/rollback.hpp"
#include "cache/clients/engine_clients.hpp"
#include "cache/rdb/snapshot.hpp"
#include "cache/script/script_gap.hpp"
#include "runtime/cache/clients/client.hpp"
#include "runtime/cache/files/background_io.hpp"
#include "runtime/cache/files/yield.hpp"
#include "runtime/cache/replication/key_delay.hpp"

#include <fcntl.h>
#include <fmt/format.h>

#include <algorithm>
#include <chrono>
#include <filesystem>
#include <memory>
#include <new>
#include <span>
#include <string_view>
#include <system_error>
#include <utility>
#include <vector>

namespace eddy::runtime::cache {
namespace {

using eddy::cache::copy_content;
using eddy::cache::full_copy;
using eddy::cache::replica;
using eddy::cache::replication;
using eddy::cache::rdb::snapshot;

constexpr std::string_view no_memory_text = "there is no memory";
/// Bytes that are sent to all takers as one piece.
constexpr std::size_t piece_bytes = 256 * 1024;
/// Bytes of a snapshot in one slice: some 100 us.
constexpr std::size_t slice_bytes = 48 * 1024;
constexpr duration busy_pause = std::chrono::milliseconds(100);
/// Without replicas only the backlog's end is polled.
constexpr duration idle_pause = std::chrono::seconds(1);
/// Replicas that take a copy with its size at one time; beyond that the next copy waits.
constexpr std::size_t max_sending = 64;

}  // namespace

task<void> master_side::make_copies() {
    return with_scope([this](scope& sending) { return make_copies_beside(sending); });
}

task<void> master_side::make_copies_beside(scope& sending) {
    eddy::cache::script_gap gap(context_.engine);
    for (;;) {
        copies_.reset();
        if (!links().copy_is_due() || sending.children() >= max_sending) {
            // It may have been due: its replica has left, or the sending of others has begun.
            gap.release();
            if (!co_await copies_.wait()) co_return;
            context_.update_time();
            continue;
        }
        // Half of what a script does must not be in a copy without the other half.
        if (!gap.is_there(snapshot::may_begin(context_.engine))) {
            if (!co_await context_.await_progress()) co_return;
            context_.update_time();
            continue;
        }
        context_.update_time();
        co_await make_copy(sending);
        cancel_source* const source = co_await current_source();
        if (source != nullptr && source->requested()) co_return;
    }
}

task<void> master_side::make_copy(scope& sending) {
    replication& its = links();
    const std::shared_ptr<full_copy> copy = its.begin_copy();
    eddy::cache::rdb::snapshot_options options;
    // A master's stream is forwarded as it comes, and may not name its database for long.
    if (its.is_replica()) options.stream_database = its.stream_database;
    if (copy->has_valkeys_form) options.form = eddy::cache::rdb::file_form::valkey_rdb;
    options.has_keys = copy->content == copy_content::everything;
    options.has_libraries = copy->content != copy_content::nothing;
    rollback begun([&its, &copy] { its.give_up(*copy); });
    snapshot* const data = snapshot::begin(context_.engine, options);
    EDDY_ASSERT(data != nullptr);
    begun.keep();
    const std::uint64_t keys = data->keys();
    const std::size_t takers = its.takers(*copy);
    std::uint64_t bytes = 0;
    std::optional<file> whole;
    std::string fault;
    try {
        fault = copy->is_sized ? co_await write_whole(*data, *copy, whole, bytes)
                               : co_await send_as_made(*data, *copy, bytes);
    } catch (const std::bad_alloc&) {
        fault = no_memory_text;
    }
    data->end();
    if (!copy->complete && !whole) its.give_up(*copy);
    while (snapshot::is_clearing(context_.engine)) {
        static_cast<void>(context_.engine.upkeep());
        co_await yield();
    }
    context_.ask_upkeep();
    if (whole) {
        try {
            const auto from = std::make_shared<file>(std::move(*whole));
            for (const std::shared_ptr<full_copy>& each : its.part_copy(*copy)) {
                try {
                    sending.spawn(send_whole(from, each, bytes));
                } catch (const std::bad_alloc&) {
                    its.give_up(*each);
                }
            }
        } catch (const std::bad_alloc&) {
            fault = no_memory_text;
            its.give_up(*copy);
        }
    }
    if (copy->complete || (whole && fault.empty())) {
        context_.events.write(fmt::format("made a copy of {} keys, {} bytes, for {} {}", keys,
                                          bytes, takers, takers == 1 ? "replica" : "replicas"));
        co_return;
    }
    if (!fault.empty()) note_fault(fault);
}

void master_side::note_fault(std::string_view fault) {
    ++context_.counted.errors;
    context_.events.write(fmt::format("no copy for replicas: {}", fault));
}

/// Makes the copy and gives it away piece by piece. Yields why it could not be made, or nothing.
task<std::string> master_side::send_as_made(snapshot& data, full_copy& copy, std::uint64_t& bytes) {
    cancel_source* const source = co_await current_source();
    replication& its = links();
    byte_buffer out;
    while (its.takers(copy) > 0) {
        if (copy.pieces.size() >= full_copy::max_pieces) {
            copies_.reset();
            if (!co_await copies_.wait()) break;
            continue;
        }
        const std::uint64_t begun = data.begun_keys();
        const snapshot::status now =
            data.step(out, std::min(out.size() + slice_bytes, piece_bytes));
        co_await delay_keys(context_.settings, &eddy::cache::server_settings::save_key_delay_us,
                            data.begun_keys() - begun);
        if (now == snapshot::status::failed) co_return data.fault();
        const bool is_last = now == snapshot::status::done;
        if (is_last || out.size() >= piece_bytes) {
            bytes += out.size();
            its.add_piece(copy, std::move(out), is_last);
            out = byte_buffer();
        }
        if (is_last) break;
        co_await yield();
        if (source != nullptr && source->requested()) break;
        context_.update_time();
    }
    co_return std::string();
}

/// Writes the copy to a file without a name, as one of its replicas must know its size first. There
/// is none in `to` where that has failed, or is not wanted any more.
task<std::string> master_side::write_whole(snapshot& data, const full_copy& copy,
                                           std::optional<file>& to, std::uint64_t& bytes) {
    cancel_source* const source = co_await current_source();
    const std::string& dir = context_.settings.dir;
    const std::string folder = dir.empty() ? std::filesystem::temp_directory_path().string() : dir;
    const auto no_file = [&folder](std::error_code why) {
        return fmt::format(
            "a replica does not announce capa eof, and no temporary file can be "
            "written in {}: {}",
            folder, why.message());
    };
    result<file> opened = co_await file::open(folder, O_TMPFILE | O_RDWR, 0600);
    if (!opened) co_return no_file(opened.error());
    background_writer writer(*opened);
    byte_buffer out;
    auto now = snapshot::status::writing;
    while (now == snapshot::status::writing) {
        if (links().takers(copy) == 0 || (source != nullptr && source->requested()))
            co_return std::string();
        const std::uint64_t begun = data.begun_keys();
        now = data.step(out, std::min(out.size() + slice_bytes, piece_bytes));
        co_await delay_keys(context_.settings, &eddy::cache::server_settings::save_key_delay_us,
                            data.begun_keys() - begun);
        if (now == snapshot::status::failed) co_return data.fault();
        if (now == snapshot::status::writing && out.size() < piece_bytes) {
            co_await yield();
            context_.update_time();
            continue;
        }
        const result<> written = co_await writer.write_at(bytes, out.bytes());
        context_.update_time();
        if (!written) co_return no_file(written.error());
        bytes += out.size();
        out.clear();
    }
    to = std::move(*opened);
    co_return std::string();
}

/// Sends the file to the one taker of the copy, at its own pace.
task<void> master_side::send_whole(std::shared_ptr<file> from, std::shared_ptr<full_copy> copy,
                                   std::uint64_t bytes) {
    std::string_view fault;
    try {
        fault = co_await send_pieces(*from, *copy, bytes);
    } catch (const std::bad_alloc&) {
        fault = no_memory_text;
    }
    if (!copy->complete) links().give_up(*copy);
    if (!fault.empty()) note_fault(fault);
    // The next copy may have waited for the end of this one.
    copies_.set();
}

task<std::string_view> master_side::send_pieces(file& from, full_copy& copy, std::uint64_t bytes) {
    cancel_source* const source = co_await current_source();
    replication& its = links();
    its.announce_size(copy, bytes);
    std::vector<char> buffer(piece_bytes);
    for (std::uint64_t offset = 0; offset < bytes && its.takers(copy) > 0;) {
        if (copy.pieces.size() >= full_copy::max_own_pieces) {
            copies_.reset();
            if (!co_await copies_.wait()) break;
            continue;
        }
        const result<std::size_t> got =
            co_await from.read_at(offset, std::as_writable_bytes(std::span(buffer)));
        context_.update_time();
        if (source != nullptr && source->requested()) break;
        if (!got || *got == 0) co_return "the temporary file of a copy cannot be read";
        offset += *got;
        EDDY_ASSERT(offset <= bytes);
        byte_buffer piece;
        piece.append(std::string_view(buffer.data(), *got));
        its.add_piece(copy, std::move(piece), offset == bytes);
    }
    co_return std::string_view();
}

replication::output master_side::next_output(client& to) {
    const loop_lock lock(context_.lockable.get());
    replica* const of = replication::find(*to.session);
    // Killed: its connection is being closed.
    if (of == nullptr) return {};
    return links().next_output(*of);
}

/// True when that was all.
bool master_side::note_sent(client& to, const replication::output& sent) {
    const loop_lock lock(context_.lockable.get());
    context_.update_time();
    replica* const of = replication::find(*to.session);
    if (of == nullptr) return false;
    links().note_sent(*of, sent);
    return of->copy_only && of->copy == nullptr && sent.from == replication::output::part::copy;
}

task<void> master_side::feed(client& to, serving::counters& counted) {
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
    of->progress_us = context_.engine.steady_us();
}

task<void> await_replicas(cache_context& of, duration limit, std::function<bool()> is_given_up) {
    replication* const its = replication::find(of.engine);
    if (its == nullptr || its->is_replica() || its->replicas().empty()) co_return;
    eddy::cache::engine_clients(of.engine).hold_writes(eddy::cache::write_hold::shutdown);
    if (its->late_replicas() == 0) co_return;
    its->ask_for_acknowledgements();
    const time_point end = loop::current().after(limit);
    while (its->late_replicas() > 0 && loop::current().now() < end) {
        if (is_given_up && is_given_up()) co_return;
        if (!co_await of.await_progress(end - loop::current().now())) break;
    }
    if (const std::size_t late = its->late_replicas(); late > 0)
        of.events.write(fmt::format("stops though {} of {} replicas {} not acknowledged everything",
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
