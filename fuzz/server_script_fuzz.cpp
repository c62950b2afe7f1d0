// Fuzz target of a server's script, in the simulator: whatever the script is, and in whatever order
// clients come, send and leave, the script is loaded again and the server stops, all callbacks end
// within their limits and the server neither crashes nor hangs.
//
// The first byte chooses as in simulated_client.hpp, the second seeds. The rest is the script, up
// to a line "--- " and then events, a byte each; see events below. The script finds the helpers of
// `helpers`.
#include "runtime/server/script/server_script.hpp"

#include <eddy/base/assert.hpp>
#include <eddy/io/loop.hpp>
#include <eddy/io/scope.hpp>

#include "simulated_client.hpp"

#include <algorithm>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

namespace {

using namespace eddy;
using namespace eddy::runtime::server;
using namespace std::chrono_literals;

constexpr std::size_t max_clients = 8;
constexpr std::size_t max_events = 64;

/// Functions that scripts find: a failure, a wait, and work.
constexpr std::string_view helpers =
    "function fail() error('x') end function nap() eddy.sleep(0.001) end "
    "function work() for i = 1, 1e4 do end end ";

class lines_of_nobody final : public serving::journal {
    void write(std::string_view line) override { EDDY_ASSERT(line.size() < 10'000); }
};

/// Clients that take everything.
class sink final : public script_transport {
public:
    bool send(script_client& to, std::string_view /*text*/) override { return to.peer != nullptr; }
    bool send_to_all(std::string_view /*text*/) override { return true; }
    std::size_t send_to_each(const std::vector<script_client*>& to,
                             std::string_view /*text*/) override {
        return to.size();
    }
    bool send_elsewhere(script_receivers /*to*/, std::string_view /*text*/) override {
        return false;
    }
    bool has_other_loops() const noexcept override { return false; }
    void disconnect(script_client& of) override { of.is_dismissed = true; }
    void refuse(script_client& of, std::string_view /*reason*/) override { of.is_dismissed = true; }
    void decide_claim(script_client& /*of*/, bool /*is_granted*/) override {}
    std::string ip_of(const script_client& /*of*/) const override { return "127.0.0.1"; }
    std::uint64_t connections() const override { return count; }
    std::size_t max_message() const override { return 1000; }

    std::uint64_t count = 0;
};

/// The server's part: clients that come, send one message after the other, and leave.
class events {
public:
    events(server_script& of, sink& to) : script_(of), to_(to) {}

    task<void> play(std::string_view all, const runtime::script_config& config) {
        for (const char each : all.substr(0, max_events)) {
            const auto code = static_cast<std::uint8_t>(each);
            const std::size_t which = code >> 3U;
            switch (code & 7U) {
                case 0: come(); break;
                case 1:
                case 2: send(which, "text " + std::to_string(which)); break;
                case 3: leave(which); break;
                case 4: static_cast<void>(co_await loop::current().sleep_for(1ms * which)); break;
                case 5: static_cast<void>(co_await script_.replace(config.file)); break;
                case 6:
                    if (auto done = co_await script_.prepare(config.file); done && which % 2 == 0)
                        script_.adopt();
                    break;
                default: static_cast<void>(co_await loop::current().yield()); break;
            }
        }
        while (!here_.empty()) leave(0);
    }

private:
    void come() {
        if (here_.size() >= max_clients) return;
        script_client& made = script_.enter(++last_, this);
        here_.push_back(&made);
        ++to_.count;
        script_.connect(made);
    }
    void send(std::size_t which, const std::string& text) {
        if (here_.empty()) return;
        script_client& its = *here_[which % here_.size()];
        if (script_.takes_messages_of(its)) static_cast<void>(script_.message_later(its, text));
    }
    void leave(std::size_t which) {
        if (here_.empty()) return;
        const auto at = here_.begin() + static_cast<std::ptrdiff_t>(which % here_.size());
        script_client& its = **at;
        here_.erase(at);
        --to_.count;
        script_.leave(its);
    }

    server_script& script_;
    sink& to_;
    std::vector<script_client*> here_;
    std::uint64_t last_ = 0;
};

task<void> serve(fuzz::session_input what) {
    constexpr std::string_view mark = "\n--- ";
    const std::size_t end = std::min(what.text.find(mark), what.text.size());
    runtime::script_config config;
    config.path = config.file.name = "fuzz.lua";
    config.file.text = std::string(helpers) + std::string(what.text.substr(0, end));
    config.memory = std::size_t{4} << 20;
    config.slice = 100us;
    config.time = 2ms;
    lines_of_nobody lines;
    sink to;
    auto made = server_script::make(config, {.name = "fuzz", .port = 1}, lines, to);
    EDDY_ASSERT(made);
    server_script& script = **made;
    if (co_await script.start()) {
        const std::size_t begin = std::min(end + mark.size(), what.text.size());
        co_await events(script, to).play(what.text.substr(begin), config);
        co_await script.stop(1ms);
    }
    co_await script.end(1ms);
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
    return fuzz::run_session(data, size, serve);
}
