// Lua source: a script answers, in which each stream is a coroutine.
#include "runtime/stream/sources/lua_source.hpp"

#include <eddy/io/loop.hpp>

#include "runtime/scripting/loop_script.hpp"
#include "runtime/scripting/script_names.hpp"
#include "runtime/stream/answer.hpp"
#include "runtime/stream/sources/relay_source.hpp"
#include "runtime/stream/sources/stream_library.hpp"
#include "script/time_library.hpp"

#include <array>
#include <utility>

namespace eddy::runtime::stream {
namespace {

constexpr std::size_t handle = first_own_callback;
constexpr std::array<script::callback, 1> own_callbacks = {
    {{.name = "handle", .arguments = "request", .is_required = true}}};

script_type stream_script_type(std::string_view name, std::shared_ptr<host> daemon) {
    script_type made;
    made.callbacks = own_callbacks;
    made.libraries = {stream_library(), script::time_library()};
    made.fields = {{"name", std::string(name)},
                   {"type", std::string("stream")},
                   {"state", std::string("running")}};
    made.table_name = "stream";
    made.daemon = std::move(daemon);
    return made;
}

class scripted_source final : public relay_source {
public:
    scripted_source(sessions& in, observer& owner, const config& chosen, std::string_view name,
                    std::shared_ptr<host> daemon, serving::journal& lines)
        : relay_source(in, owner, chosen, lines),
          script_(stream_script_type(name, std::move(daemon)), chosen.script, lines) {}

    task<outcome<>> start() override {
        auto loaded = co_await script_.load_in_slices(options().script.file);
        if (!loaded) co_return loaded;
        co_return co_await script_.start();
    }
    task<outcome<>> replace_script(script_file by) override {
        return script_.replace(std::move(by));
    }
    const script_tallies* script_counts() const noexcept override { return &script_.counted(); }
    task<void> close() override {
        co_await script_.stop(script_farewell);
        co_await relay_source::close();
        co_await script_.end({});
    }
    std::string opening(const stream_request& from) const override {
        return response_head(from.headers);
    }

private:
    class scripted_stream final : public stream_call {
    public:
        scripted_stream(scripted_source& of, script_version& in, relay& to,
                        std::unique_ptr<stream_request> from) noexcept
            : stream_call(in.host(), handle, std::move(from)), of_(of), to_(to) {}

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
        // It stays that of the stream when the script is loaded again.
        script_version& version = script_.version();
        scripted_stream call(*this, version, to, std::move(from));
        const script::call_end end = co_await version.run_guest(call);
        co_return end.what == script::call_end::kind::failed ? end.reason : "";
    }

    loop_script script_;
};

}  // namespace

outcome<std::unique_ptr<source>> make_lua_source(sessions& in, source::observer& owner,
                                                 const config& chosen, std::string_view name,
                                                 std::shared_ptr<host> daemon,
                                                 serving::journal& lines) {
    return std::make_unique<scripted_source>(in, owner, chosen, name, std::move(daemon), lines);
}

outcome<> try_stream_script(const script_config& from) {
    return try_script(stream_script_type({}, nullptr), from);
}

task<outcome<>> try_stream_script_in_slices(script_config from) {
    return try_script_in_slices(stream_script_type({}, nullptr), std::move(from));
}

std::vector<std::string> stream_functions() {
    return functions_of(stream_script_type({}, nullptr));
}

}  // namespace eddy::runtime::stream
