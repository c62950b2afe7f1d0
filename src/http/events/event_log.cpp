// Event log: numbers for ids, positions of subscribers, and room at the limits.
#include <eddy/http/event_log.hpp>

#include <eddy/base/assert.hpp>
#include <eddy/base/random.hpp>

#include <algorithm>
#include <charconv>
#include <utility>

namespace eddy::http {
namespace {

void notify(event& waiting) noexcept {
    waiting.set();
    waiting.reset();
}

}  // namespace

/// A stream's position in the log, from its response until its end.
class event_log::subscriber final : public event_producer, public list_link<> {
public:
    subscriber(event_log& of, std::uint64_t from) : log_(of), next_(from) {
        ++log_.subscribers_;
        log_.following_.push_back(*this);
    }
    ~subscriber() override {
        list_link<>::unlink();
        --log_.subscribers_;
        notify(log_.progress_);
    }
    subscriber(const subscriber&) = delete;
    subscriber& operator=(const subscriber&) = delete;

    task<result<>> produce(event_writer& out) override { return log_.follow(out, *this); }

private:
    friend class event_log;
    event_log& log_;
    std::uint64_t next_;  // number of the first event that was not read
};

event_log::event_log(const event_log_options& options) : options_(options), life_(entropy_seed()) {
    EDDY_PRECONDITION(options.max_events > 0 && options.max_bytes > 0,
                      "an event_log of no event: max_events and max_bytes are at least 1");
}

event_log::~event_log() {
    EDDY_PRECONDITION(subscribers_ == 0,
                      "an event_log was destroyed while clients are subscribed to it");
}

/// "LIFE-NUMBER", both decimal.
std::string event_log::id_of(std::uint64_t number) const {
    return std::to_string(life_) + "-" + std::to_string(number);
}

std::uint64_t event_log::position_behind(std::string_view id) const noexcept {
    if (id.empty()) return end();
    std::uint64_t life = 0;
    std::uint64_t number = 0;
    const char* const last = id.data() + id.size();
    const auto first = std::from_chars(id.data(), last, life);
    if (first.ec != std::errc() || first.ptr == last || *first.ptr != '-') return first_;
    const auto second = std::from_chars(first.ptr + 1, last, number);
    if (second.ec != std::errc() || second.ptr != last) return first_;
    // One that is yet to come is another log's, too.
    if (life != life_ || number >= end()) return first_;
    return std::max(number + 1, first_);
}

result<std::string> event_log::publish(std::string_view data, std::string_view type) {
    if (is_closed_) return fail(errc::closed);
    sse::event made;
    made.data = data;
    made.type = type;
    made.id = id_of(end());
    byte_buffer encoded;
    const auto written = sse::write_event(encoded, made);
    if (!written) return fail(written.error());
    if (encoded.size() > options_.max_bytes) return fail(std::errc::message_size);
    if (!make_room(encoded.size())) return fail(errc::limit_reached);
    entries_.emplace_back(encoded.text());
    bytes_ += encoded.size();
    notify(news_);
    return std::move(*made.id);
}

/// Drops the oldest events until one of `size` bytes fits; false where a subscriber needs them.
bool event_log::make_room(std::size_t size) noexcept {
    std::size_t dropped = 0;
    std::size_t bytes = bytes_;
    while (entries_.size() - dropped >= options_.max_events || bytes + size > options_.max_bytes)
        bytes -= entries_[dropped++].size();
    if (dropped == 0) return true;
    if (options_.policy == slow_reader_policy::wait && is_unread(first_ + dropped - 1))
        return false;
    for (std::size_t left = dropped; left > 0; --left) entries_.pop_front();
    bytes_ = bytes;
    first_ += dropped;
    return true;
}

/// True while a subscriber has yet to read the event.
bool event_log::is_unread(std::uint64_t number) noexcept {
    bool found = false;
    following_.for_each([&](const subscriber& each) { found = found || each.next_ <= number; });
    return found;
}

response event_log::subscribe(std::string_view last_event_id, const sse_options& options) {
    return sse(std::make_unique<subscriber>(*this, position_behind(last_event_id)), options);
}

/// Moves a subscriber that was overtaken. errc::limit_reached where it is to be disconnected.
result<> event_log::catch_up(subscriber& at) noexcept {
    if (at.next_ >= first_) return {};
    if (options_.policy == slow_reader_policy::disconnect) return fail(errc::limit_reached);
    missed_ += first_ - at.next_;
    at.next_ = first_;
    return {};
}

task<result<>> event_log::follow(event_writer& out, subscriber& at) {
    std::string batch;
    for (;;) {
        if (const auto moved = catch_up(at); !moved) co_return moved;
        batch.clear();
        while (at.next_ < end()) {
            const std::string& each = entries_[static_cast<std::size_t>(at.next_ - first_)];
            if (!batch.empty() && batch.size() + each.size() > batch_bytes) break;
            batch += each;
            ++at.next_;
        }
        if (batch.empty()) {
            if (is_closed_) co_return result<>();
            batch = std::string();  // one that waits holds no memory
            const auto woken = co_await news_.wait();
            if (!woken) co_return woken;
            continue;
        }
        notify(progress_);
        const auto sent = co_await out.write_encoded(batch);
        if (!sent) co_return sent;
    }
}

void event_log::close() noexcept {
    is_closed_ = true;
    notify(news_);
}

}  // namespace eddy::http
