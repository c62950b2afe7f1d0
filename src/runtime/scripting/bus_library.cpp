// Publish and subscribe of scripts.
#include "runtime/scripting/bus_library.hpp"

#include <eddy/base/assert.hpp>
#include <eddy/io/loop.hpp>
#include <eddy/io/timeout.hpp>

#include "base/rollback.hpp"

#include <fmt/format.h>

#include <array>
#include <utility>

namespace eddy::runtime {
namespace {

using script::answer;
using script::argument_kind;
using script::invocation;
using script::library_function;

/// Channels of scripts among the topics of the bus.
constexpr std::string_view prefix = "script:";
static_assert(prefix.size() + max_channel_name <= max_topic_bytes);

std::string topic_of(std::string_view channel) {
    std::string topic(prefix);
    topic += channel;
    return topic;
}

/// Why a text is no channel; empty if it is one.
std::string fault_of(std::string_view channel) {
    if (channel.empty()) return "a channel needs a name";
    if (channel.size() > max_channel_name)
        return fmt::format("the name of a channel has at most {} bytes", max_channel_name);
    return {};
}

}  // namespace

struct bus_functions {
    static answer publish(invocation& of) {
        auto& bus = of.context<script_bus>();
        const std::string_view channel = of.text(1);
        if (std::string fault = fault_of(channel); !fault.empty())
            return answer::misused(std::move(fault));
        const std::string_view text = of.text(2);
        if (bus.daemon_ == nullptr) return script::values_of(0);
        constexpr std::size_t bytes_a_step = 32;
        of.count(text.size() / bytes_a_step);
        const auto taken = bus.daemon_->publish(topic_of(channel), std::string(text));
        if (!taken) return answer::failed(taken.error().message);
        ++bus.counted_.published;
        return script::values_of(*taken);
    }

    static answer subscribe(invocation& of) {
        auto& bus = of.context<script_bus>();
        std::string channel(of.text(1));
        if (std::string fault = fault_of(channel); !fault.empty())
            return answer::misused(std::move(fault));
        if (bus.all_.size() + bus.ended_ >= max_script_subscriptions)
            return answer::failed(fmt::format("the script has {} subscriptions, which is the limit",
                                              max_script_subscriptions));
        const bool has_ended = bus.last_ != std::numeric_limits<std::uint64_t>::max();
        if (bus.daemon_ == nullptr || has_ended) return script::values_of(++bus.last_id_);
        auto made = bus.daemon_->subscribe(topic_of(channel), bus.queue_);
        if (!made) return answer::failed(made.error().message);
        return script::values_of(bus.add(std::move(channel), of.take_function(), std::move(*made)));
    }

    static answer unsubscribe(invocation& of) {
        const double id = of.number(1);
        constexpr double most = 9e15;
        return id >= 1 && id < most &&
               of.context<script_bus>().remove(static_cast<std::uint64_t>(id));
    }
};

namespace {

constexpr script::argument channel_argument{.name = "channel", .kind = argument_kind::text};

constexpr std::array<library_function, 3> rows = {{
    {.name = "publish",
     .arguments = {{channel_argument, {.name = "text", .kind = argument_kind::text}}},
     .takes = "a channel and a text",
     .help = "Sends a text to all subscriptions of the channel, of all scripts of the daemon. "
             "Returns how many took it.",
     .run = bus_functions::publish},
    {.name = "subscribe",
     .arguments = {{channel_argument, {.name = "fn", .kind = argument_kind::function}}},
     .takes = "a channel and a function",
     .help = "Calls the function with the text and the channel for each message of the channel. "
             "Its number is for unsubscribe.",
     .run = bus_functions::subscribe},
    {.name = "unsubscribe",
     .arguments = {{{.name = "id", .kind = argument_kind::number}}},
     .takes = "the number of a subscription",
     .help = "Ends a subscription; false when there is none of that number.",
     .run = bus_functions::unsubscribe},
}};

}  // namespace

script::library script_bus::functions() noexcept {
    script::library made;
    made.name = "self";
    made.functions = rows;
    made.context = this;
    return made;
}

// --- Subscriptions ----------------------------------------------------------------------------

std::uint64_t script_bus::add(std::string channel, script::kept_function function,
                              subscription from) {
    auto its = std::make_shared<entry>(
        entry{std::move(channel), std::make_shared<script::kept_function>(std::move(function)),
              std::move(from)});
    const std::uint64_t id = ++last_id_;
    all_.emplace(id, its);
    rollback undo([this, id] { all_.erase(id); });
    tasks_.spawn(serve(std::move(its)));
    undo.keep();
    return id;
}

bool script_bus::remove(std::uint64_t id) noexcept {
    const auto found = all_.find(id);
    if (found == all_.end()) return false;
    entry& its = *found->second;
    its.is_over = true;
    its.from.end();
    if (its.is_calling) ++ended_;
    all_.erase(found);
    return true;
}

void script_bus::begin(std::uint64_t after) noexcept {
    EDDY_ASSERT(!begun_.is_set());
    first_ = after;
    begun_.set();
}

void script_bus::end(std::uint64_t last) noexcept {
    EDDY_ASSERT(last >= first_);
    last_ = last;
    for (const auto& [id, each] : all_) each->from.seal();
}

task<void> script_bus::drain(time_point limit) {
    while (serving_ > 0) {
        none_serves_.reset();
        if (!co_await with_deadline(limit, none_serves_.wait())) co_return;
    }
}

/// A call of a subscription's function.
class script_bus::under_way {
public:
    under_way(script_bus& in, entry& its) noexcept : in_(in), its_(its) { its.is_calling = true; }
    under_way(const under_way&) = delete;
    under_way& operator=(const under_way&) = delete;
    ~under_way() {
        its_.is_calling = false;
        if (!its_.is_over) return;
        EDDY_ASSERT(in_.ended_ > 0);
        --in_.ended_;
    }

private:
    script_bus& in_;
    entry& its_;
};

task<void> script_bus::serve(std::shared_ptr<entry> its) {
    struct counting {
        script_bus& in;
        explicit counting(script_bus& of) noexcept : in(of) { ++in.serving_; }
        ~counting() {
            EDDY_ASSERT(in.serving_ > 0);
            if (--in.serving_ == 0) in.none_serves_.set();
        }
    } const counted(*this);
    if (!co_await begun_.wait()) co_return;
    cancel_source* const source = co_await current_source();
    for (std::size_t count = 1;; ++count) {
        if (count % max_deliveries_a_turn == 0) co_await loop::current().yield();
        const result<bus_message> got = co_await its->from.next();
        if (!got || its->is_over || got->number > last_) co_return;
        if (source != nullptr && source->requested()) co_return;
        counted_.missed += got->dropped_before;
        if (got->number <= first_) continue;
        ++counted_.received;
        const under_way call(*this, *its);
        co_await runner_.deliver(its->function, its->channel, *got->bytes);
    }
}

}  // namespace eddy::runtime
