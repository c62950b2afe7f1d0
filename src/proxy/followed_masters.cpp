// Questions to Sentinels, and the answers that change something.
#include "proxy/followed_masters.hpp"

#include <eddy/base/assert.hpp>
#include <eddy/io/loop.hpp>
#include <eddy/io/timeout.hpp>
#include <eddy/net/tcp.hpp>

#include "base/text/terminal_text.hpp"
#include "net/host_names.hpp"

#include <algorithm>
#include <charconv>
#include <cstdint>
#include <new>
#include <utility>

namespace eddy::proxy {
namespace {

/// Bytes of a peer's text that a message repeats.
constexpr std::size_t most_shown = 200;
/// A server that vanishes without a word ends its subscription after twice the time.
constexpr std::chrono::seconds keepalive_time{15};

/// Answer of a Sentinel about a name.
struct master_answer {
    std::optional<transport::address> where = {};
    bool is_unknown = false;  ///< the name
    std::string fault = {};   ///< of the Sentinel
};

/// Address of two texts of a Sentinel; none if they are no such.
std::optional<transport::address> address_of(const std::string& host, const std::string& port) {
    transport::address made;
    const auto read = std::from_chars(port.data(), port.data() + port.size(), made.port);
    if (read.ec != std::errc() || read.ptr != port.data() + port.size() || made.port == 0)
        return std::nullopt;
    const bool is_numeric = !host.empty() && host != "*" && endpoint::ip(host, made.port);
    if (!is_numeric && !is_host_name(host)) return std::nullopt;
    made.host = host;
    return made;
}

master_answer read_answer(const result<flat_reply>& reply, const std::string& uri) {
    master_answer made;
    if (!reply) {
        made.fault = uri + " has not answered: " + reply.error().message();
    } else if (!reply->error.empty()) {
        made.fault = uri + " has answered: " + printable(reply->error, most_shown);
    } else if (reply->is_null) {
        made.is_unknown = true;
    } else {
        const auto& values = reply->values;
        if (values.size() == 2) made.where = address_of(values[0], values[1]);
        if (!made.where) made.fault = uri + " has answered without an address";
    }
    return made;
}

tcp::connect_options link_options() noexcept {
    tcp::connect_options options;
    options.timeout = followed_masters::patience;
    options.socket = tcp::keepalive_after(keepalive_time);
    return options;
}

/// Connection to a Sentinel, which has taken the password. The refusal names the Sentinel.
task<outcome<std::unique_ptr<redis_link>>> open_link(transport::address to, std::string password) {
    const std::string uri = to.to_string();
    const tcp::connect_options options = link_options();
    result<stream> made = co_await with_timeout(followed_masters::patience,
                                                transport::connect(std::move(to), options));
    if (!made) co_return refuse(503, transport::explain(uri, made.error()));
    auto link = std::make_unique<redis_link>(std::move(*made));
    if (password.empty()) co_return link;
    std::vector<std::string> command{"AUTH", std::move(password)};
    const result<flat_reply> reply =
        co_await with_timeout(followed_masters::patience, link->ask(std::move(command)));
    if (!reply) co_return refuse(503, uri + " has not answered AUTH: " + reply.error().message());
    if (!reply->error.empty())
        co_return refuse(503,
                         uri + " has refused the password: " + printable(reply->error, most_shown));
    co_return link;
}

/// True for errors of a server that keeps its role from clients without a password.
bool hides_role(std::string_view error) noexcept {
    return error.starts_with("NOAUTH") || error.starts_with("NOPERM") ||
           error.starts_with("ERR unknown command");
}

/// Fault of a server that cannot be used as a master, behind "which"; empty for a master, and for
/// one that keeps its role to itself, of which the Sentinel's word counts.
task<std::string> fault_of_role(transport::address where) {
    const tcp::connect_options options = link_options();
    result<stream> made = co_await with_timeout(followed_masters::patience,
                                                transport::connect(std::move(where), options));
    if (!made) co_return "cannot be reached: " + made.error().message();
    redis_link link(std::move(*made));
    std::vector<std::string> command{"ROLE"};
    const result<flat_reply> reply =
        co_await with_timeout(followed_masters::patience, link.ask(std::move(command)));
    if (!reply) co_return "has not answered ROLE: " + reply.error().message();
    if (hides_role(reply->error)) co_return std::string();
    if (!reply->error.empty())
        co_return "has answered ROLE with: " + printable(reply->error, most_shown);
    if (reply->values.empty()) co_return "has answered ROLE with nothing";
    const std::string& role = reply->values.front();
    if (role == "master") co_return std::string();
    if (role == "slave") co_return "is a replica";
    co_return "has the role " + printable(role, most_shown);
}

/// True for the confirmation of a subscription, since a switch may have come before, and for a
/// switch of this master: "NAME OLD-HOST OLD-PORT HOST PORT".
bool is_hint(const flat_reply& message, std::string_view name) noexcept {
    const auto& values = message.values;
    if (values.empty()) return false;
    if (values[0] == "subscribe") return true;
    return values.size() == 3 && values[2].size() > name.size() && values[2].starts_with(name) &&
           values[2][name.size()] == ' ';
}

}  // namespace

std::string host_and_port(const transport::address& of) {
    EDDY_ASSERT(of.kind == transport::scheme::tcp);
    constexpr std::string_view prefix = "tcp://";
    return of.to_string().substr(prefix.size());
}

/// A name, and its last master.
struct followed_masters::followed {
    followed(std::string of, cancel_source* parent) : name(std::move(of)), source(parent) {}

