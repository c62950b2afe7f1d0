// Queued messages of a script, and their order.
#include "runtime/server/script/stream_transport.hpp"

#include <eddy/base/assert.hpp>

#include "runtime/server/web_peer.hpp"

#include <algorithm>
#include <memory>
#include <utility>

namespace eddy::runtime::server {
namespace {

/// Memory for messages that a client keeps between two batches.
constexpr std::size_t most_kept = 4096;

}  // namespace

client* stream_transport::peer_of(const script_client& of) noexcept {
    auto* const its = static_cast<client*>(of.peer);
    const bool takes =
        its != nullptr && its->socket && !its->leaving && !its->is_dismissed && !its->out.error();
    return takes ? its : nullptr;
}

/// The text as a message of the server's framing, valid until the next call.
std::string_view stream_transport::framed(std::string_view text) {
    if (config_.messages != framing::line || text.ends_with('\n')) return text;
    line_.assign(text);
    line_ += '\n';
    return line_;
}

std::shared_ptr<const byte_buffer> stream_transport::shared(std::string_view text) {
    byte_buffer made;
    made.append(framed(text));
    return std::make_shared<const byte_buffer>(std::move(made));
}

/// False where the client speaks HTTP, and perhaps never becomes a WebSocket, and has enough.
bool stream_transport::append(client& to, script_client& its, std::string_view text) {
    if (to.speaks == speech::http && its.unsent.size() + text.size() >= config_.max_queue / 2) {
        ++counted_.dropped;
        return false;
    }
    const bool by_line = config_.messages == framing::line;
    if (to.web() != nullptr) {
        write_frames(its.unsent, text, by_line);
    } else {
        its.unsent.append(text);
        if (by_line && !text.ends_with('\n')) its.unsent.append('\n');
    }
    ++its.unsent_count;
    return true;
}

bool stream_transport::send(script_client& to, std::string_view text) {
    client* const its = peer_of(to);
    if (its == nullptr) return false;
    if (!out_.is_empty()) out_.flush();
    if (to.unsent.size() + text.size() > out_.piece_limit()) flush_one(to);
    if (to.unsent.size() + its->out.queued_bytes() + text.size() >= config_.max_queue &&
        config_.slow_reader == slow_reader_policy::wait) {
        ++counted_.dropped;
        return false;
    }
    if (!append(*its, to, text)) return false;
    if (to.is_dirty) return true;
    dirty_.push_back(&to);
    to.is_dirty = true;
    if (current_ == nullptr) filled_.set();
    return true;
}

void stream_transport::flush_one(script_client& to) {
    client* const its = peer_of(to);
    if (its == nullptr) {
        counted_.dropped += std::exchange(to.unsent_count, 0);
        to.unsent.clear();
    }
    // A WebSocket to be gets its messages as such.
    if (its == nullptr || to.unsent.empty() || its->speaks == speech::http) return;
    out_.send_own(*its, to.unsent.bytes(), std::exchange(to.unsent_count, 0));
    to.unsent.clear();
    if (to.unsent.capacity() > most_kept) to.unsent.release_if_empty();
}

void stream_transport::end_batch() {
    script_client* const of = std::exchange(current_, nullptr);
    EDDY_ASSERT(of != nullptr);
    if (dirty_.empty()) return;
    if (of->is_dirty) {
        flush_one(*of);
        of->is_dirty = false;
        if (dirty_.back() == of)
            dirty_.pop_back();
        else
            std::erase(dirty_, of);
    }
    if (!dirty_.empty()) filled_.set();
}

void stream_transport::flush() {
    for (script_client* const each : dirty_) {
        each->is_dirty = false;
        flush_one(*each);
    }
    dirty_.clear();
}

task<void> stream_transport::run() {
    while (co_await filled_.wait()) {
        filled_.reset();
        flush();
    }
}

bool stream_transport::send_to_all(std::string_view text) {
    if (others_ != nullptr && others_->must_wait()) {
        ++counted_.dropped;
        return false;
    }
    flush();
    out_.add(nullptr, framed(text), 1, loop::current().now());
    return true;
}

bool stream_transport::send_shared(client& to, const std::shared_ptr<const byte_buffer>& plain,
                                   std::shared_ptr<const byte_buffer>& frames,
                                   std::uint64_t count) {
    if (to.web() == nullptr) return out_.send_to(to, plain, plain->bytes(), count);
    if (!frames) {
        byte_buffer made;
        write_frames(made, plain->text(), config_.messages == framing::line);
        frames = std::make_shared<const byte_buffer>(std::move(made));
    }
    return out_.send_to(to, frames, frames->bytes(), count);
}

std::size_t stream_transport::send_to_each(const std::vector<script_client*>& to,
                                           std::string_view text) {
    flush();
    if (!out_.is_empty()) out_.flush();
    const auto plain = shared(text);
    std::shared_ptr<const byte_buffer> frames;
    std::size_t took = 0;
    for (script_client* const each : to) {
        client* const its = peer_of(*each);
        if (its == nullptr) continue;
        const bool is_taken = its->speaks == speech::http ? append(*its, *each, text)
                                                          : send_shared(*its, plain, frames, 1);
        if (is_taken) ++took;
    }
    return took;
}

bool stream_transport::send_elsewhere(script_receivers to, std::string_view text) {
    if (others_ == nullptr) return false;
    if (others_->must_wait()) {
        ++counted_.dropped;
        return false;
    }
    if (!out_.is_empty()) out_.flush();
    shared_messages what{shared(text), 1};
    what.to = std::make_shared<const script_receivers>(std::move(to));
    others_->send(what);
    return true;
}

void stream_transport::deliver(server_script& to, const shared_messages& what) {
    EDDY_ASSERT(what.to != nullptr);
    flush();
    if (!out_.is_empty()) out_.flush();
    std::shared_ptr<const byte_buffer> frames = what.frames;
    for (script_client* const each : to.find(*what.to)) {
        client* const its = peer_of(*each);
        if (its == nullptr) continue;
        if (what.to->disconnects)
            disconnect(*each);
        else if (its->speaks == speech::http)
            static_cast<void>(append(*its, *each, what.payload->text()));
        else
            static_cast<void>(send_shared(*its, what.payload, frames, what.count));
    }
}

void stream_transport::disconnect(script_client& of) {
    auto* const its = static_cast<client*>(of.peer);
    if (its == nullptr || its->is_dismissed) return;
    if (!out_.is_empty()) out_.flush();
    flush_one(of);
    its->become_raw();
    its->is_dismissed = true;
    its->interrupt();
}

void stream_transport::refuse(script_client& of, std::string_view reason) {
    ++counted_.connections_refused;
    if (!reason.empty()) static_cast<void>(send(of, reason));
    disconnect(of);
}

void stream_transport::decide_claim(script_client& of, bool is_granted) {
    client* const its = peer_of(of);
    if (its == nullptr) return;
    flush_one(of);
    modes_.decide(*its, is_granted);
}

std::string stream_transport::ip_of(const script_client& of) const {
    const auto* const its = static_cast<const client*>(of.peer);
    return its != nullptr && its->socket ? its->socket.peer().host() : std::string();
}

std::uint64_t stream_transport::connections() const {
    return context_.script_clients.load(std::memory_order_relaxed);
}

void stream_transport::keep_held(client& of) {
    held_messages* const all = of.held();
    if (of.script == nullptr || all == nullptr) return;
    byte_buffer whole = std::move(all->bytes);
    whole.append(of.script->unsent.text());
    of.script->unsent = std::move(whole);
    of.script->unsent_count += std::exchange(all->count, 0);
}

void stream_transport::opened(client& of) {
    if (of.script == nullptr || of.script->unsent.empty()) return;
    EDDY_ASSERT(of.web() != nullptr);
    const byte_buffer plain = std::exchange(of.script->unsent, byte_buffer());
    write_frames(of.script->unsent, plain.text(), config_.messages == framing::line);
    flush_one(*of.script);
}

void stream_transport::drop(script_client& of) noexcept {
    if (std::exchange(of.is_dirty, false)) std::erase(dirty_, &of);
}

}  // namespace eddy::runtime::server
