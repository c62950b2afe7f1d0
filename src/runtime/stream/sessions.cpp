// Sessions of a stream runtime, and their plain case.
#include "runtime/stream/sessions.hpp"

#include <eddy/base/assert.hpp>
#include <eddy/io/loop.hpp>

#include "runtime/stream/replay/replay_sessions.hpp"

#include <utility>

namespace eddy::runtime::stream {

sessions::sessions(observer& owner) noexcept : owner_(owner) {}
sessions::~sessions() = default;

result<std::unique_ptr<sessions>> sessions::open(session_options options, observer& owner) {
    std::unique_ptr<sessions> made(new sessions(owner));
    auto clients = handoff::client_table::open(options.capacity, options.max_queue, *made,
                                               options.finish_time);
    if (!clients) return fail(clients.error());
    if (options.replay_memory > 0)
        made->replay_ = std::make_unique<replay_sessions>(options, **clients, owner);
    made->clients_ = std::move(*clients);
    if (options.counts_bytes) made->counts_.resize(1);
    return made;
}

bool sessions::continues_stream(const stream_request& from) const {
    return replay_ != nullptr && replay_->continues_stream(from);
}

bool sessions::has_whole(const stream_request& from) const {
    return replay_ != nullptr && replay_->has_whole(from);
}

bool sessions::has_missed(const stream_request& from) const {
    return replay_ != nullptr && replay_->has_missed(from);
}

result<sessions::beginning> sessions::begin(unique_fd client, const stream_request& from,
                                            std::string head, std::string_view first) {
    const std::size_t size = head.size() + first.size();
    const result<beginning> begun =
        begin_uncounted(std::move(client), from, std::move(head), first);
    if (!begun || !begun->is_new || counts_.empty()) return begun;
    if (begun->stream >= counts_.size()) counts_.resize(begun->stream + 1);
    counts_[begun->stream] = {.bytes = size};
    if (!first.empty()) counts_[begun->stream].first = loop::current().now();
    return begun;
}

result<sessions::beginning> sessions::begin_uncounted(unique_fd client, const stream_request& from,
                                                      std::string head, std::string_view first) {
    if (replay_) return replay_->begin(std::move(client), from, std::move(head), first);
    head += first;
    const auto added = clients_->add(std::move(client), head);
    if (!added) return fail(added.error());
    return beginning{.stream = *added};
}

std::optional<sent_count> sessions::sent(std::uint32_t stream) const noexcept {
    if (stream >= counts_.size()) return std::nullopt;
    return counts_[stream];
}

void sessions::note_sent(std::uint32_t stream, std::size_t bytes) noexcept {
    EDDY_ASSERT(stream < counts_.size());
    sent_count& its = counts_[stream];
    its.bytes += bytes;
    if (bytes > 0 && its.first == time_point{}) its.first = loop::current().now();
}

bool sessions::send_logged(std::uint32_t stream, std::string_view event) {
    return replay_->send(stream, event);
}

bool sessions::send_comment(std::uint32_t stream, std::string_view comment) {
    if (!counts_.empty() && !is_writing(stream)) counts_[stream].bytes += comment.size();
    if (replay_) return replay_->send_comment(stream, comment);
    return clients_->is_writing(stream) || clients_->send(stream, comment);
}

bool sessions::finish(std::uint32_t stream, std::string last) {
    count(stream, last.size());
    if (replay_) return replay_->finish(stream, std::move(last));
    if (!last.empty() && !clients_->send_owned(stream, std::move(last))) return false;
    clients_->finish(stream);
    return true;
}

void sessions::reset_unless_finished(std::uint32_t stream) noexcept {
    EDDY_ASSERT(!replay_);
    clients_->reset_unless_finished(stream);
}

void sessions::break_off(std::uint32_t stream) {
    EDDY_ASSERT(!replay_);
    clients_->break_off(stream);
}

void sessions::abandon(std::uint32_t stream) {
    replay_ ? replay_->abandon(stream) : clients_->abandon(stream);
}

bool sessions::cut(std::uint32_t stream) {
    if (replay_) return replay_->cut(stream);
    clients_->abandon(stream);
    return false;
}

task<void> sessions::close() {
    replay_.reset();
    clients_->abandon_all();
    clients_->flush();
    static_cast<void>(co_await clients_->all_closed());
}

bool sessions::is_writing(std::uint32_t stream) noexcept {
    return replay_ ? replay_->is_writing(stream) : clients_->is_writing(stream);
}

void sessions::notify_when_idle(std::uint32_t stream) noexcept {
    replay_ ? replay_->notify_when_idle(stream) : clients_->notify_when_idle(stream);
}

std::uint32_t sessions::active() const noexcept { return clients_->active() + detached(); }
std::uint32_t sessions::detached() const noexcept { return replay_ ? replay_->detached() : 0; }
std::size_t sessions::replay_bytes() const noexcept { return replay_ ? replay_->used_bytes() : 0; }

void sessions::on_loss(std::uint32_t client, handoff::loss why) noexcept {
    replay_ ? replay_->on_loss(client, why) : owner_.on_loss(client, why);
}

void sessions::on_idle(std::uint32_t client) noexcept {
    replay_ ? replay_->on_idle(client) : owner_.on_idle(client);
}

}  // namespace eddy::runtime::stream