    const std::string name;
    cancel_source source;
    std::optional<known_master> now;
    event hint;              // a Sentinel may know more
    bool is_awaited = true;  // for the first time
    bool is_fault_noted = false;
    std::optional<time_point> reported_at = {};  // the last fault that was noted
};

followed_masters::followed_masters(master_observer& observer)
    : observer_(observer),
      group_(std::make_shared<const sentinel_group>()),
      random_(entropy_seed()) {
    answered_.set();
}

followed_masters::~followed_masters() { EDDY_ASSERT(names_.empty()); }

bool followed_masters::follow(const std::vector<std::string>& names, sentinel_group by) {
    EDDY_ASSERT(names.empty() || !by.all.empty());
    EDDY_ASSERT(by.all.size() <= max_sentinels);
    const bool is_other_group = *group_ != by;
    if (is_other_group) {
        failures_.assign(by.all.size(), {});
        group_ = std::make_shared<const sentinel_group>(std::move(by));
    }
    std::vector<followed_pointer> kept;
    std::vector<followed_pointer> added;
    bool has_room = true;
    for (const std::string& each : names) {
        if (std::ranges::any_of(kept, [&](const auto& other) { return other->name == each; }))
            continue;
        if (kept.size() == max_names) {
            has_room = false;
            break;
        }
        followed_pointer its = find(each);
        if (!its || is_other_group) {
            const followed_pointer before =
                std::exchange(its, std::make_shared<followed>(each, &tasks_.source()));
            if (before) its->now = before->now;
            its->is_awaited = !its->now;
            added.push_back(its);
        }
        kept.push_back(std::move(its));
    }
    for (const followed_pointer& each : added)
        if (each->is_awaited) ++waiting_;
    if (waiting_ > 0) answered_.reset();
    const std::vector<followed_pointer> before = std::exchange(names_, kept);
    for (const followed_pointer& each : before) {
        if (std::ranges::find(kept, each) != kept.end()) continue;
        each->source.request();
        end_wait(*each);
    }
    for (const followed_pointer& each : added) begin(each);
    return has_room;
}

void followed_masters::begin(const followed_pointer& its) {
    if (its->is_awaited) tasks_.spawn(limit_wait(its).under(its->source));
    tasks_.spawn(run(its, group_).under(its->source));
}

std::optional<known_master> followed_masters::master_of(std::string_view name) const {
    const followed_pointer its = find(name);
    return its ? its->now : std::nullopt;
}

task<void> followed_masters::wait() { static_cast<void>(co_await answered_.wait()); }

task<void> followed_masters::end() {
    tasks_.cancel();
    co_await tasks_.join();
    names_.clear();
    waiting_ = 0;
    answered_.set();
}

followed_masters::followed_pointer followed_masters::find(std::string_view name) const noexcept {
    for (const followed_pointer& each : names_)
        if (each->name == name) return each;
    return nullptr;
}

/// Ends the wait for a name that has no master in time.
task<void> followed_masters::limit_wait(followed_pointer its) {
    const result<> slept = co_await loop::current().sleep_for(first_wait);
    if (!slept || !its->is_awaited) co_return;
    try {
        end_wait(*its);
        notify();
    } catch (const std::bad_alloc&) {  // NOLINT(bugprone-empty-catch): the next answer notifies
    }
}

/// Follows a name at one Sentinel after the other.
task<void> followed_masters::run(followed_pointer its, group_pointer by) {
    std::size_t failed = 0;  // in a row
    duration pause = first_pause;
    for (std::size_t i = 0;; i = (i + 1) % by->all.size()) {
        loop& here = loop::current();
        const time_point begun = here.now();
        bool was_of_use = false;
        try {
            was_of_use = co_await follow_at(its, by, i);
        } catch (const std::bad_alloc&) {  // NOLINT(bugprone-empty-catch): it is tried again
        }
        if (its->source.requested()) co_return;
        // One that ends each connection soon is of little use.
        if (was_of_use && here.now() - begun >= poll_interval) {
            failed = 0;
            pause = first_pause;
        }
        if (++failed < by->all.size()) continue;
        failed = 0;
        const result<> slept = co_await here.sleep_for(jittered(pause));
        if (!slept) co_return;
        pause = std::min(2 * pause, longest_pause);
    }
}

/// Follows a name at a Sentinel until that fails, or its word is doubtful for too long. True if it
/// has named a master that can be used.
task<bool> followed_masters::follow_at(followed_pointer its, group_pointer by,
                                       std::size_t sentinel) {
    const transport::address& at = by->all[sentinel];
    auto link = co_await open_link(at, by->password);
    if (!link) {
        note_lost(*its, sentinel, link.error().message);
        co_return false;
    }
    scope listening(co_await current_source());
    listening.spawn(listen(its, by, sentinel));
    bool was_of_use = false;
    try {
        was_of_use = co_await poll(its, **link, sentinel, at.to_string());
    } catch (const std::bad_alloc&) {  // NOLINT(bugprone-empty-catch): it is tried again
    }
    listening.cancel();
    co_await listening.join();
    co_return was_of_use;
}

/// Asks a Sentinel again and again, by one connection.
task<bool> followed_masters::poll(followed_pointer its, redis_link& over, std::size_t sentinel,
                                  std::string uri) {
    bool was_of_use = false;
    for (std::size_t doubts = 0; doubts < checks;) {
        its->hint.reset();
        std::vector<std::string> question{"SENTINEL", "GET-MASTER-ADDR-BY-NAME", its->name};
        const result<flat_reply> reply =
            co_await with_timeout(patience, over.ask(std::move(question)));
        if (its->source.requested()) co_return was_of_use;
        const master_answer answer = read_answer(reply, uri);
        if (!answer.fault.empty()) {
            note_lost(*its, sentinel, answer.fault);
            co_return was_of_use;
        }
        note_found(sentinel, uri);
        if (answer.is_unknown) {
            note_no_master(*its, "the Sentinel " + uri + " knows no master of this name");
            co_return was_of_use;
        }
        EDDY_ASSERT(answer.where.has_value());
        bool is_usable = its->now && its->now->where == *answer.where;
        if (is_usable)
            note_master_in_use(*its);
        else
            is_usable = co_await check(its, *answer.where, uri);
        if (its->source.requested()) co_return was_of_use;
        was_of_use = was_of_use || is_usable;
        doubts = is_usable ? 0 : doubts + 1;
        const result<> rested = co_await loop::current().sleep_for(least_pause);
        if (!rested) co_return was_of_use;
        const duration pause = is_usable ? poll_interval : check_pause;
        const result<> hinted = co_await with_timeout(pause, its->hint.wait());
        if (!hinted && hinted.error() != errc::timed_out) co_return was_of_use;
    }
    co_return false;
}

/// Asks the server that a Sentinel has named for its role, and adopts it if it is a master.
task<bool> followed_masters::check(followed_pointer its, transport::address named,
                                   std::string uri) {
    std::string why = "is this proxy itself";
    if (!observer_.is_own(named)) why = co_await fault_of_role(named);
    if (its->source.requested()) co_return false;
    if (why.empty()) {
        adopt(*its, std::move(named), std::move(uri));
        co_return true;
    }
    note_no_master(*its,
                   "the Sentinel " + uri + " names " + host_and_port(named) + ", which " + why);
    co_return false;
}

/// Subscribes to the switches that a Sentinel announces, again and again; its messages are hints to
/// ask. Until it is cancelled: a Sentinel that allows no subscription is polled all the same.
task<void> followed_masters::listen(followed_pointer its, group_pointer by, std::size_t sentinel) {
    for (duration pause = first_pause;; pause = std::min(2 * pause, longest_pause)) {
        try {
            auto link = co_await open_link(by->all[sentinel], by->password);
            if (link) {
                std::vector<std::string> command{"SUBSCRIBE", "+switch-master"};
                result<flat_reply> message =
                    co_await with_timeout(patience, (*link)->ask(std::move(command)));
                while (message && message->error.empty()) {
                    if (is_hint(*message, its->name)) its->hint.set();
                    message = co_await (*link)->next();
                }
            }
        } catch (const std::bad_alloc&) {  // NOLINT(bugprone-empty-catch): it is tried again
        }
        const result<> slept = co_await loop::current().sleep_for(jittered(pause));
        if (!slept) co_return;
    }
}

/// Time from the upper half of a length, so that many proxies do not come back at once.
duration followed_masters::jittered(duration length) noexcept {
    const auto half = static_cast<std::uint64_t>(length.count()) / 2;
    EDDY_ASSERT(half > 0);
    return duration(half + random_.below(half));
}

void followed_masters::adopt(followed& its, transport::address named, std::string uri) {
    const std::optional<known_master> before =
        std::exchange(its.now, known_master{std::move(named), std::move(uri)});
    its.is_fault_noted = false;
    has_changed_ = true;
    observer_.note_master(its.name, *its.now, before ? &before->where : nullptr);
    end_wait(its);
    notify();
}

void followed_masters::note_no_master(followed& its, std::string_view why) noexcept {
    const time_point now = loop::current().now();
    const bool is_soon = its.reported_at && now - *its.reported_at < report_interval;
    if (its.is_fault_noted || is_soon) return;
    its.is_fault_noted = true;
    its.reported_at = now;
    observer_.note_no_master(its.name, why, its.now.has_value());
}

/// The Sentinel names the master that is in use.
void followed_masters::note_master_in_use(followed& its) {
    EDDY_ASSERT(its.now.has_value());
    if (std::exchange(its.is_fault_noted, false))
        observer_.note_master(its.name, *its.now, nullptr);
    notify();
}

void followed_masters::note_lost(const followed& its, std::size_t sentinel,
                                 std::string_view why) noexcept {
    // A cancellation is no failure.
    if (its.source.requested()) return;
    failure_note& of = failures_.at(sentinel);
    const time_point now = loop::current().now();
    const bool is_soon = of.reported_at && now - *of.reported_at < report_interval;
    if (of.is_noted || is_soon) return;
    of.is_noted = true;
    of.reported_at = now;
    observer_.note_lost_sentinel(why);
}

void followed_masters::note_found(std::size_t sentinel, std::string_view uri) noexcept {
    if (std::exchange(failures_.at(sentinel).is_noted, false)) observer_.note_found_sentinel(uri);
}

void followed_masters::end_wait(followed& its) noexcept {
    if (!std::exchange(its.is_awaited, false)) return;
    EDDY_ASSERT(waiting_ > 0);
    if (--waiting_ > 0) return;
    answered_.set();
    // Changes may have waited for it.
    has_changed_ = true;
}

void followed_masters::notify() {
    if (waiting_ > 0 || !has_changed_) return;
    observer_.note_changed_masters();
    has_changed_ = false;
}

}  // namespace eddy::proxy
