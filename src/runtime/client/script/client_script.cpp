// Order of the callbacks of a client's script.
#include "runtime/client/script/client_script.hpp"

#include <eddy/base/assert.hpp>
#include <eddy/io/loop.hpp>
#include <eddy/io/scope.hpp>
#include <eddy/io/timeout.hpp>

#include "runtime/client/script/client_library.hpp"
#include "runtime/scripting/loop_script.hpp"
#include "runtime/scripting/script_names.hpp"
#include "runtime/scripting/send_callback.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <deque>
#include <new>
#include <span>
#include <utility>

namespace eddy::runtime::client {
namespace {

/// Callbacks behind those of all types, in this order.
constexpr std::size_t on_connect = first_own_callback;
constexpr std::size_t on_message = on_connect + 1;
constexpr std::size_t on_disconnect = on_connect + 2;
constexpr std::size_t on_send = on_connect + 3;
constexpr std::size_t callbacks_end = on_connect + 4;
constexpr std::array<script::callback, callbacks_end - first_own_callback> own_callbacks = {{
    {.name = "on_connect"},
    {.name = "on_message", .arguments = "text", .results = 1},
    {.name = "on_disconnect", .arguments = "reason"},
    send_callback,
}};

/// End of a call that waits, for the task that awaits it; it may outlive the script.
struct awaited_end {
    script::call_end is;
    event done;
};

bool has_returned_false(const script::call_end& end) noexcept {
    if (end.what != script::call_end::kind::returned || end.results.empty()) return false;
    const bool* const truth = end.results[0].truth();
    return truth != nullptr && !*truth;
}

class loaded_script final : public client_script {
public:
    loaded_script(const script_config& from, const script_identity& identity,
                  serving::journal& lines, script_link& to)
        : link_(to), file_(from.file), script_(type_of(identity, to), from, lines) {
        idle_.set();
    }
    ~loaded_script() override { EDDY_ASSERT(tasks_.children() == 0); }

    /// At once, for a trial.
    outcome<> load() { return script_.load(file_); }
    task<outcome<>> load_in_slices() { return script_.load_in_slices(std::exchange(file_, {})); }
    task<void> abandon() { return script_.abandon(); }
    task<outcome<>> start() override {
        auto loaded = co_await load_in_slices();
        if (!loaded) co_return loaded;
        co_return co_await script_.start();
    }
    task<outcome<>> replace(script_file by) override { return script_.replace(std::move(by)); }
    task<void> stop(duration limit) override { return script_.stop(limit); }
    task<void> end(duration limit) override {
        const time_point last = loop::current().after(limit);
        if (!idle_.is_set() && limit > duration{})
            static_cast<void>(co_await with_deadline(last, idle_.wait()));
        tasks_.cancel();
        co_await tasks_.join();
        waiting_.clear();
        idle_.set();
        co_await script_.end(std::max(last - loop::current().now(), duration{}));
    }

    void connect() override {
        EDDY_ASSERT(!is_connected_);
        is_connected_ = true;
        note({on_connect});
    }
    void message(std::string_view text, bool is_cut) override { note({on_message, text, is_cut}); }
    void disconnect(std::string_view reason) override {
        if (!std::exchange(is_connected_, false)) return;
        note({on_disconnect, reason});
    }
    bool takes_messages() const noexcept override { return script_.defines(on_message); }
    event& idle() noexcept override { return idle_; }

    bool takes_sends() const noexcept override { return script_.defines(on_send); }
    task<outcome<std::optional<std::string>>> send(std::string text) override {
        return ask_on_send(script_, on_send, std::move(text), sends_, "the client");
    }

    const script_tallies& counted() const noexcept override { return script_.counted(); }

private:
    struct happening {
        std::size_t callback = on_connect;
        std::string_view text = {};
        bool is_cut = false;
    };
    struct kept_happening {
        std::size_t callback = on_connect;
        std::string text = {};
        bool is_cut = false;
        happening view() const noexcept { return {callback, text, is_cut}; }
    };

public:
    static script_type type_of(const script_identity& of, script_link& to) {
        script_type made;
        made.callbacks = own_callbacks;
        made.libraries.push_back(client_library(to));
        made.fields = {{"name", of.name},
                       {"target", of.target},
                       {"type", std::string("client")},
                       {"state", std::string("running")}};
        made.table_name = "client";
        made.daemon = of.daemon;
        return made;
    }

private:
    /// Handles an event at once where none is before it.
    void note(const happening& what) {
        std::unique_ptr<script_call> call;
        if (idle_.is_set() && !script_.is_round_over()) {
            call = begin(what);
            if (!call) return;
        }
        waiting_.emplace_back(what.callback, std::string(what.text), what.is_cut);
        if (!idle_.is_set()) return;
        idle_.reset();
        tasks_.spawn(go_on(std::move(call)));
    }

