// Lua source: a script answers, in which each stream is a coroutine.
#include "runtime/stream/sources/lua_source.hpp"

#include <eddy/io/loop.hpp>

#include "runtime/stream/answer.hpp"
#include "runtime/stream/sources/relay_source.hpp"
#include "runtime/stream/sources/stream_library.hpp"
#include "script/coroutine_host.hpp"

#include <fmt/format.h>

#include <utility>

namespace eddy::runtime::stream {
namespace {

class scripted_source final : public relay_source {
public:
    scripted_source(sessions& in, observer& owner, const config& chosen, serving::journal& lines)
        : relay_source(in, owner, chosen, lines, script_log_interval),
          script_(stream_host_options()) {}

    std::expected<void, std::string> load(const config& from) {
        return script_.load(from.script.text, from.script.name);
    }
    std::string opening(const stream_request& from) const override {
        return response_head(from.headers);
    }

private:
    class scripted_stream final : public stream_call {
    public:
        scripted_stream(scripted_source& of, relay& to,
                        std::unique_ptr<stream_request> from) noexcept
            : stream_call(of.script_, std::move(from)), of_(of), to_(to) {}

        script::answer send(std::string event) override {
            switch (of_.try_send(to_, std::move(event))) {
                case sent::all: return {};
                case sent::waits: return of_.catch_up(to_);
                case sent::gone: break;
            }
            return script::answer::failed("the client has gone");
        }

    private:
        scripted_source& of_;
        relay& to_;
    };

    bool sends_heartbeats() const noexcept override { return true; }

    task<script::function_result> catch_up(relay& to) {
        if (!co_await await_client(to)) co_return std::unexpected("the client has gone");
        co_return script::values();
    }

    task<std::string_view> run(relay& to, std::unique_ptr<stream_request> from) override {
        to.has_head = true;
        to.ends_by = stream_end::event;
        scripted_stream call(*this, to, std::move(from));
        const script::call_end end = co_await script_.run(call);
        if (end.what != script::call_end::kind::failed) co_return "";
        failures().write("a script", end.text);
        co_return end.reason;
    }

    script::coroutine_host script_;
};

}  // namespace

outcome<std::unique_ptr<source>> make_lua_source(sessions& in, source::observer& owner,
                                                 const config& chosen, serving::journal& lines) {
    auto made = std::make_unique<scripted_source>(in, owner, chosen, lines);
    if (auto loaded = made->load(chosen); !loaded)
        return refuse(400, fmt::format("--script: {}", loaded.error()));
    return made;
}

outcome<> try_script(const config& chosen) {
    script::coroutine_host tried(stream_host_options());
    if (auto loaded = tried.load(chosen.script.text, chosen.script.name); !loaded)
        return refuse(400, fmt::format("--script: {}", loaded.error()));
    return {};
}

}  // namespace eddy::runtime::stream
