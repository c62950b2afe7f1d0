// The new daemon's side of an upgrade.
#include "daemon/upgrade/incoming_upgrade.hpp"

#include <eddy/base/assert.hpp>
#include <eddy/io/loop.hpp>
#include <eddy/io/timeout.hpp>

#include "daemon/state/runtime_record.hpp"
#include "daemon/upgrade/passed_socket.hpp"

#include <fmt/format.h>

#include <chrono>
#include <memory>
#include <utility>

namespace eddy::daemon {
namespace {

/// Silence of the other daemon, which has nothing else to do at first.
constexpr duration introduction_patience = std::chrono::seconds(30);
/// The other daemon may write large caches meanwhile.
constexpr duration data_patience = handover_patience + std::chrono::minutes(1);

int number(const json& from, std::string_view name) {
    const auto found = from.find(name);
    return found != from.end() && found->is_number_integer() ? found->get<int>() : 0;
}

/// The data of an instance, in a file that has no name.
std::shared_ptr<runtime::handover> handover_of(unique_fd file, bool has_new_files) {
    EDDY_ASSERT(file);
    auto made = std::make_shared<runtime::handover>();
    made->folder = "the daemon before";
    made->path = fmt::format("/proc/self/fd/{}", file.get());
    made->file = std::move(file);
    made->is_used = true;
    made->has_new_files = has_new_files;
    return made;
}

}  // namespace

task<outcome<>> incoming_upgrade::begin() {
    EDDY_ASSERT(!lock_ && listeners_.empty());
    auto hello = co_await channel_.receive(introduction_patience);
    if (!hello) co_return std::unexpected(std::move(hello.error()));
    const int protocol = number(hello->what, "upgrade");
    if (protocol != upgrade_protocol)
        co_return refuse(500, fmt::format("the running daemon passes itself on by version {} of "
                                          "the upgrade, and this program knows version {}: stop "
                                          "the daemon, and start this one",
                                          protocol, upgrade_protocol));
    const int state = number(hello->what, "state_version");
    if (state > state_version)
        co_return refuse(500, fmt::format("the stored state is of version {}, and this program "
                                          "knows none above {}: use a newer program",
                                          state, state_version));
    membership_.id = hello->text("member");
    if (const auto since = hello->what.find("member_since");
        since != hello->what.end() && since->is_number_integer())
        membership_.started = since->get<std::int64_t>();
    lock_ = std::move(hello->descriptor);
    if (!lock_) co_return refuse(500, "the running daemon did not pass on its lock");
    for (int left = number(hello->what, "listeners"); left > 0; --left) {
        auto got = co_await channel_.receive(introduction_patience);
        if (!got) co_return std::unexpected(std::move(got.error()));
        if (got->text("listener") == "console") console_token_ = got->text("token");
        listeners_[got->text("listener")] = std::move(got->descriptor);
    }
    if (!membership_.id.empty()) {
        const auto got = co_await channel_.receive(introduction_patience);
        if (!got) co_return std::unexpected(got.error());
        if (got->descriptor) members_ = read_passed(got->descriptor.get());
    }
    co_return outcome<>();
}

unique_fd incoming_upgrade::take_listener(std::string_view name) {
    const auto found = listeners_.find(name);
    return found != listeners_.end() ? std::move(found->second) : unique_fd();
}

task<void> incoming_upgrade::show_life() {
    while (co_await loop::current().sleep_for(upgrade_sign_interval))
        if (!co_await channel_.send({{"alive", true}})) co_return;
}

task<outcome<>> incoming_upgrade::take_over(runtime_parts& runtimes, std::string version) {
    outcome<> done = co_await channel_.send({{"ready", std::move(version)}});
    scope tasks(co_await current_source());
    tasks.spawn(show_life());
    while (done) {
        auto got = co_await channel_.receive(data_patience);
        if (!got) {
            done = std::unexpected(std::move(got.error()));
            break;
        }
        if (got->has("serve")) break;
        done = co_await take(runtimes, std::move(*got), tasks);
    }
    tasks.cancel();
    co_await tasks.join();
    co_return done;
}

task<outcome<>> incoming_upgrade::take(runtime_parts& runtimes, upgrade_message what,
                                       scope& starting) {
    if (what.has("start")) {
        std::string name = what.text("start");
        if (const auto found = arrivals_.find(name);
            found != arrivals_.end() && found->second.sockets)
            found->second.sockets->chosen_port =
                static_cast<std::uint16_t>(number(what.what, "chosen_port"));
        if (what.has("ended"))
            starting.spawn(end(runtimes, std::move(name), std::move(what.what)));
        else
            starting.spawn(start(runtimes, std::move(name)));
        co_return outcome<>();
    }
    departure& of = arrivals_[what.text("of")];
    if (what.has("socket")) {
        auto read = read_passed(what.what["socket"]);
        if (!read) co_return std::unexpected(std::move(read.error()));
        if (!what.descriptor) co_return refuse(500, "a socket did not arrive");
        read->socket = std::move(what.descriptor);
        if (!of.sockets) of.sockets = std::make_shared<runtime::passed_listeners>();
        of.sockets->all.push_back(std::move(*read));
        co_return outcome<>();
    }
    if (what.has("clients") && what.descriptor) {
        auto read = read_clients(what.descriptor.get(),
                                 static_cast<std::size_t>(number(what.what, "clients")));
        if (!read) co_return std::unexpected(std::move(read.error()));
        of.clients = std::move(*read);
        co_return outcome<>();
    }
    if (what.has("client") && what.descriptor) {
        const auto index = static_cast<std::size_t>(number(what.what, "client"));
        if (index >= of.clients.size()) co_return refuse(500, "a client came without its state");
        of.clients[index].socket = std::move(what.descriptor);
        co_return outcome<>();
    }
    if (what.has("data") && what.descriptor) {
        of.data = handover_of(std::move(what.descriptor), what.what["data"] == json(true));
        co_return outcome<>();
    }
    co_return refuse(500, "the running daemon has sent an unexpected message");
}

task<void> incoming_upgrade::start(runtime_parts& runtimes, std::string name) {
    const runtime_ref which = runtimes.registry.get(name);
    outcome<> up;
    if (which == nullptr)
        up = refuse(404, fmt::format("the stored state has no \"{}\"", name));
    else
        up = co_await runtimes.lifecycle.arrive(which, std::move(arrivals_[name]));
    co_await answer(std::move(name), std::move(up));
}

/// Its instance has ended by itself in the other daemon, and none is to follow.
task<void> incoming_upgrade::end(runtime_parts& runtimes, std::string name, json how) {
    const runtime_ref which = runtimes.registry.get(name);
    outcome<> ended;
    instance_end its;
    if (how["ended"].is_string()) its.how = how["ended"].get<std::string>();
    its.is_failure = how["is_failure"] == json(true);
    its.has_stopped_owned = how["has_stopped_owned"] == json(true);
    if (which == nullptr)
        ended = refuse(404, fmt::format("the stored state has no \"{}\"", name));
    else if (its.how.empty())
        ended = refuse(500, "the running daemon has sent an unexpected message");
    else
        ended = co_await runtimes.lifecycle.arrive_ended(which, std::move(its));
    co_await answer(std::move(name), std::move(ended));
}

task<void> incoming_upgrade::answer(std::string name, outcome<> done) {
    if (done)
        static_cast<void>(co_await channel_.send({{"started", std::move(name)}}));
    else
        co_await fail(std::move(done.error().message));
}

task<outcome<>> incoming_upgrade::serve(runtime_parts& runtimes) {
    for (const auto& [name, ignored] : arrivals_) {
        const runtime_ref which = runtimes.registry.get(name);
        if (which == nullptr) continue;
        auto opened = co_await runtime_lifecycle::open(which);
        if (!opened) co_return opened;
    }
    arrivals_.clear();
    co_return co_await channel_.send({{"serving", true}});
}

task<void> incoming_upgrade::take_clients(runtime_parts& runtimes, incoming_events news) {
    EDDY_ASSERT(news.own_left && news.became_main);
    bool is_main = false;
    scope none(co_await current_source());
    for (;;) {
        // The other daemon may serve its last clients for long.
        auto got = co_await channel_.receive(data_patience);
        if (!got && got.error().status == 504) continue;
        if (!got) break;
        if (got->has("main")) {
            is_main = true;
            news.became_main();
        } else if (got->has("left")) {
            has_own_sockets_ = true;
            news.own_left();
        } else if (got->has("moved")) {
            has_clients_ = true;
        } else if (got->has("take")) {
            co_await take_over_from(runtimes, got->text("take"));
        } else if (auto taken = co_await take(runtimes, std::move(*got), none); !taken) {
            break;
        }
    }
    // Killed before its end.
    if (!is_main) news.became_main();
    if (!is_settled()) {
        news.own_left();
        for (const runtime_ref& each : runtimes.registry.all()) runtime_lifecycle::unshare(*each);
    }
    has_own_sockets_ = has_clients_ = true;
}

/// The other daemon accepts no more clients of a runtime, and has sent the ones that move.
task<void> incoming_upgrade::take_over_from(runtime_parts& runtimes, std::string name) {
    departure of = std::move(arrivals_[name]);
    arrivals_.erase(name);
    const runtime_ref which = runtimes.registry.get(name);
    if (which == nullptr) co_return;
    runtime_lifecycle::unshare(*which);
    static_cast<void>(co_await runtime_lifecycle::take_clients(which, std::move(of.clients)));
}

task<void> incoming_upgrade::fail(std::string why) {
    static_cast<void>(co_await channel_.send({{"failed", std::move(why)}}));
}

}  // namespace eddy::daemon