    /// Null when the callback has ended, or there is none.
    std::unique_ptr<script_call> begin(const happening& what) {
        if (!script_.defines(what.callback)) {
            conclude(what, {});
            return nullptr;
        }
        script_argument passed = what.text;
        if (what.callback == on_disconnect && what.text.empty()) passed = std::monostate();
        const std::size_t count = what.callback == on_connect ? 0 : 1;
        const script::call_end* end = nullptr;
        auto call = script_.begin(what.callback, std::span(&passed, count), end);
        if (!call) conclude(what, *end);
        return call;
    }

    void conclude(const happening& what, const script::call_end& end) {
        if (what.callback == on_connect) link_.end_greeting();
        if (what.callback == on_message && !has_returned_false(end))
            link_.show(what.text, what.is_cut);
    }

    /// Handles the events that wait. `call` is that of the first one; null if it has not begun.
    task<void> go_on(std::unique_ptr<script_call> call) {
        try {
            co_await handle_all(std::move(call));
        } catch (const std::bad_alloc&) {
            waiting_.clear();
            link_.end_greeting();
        }
        idle_.set();
    }

    task<void> handle_all(std::unique_ptr<script_call> call) {
        while (!waiting_.empty()) {
            if (!call && script_.is_round_over()) co_await loop::current().yield();
            if (tasks_.source().requested()) co_return;
            if (!call) call = begin(waiting_.front().view());
            if (call) {
                const auto end = finish_later(std::move(call));
                if (!co_await end->done.wait()) co_return;
                conclude(waiting_.front().view(), end->is);
            }
            waiting_.pop_front();
        }
    }

    /// A call ends within the tasks of its version, which may end them.
    static std::shared_ptr<awaited_end> finish_later(std::unique_ptr<script_call> call) {
        auto end = std::make_shared<awaited_end>();
        script_version& version = call->version();
        version.tasks().spawn(finish(version, std::move(call), end));
        return end;
    }
    static task<void> finish(script_version& version, std::unique_ptr<script_call> call,
                             std::shared_ptr<awaited_end> to) {
        struct at_end {
            event& done;
            ~at_end() { done.set(); }
        } const setting{to->done};
        to->is = co_await version.finish(std::move(call));
    }

    script_link& link_;
    std::deque<kept_happening> waiting_;  // the first one may be under way
    event idle_;
    bool is_connected_ = false;
    const std::shared_ptr<std::size_t> sends_ = std::make_shared<std::size_t>(0);  // that wait
    script_file file_;  // until it is loaded
    loop_script script_;
    scope tasks_;
};

class no_link final : public script_link {
    outcome<bool> queue(std::string_view /*message*/) override { return false; }
    bool is_connected() const noexcept override { return false; }
    bool disconnect() noexcept override { return false; }
    void end_greeting() noexcept override {}
    void show(std::string_view /*message*/, bool /*is_cut*/) override {}
};

}  // namespace

std::span<const script::callback> client_callbacks() { return own_callbacks; }

outcome<std::unique_ptr<client_script>> client_script::make(const script_config& from,
                                                            const script_identity& identity,
                                                            serving::journal& lines,
                                                            script_link& to) {
    return std::make_unique<loaded_script>(from, identity, lines, to);
}

outcome<> try_client_script(const script_config& from) {
    no_link to;
    no_journal lines;
    return loaded_script(from, {}, lines, to).load();
}

task<outcome<>> try_client_script_in_slices(script_config from) {
    no_link to;
    no_journal lines;
    loaded_script tried(from, {}, lines, to);
    auto loaded = co_await tried.load_in_slices();
    co_await tried.abandon();
    co_return loaded;
}

std::vector<std::string> client_functions() {
    no_link to;
    return functions_of(loaded_script::type_of({}, to));
}

}  // namespace eddy::runtime::client
