// Lua backend: a script answers, in which each stream is a coroutine.
#include "runtime/stream/lua_backend.hpp"

#include <eddy/io/loop.hpp>

#include "runtime/stream/answer.hpp"
#include "runtime/stream/relay_backend.hpp"
#include "runtime/stream/stream_script.hpp"

#include <fmt/format.h>

#include <utility>

namespace eddy::runtime::stream {
namespace {

class scripted_backend final : public relay_backend {
public:
    scripted_backend(sessions& in, observer& owner, const config& chosen, journal& lines)
        : relay_backend(in, owner, chosen, lines, script_log_interval) {}

    std::expected<void, std::string> load(const config& from) {
        return script_.load(from.script, from.script_name);
    }
    std::string opening(const request& from) const override { return response_head(from.headers); }

private:
    bool sends_heartbeats() const noexcept override { return true; }

    task<std::string_view> run(relay& to, std::unique_ptr<request> from) override {
        to.has_head = true;
        to.ends_by = stream_end::event;
        stream_script::call call(script_, std::move(from), to.is_gone);
        for (;;) {
            stream_script::step next = co_await script_.run(call);
            switch (next.what) {
                case stream_script::wish::send:
                    if (!co_await send(to, std::move(next.text))) co_return "";
                    break;
                case stream_script::wish::sleep: {
                    const auto slept = co_await loop::current().sleep_for(next.pause);
                    if (!slept) co_return "";
                    break;
                }
                case stream_script::wish::end: co_return "";
                case stream_script::wish::fail:
                    failures().write("a script", next.text);
                    co_return next.reason;
                case stream_script::wish::vanished: co_return "";
            }
        }
    }

    stream_script script_;
};

}  // namespace

outcome<std::unique_ptr<backend>> make_lua_backend(sessions& in, backend::observer& owner,
                                                   const config& chosen, journal& lines) {
    auto made = std::make_unique<scripted_backend>(in, owner, chosen, lines);
    if (auto loaded = made->load(chosen); !loaded)
        return refuse(400, fmt::format("--script: {}", loaded.error()));
    return made;
}

outcome<> try_script(const config& chosen) {
    stream_script tried;
    if (auto loaded = tried.load(chosen.script, chosen.script_name); !loaded)
        return refuse(400, fmt::format("--script: {}", loaded.error()));
    return {};
}

}  // namespace eddy::runtime::stream
