// Client runtimes of a server, and the queue of what they have received.
#include "runtime/server/upstreams.hpp"

#include <eddy/base/assert.hpp>

#include <algorithm>
#include <atomic>
#include <utility>

namespace eddy::runtime::server {
namespace {

/// Bytes of a waiting event beside its text.
constexpr std::size_t event_size = sizeof(upstream_event);

constexpr metric upstreams_connected{.name = "upstreams_connected",
                                     .kind = metric_kind::gauge,
                                     .help = "Connections to servers of --upstream."};
constexpr metric upstream_messages_in_total{.name = "upstream_messages_in_total",
                                            .kind = metric_kind::counter,
                                            .help = "Messages of servers of --upstream."};
constexpr metric upstream_messages_out_total{.name = "upstream_messages_out_total",
                                             .kind = metric_kind::counter,
                                             .help = "Messages queued for servers of --upstream."};
constexpr metric upstream_dropped_total{
    .name = "upstream_dropped_total",
    .kind = metric_kind::counter,
    .help = "Messages from and to servers of --upstream that were dropped."};

}  // namespace

/// One upstream, and the receiver of its messages.
class upstreams::link final : public message_receiver {
public:
    link(upstreams& of, std::size_t number, kept_client_options by, kept_client_factory make)
        : of_(of), number_(number) {
        by.to = this;
        its_ = make(by);
    }

    kept_client& its() const noexcept { return *its_; }

    // Any thread.
    bool is_connected() const noexcept { return is_connected_.load(std::memory_order_relaxed); }
    std::atomic<std::size_t> posted{0};

private:
    void note_connected() override {
        is_connected_.store(true, std::memory_order_relaxed);
        of_.add({upstream_event::kind::connected, number_});
    }
    void note_disconnected(std::string_view reason) override {
        if (is_connected_.exchange(false, std::memory_order_relaxed))
            of_.add({upstream_event::kind::disconnected, number_, std::string(reason)});
    }
    void note_received(std::string_view message) override {
        ++of_.received_;
        of_.add({upstream_event::kind::message, number_, std::string(message)});
    }
    event& ready() noexcept override { return of_.has_room_; }

    upstreams& of_;
    const std::size_t number_;
    std::atomic<bool> is_connected_{false};
    std::unique_ptr<kept_client> its_;
};

upstreams::upstreams(const config& chosen, const std::string& name, serving::journal& events,
                     kept_client_factory make, taker to)
    : here_(executor::current()), events_(events), taker_(std::move(to)) {
    for (const std::string& address : chosen.upstreams)
        all_.push_back(
            std::make_unique<link>(*this, all_.size() + 1,
                                   kept_client_options{.name = name,
                                                       .target = address,
                                                       .is_raw = chosen.messages == framing::raw,
                                                       .max_line = chosen.max_line,
                                                       .events = &events,
                                                       .to = nullptr},
                                   make));
    has_room_.set();
}

upstreams::~upstreams() { EDDY_ASSERT(!is_open_); }

task<outcome<>> upstreams::start() {
    EDDY_ASSERT(!is_open_ && !is_muted_);
    is_open_ = true;
    feeding_.spawn(feed());
    for (const auto& each : all_) {
        auto started = co_await each->its().start();
        if (!started) co_return started;
    }
    co_return outcome<>();
}

task<void> upstreams::mute() {
    if (!is_open_) co_return;
    is_muted_ = true;
    feeding_.cancel();
    co_await feeding_.join();
    dropped_ += static_cast<std::uint64_t>(
        std::ranges::count(waiting_, upstream_event::kind::message, &upstream_event::what));
    waiting_.clear();
    waiting_bytes_ = 0;
    has_room_.set();
}

task<void> upstreams::stop(duration limit) {
    if (!is_open_) co_return;
    EDDY_ASSERT(is_muted_ && waiting_.empty());
    scope stopping;
    for (const auto& each : all_) stopping.spawn(each->its().stop(limit));
    co_await stopping.join();
    is_open_ = false;
}

void upstreams::add(upstream_event what) {
    EDDY_ASSERT(what.number >= 1 && what.number <= all_.size());
    if (is_muted_) {
        if (what.what == upstream_event::kind::message) ++dropped_;
        return;
    }
    waiting_bytes_ += what.text.size() + event_size;
    waiting_.push_back(std::move(what));
    if (waiting_bytes_ >= max_waiting) has_room_.reset();
    filled_.set();
}

task<void> upstreams::feed() {
    for (;;) {
        while (!waiting_.empty()) {
            upstream_event next = std::move(waiting_.front());
            waiting_.pop_front();
            EDDY_ASSERT(waiting_bytes_ >= next.text.size() + event_size);
            waiting_bytes_ -= next.text.size() + event_size;
            if (waiting_bytes_ < max_waiting) has_room_.set();
            auto taken = co_await taker_(std::move(next));
            if (taken) {
                drops_ = false;
                continue;
            }
            if (is_muted_) co_return;
            ++dropped_;
            if (!std::exchange(drops_, true))
                events_.write("messages of --upstream are dropped: " + taken.error().message);
        }
        filled_.reset();
        if (!co_await filled_.wait()) co_return;
    }
}

std::string upstreams::fault() const {
    for (const auto& each : all_)
        if (std::string why = each->its().fault(); !why.empty()) return "--upstream: " + why;
    return {};
}

void upstreams::add_counts(metrics& to) const {
    const auto connected =
        std::ranges::count_if(all_, [](const auto& each) { return each->is_connected(); });
    to.add_sample(upstreams_connected, static_cast<double>(connected));
    to.add_sample(upstream_messages_in_total, static_cast<double>(received_.value()));
    to.add_sample(upstream_messages_out_total, static_cast<double>(sent_.value()));
    to.add_sample(upstream_dropped_total, static_cast<double>(dropped_.value()));
}

bool upstreams::is_connected(std::size_t number) const noexcept {
    return number >= 1 && number <= all_.size() && all_[number - 1]->is_connected();
}

bool upstreams::send_here(std::size_t number, std::string text) {
    EDDY_ASSERT(here_.is_current());
    const bool is_queued =
        is_open_ && all_[number - 1]->its().send_now(std::move(text)).has_value();
    if (is_queued) ++sent_;
    return is_queued;
}

bool upstreams::send(std::size_t number, std::string_view text) {
    EDDY_ASSERT(number >= 1 && number <= all_.size());
    if (here_.is_current()) return send_here(number, std::string(text));
    std::atomic<std::size_t>& posted = all_[number - 1]->posted;
    const std::size_t size = text.size() + event_size;
    if (posted.fetch_add(size, std::memory_order_relaxed) + size > max_posted) {
        posted.fetch_sub(size, std::memory_order_relaxed);
        return false;
    }
    const result<> accepted =
        here_.post([self = shared_from_this(), number, text = std::string(text), size] {
            self->all_[number - 1]->posted.fetch_sub(size, std::memory_order_relaxed);
            if (!self->send_here(number, text)) ++self->dropped_;
        });
    if (!accepted) posted.fetch_sub(size, std::memory_order_relaxed);
    return accepted.has_value();
}

}  // namespace eddy::runtime::server
