// Clients of a server's script, and the order of their callbacks.
#include "runtime/server/script/server_script.hpp"

#include <eddy/base/assert.hpp>
#include <eddy/io/loop.hpp>
#include <eddy/io/timeout.hpp>

#include "runtime/scripting/awaited_call.hpp"
#include "runtime/scripting/http_callback.hpp"
#include "runtime/scripting/http_request.hpp"
#include "runtime/scripting/loop_script.hpp"
#include "runtime/scripting/script_names.hpp"
#include "runtime/scripting/send_callback.hpp"
#include "runtime/server/script/client_route.hpp"
#include "runtime/server/script/server_callbacks.hpp"
#include "runtime/server/script/server_library.hpp"
#include "runtime/server/script/upstream_library.hpp"
#include "runtime/server/upstreams.hpp"

#include <algorithm>
#include <array>
#include <expected>
#include <new>
#include <optional>
#include <span>
#include <unordered_map>
#include <utility>

namespace eddy::runtime::server {
namespace {

/// Callbacks behind those of all types, in this order.
constexpr std::size_t on_auth = first_own_callback;
constexpr std::size_t on_connect = on_auth + 1;
constexpr std::size_t on_client_message = on_auth + 2;
constexpr std::size_t on_message = on_auth + 3;
constexpr std::size_t on_disconnect = on_auth + 4;
constexpr std::size_t on_upstream = on_auth + 5;
constexpr std::size_t on_upstream_connect = on_auth + 6;
constexpr std::size_t on_upstream_disconnect = on_auth + 7;
constexpr std::size_t on_master_auth = on_auth + 8;
constexpr std::size_t on_send = on_auth + 9;
constexpr std::size_t on_websocket = on_auth + 10;
constexpr std::size_t on_http_request = on_auth + 11;
constexpr std::size_t callback_count = 12;
constexpr std::size_t no_callback = SIZE_MAX;

std::size_t callback_of(upstream_event::kind what) noexcept {
    switch (what) {
        case upstream_event::kind::connected: return on_upstream_connect;
        case upstream_event::kind::message: return on_upstream;
        case upstream_event::kind::disconnected: return on_upstream_disconnect;
    }
    EDDY_ASSERT(false);
}

/// Result of on_auth or on_connect: false, false and a text, or a text refuse the client, and so
/// does a failure; the text is the reason.
struct verdict {
    bool is_refusal = false;
    std::string reason = {};
};

verdict verdict_of(std::size_t callback, const script::call_end& end) {
    EDDY_ASSERT(callback == on_auth || callback == on_connect);
    if (end.what != script::call_end::kind::returned) return {true, {}};
    if (end.results.empty()) return {};
    const script::value& first = end.results[0];
    if (const std::string* const text = first.text()) return {true, *text};
    if (first.truth() == nullptr || *first.truth()) return {};
    const std::string* const why = end.results.size() > 1 ? end.results[1].text() : nullptr;
    return {true, why == nullptr ? std::string() : *why};
}

/// Result of on_websocket: nil and true accept, a text names a subprotocol; false, false and a
/// text, and a status of 400 to 599 refuse. The error is the script's mistake.
std::expected<websocket_verdict, std::string> websocket_verdict_of(const script::call_end& end) {
    using kind = script::call_end::kind;
    if (end.what == kind::gone) return websocket_verdict{.status = 503};
    if (end.what == kind::failed) return websocket_verdict{.status = 500};
    EDDY_ASSERT(end.results.size() == 2);
    const script::value& first = end.results[0];
    const std::string* const words = end.results[1].text();
    const std::string reason = words == nullptr ? std::string() : *words;
    if (first.is_nil()) return websocket_verdict();
    if (const bool* const truth = first.truth())
        return websocket_verdict{.status = *truth ? 0 : 403, .reason = reason};
    if (const std::string* const name = first.text(); name != nullptr && http1::is_token(*name))
        return websocket_verdict{.protocol = *name};
    if (const int status = status_of(first, 400); status != 0)
        return websocket_verdict{.status = status, .reason = reason};
    return std::unexpected(
        std::string("it returns no subprotocol, status of 400 to 599, true, false or nil"));
}

class loaded_script final : public server_script, private script_clients {
public:
    loaded_script(const script_config& from, const script_identity& identity,
                  serving::journal& lines, script_transport& to)
        : transport_(to),
          file_(from.file),
          max_data_(from.memory),
          max_body_(from.body),
          name_(identity.name),
          daemon_(identity.daemon),
          script_(type_of(identity), from, lines) {}
    ~loaded_script() override { EDDY_ASSERT(clients_.empty() && routes_.children() == 0); }

    /// At once, for a trial.
    outcome<> load() { return script_.load(file_); }
    task<outcome<>> load_in_slices() {
        auto loaded = co_await script_.load_in_slices(std::exchange(file_, {}));
        if (loaded) note_callbacks();
        co_return loaded;
    }
    task<void> abandon() { return script_.abandon(); }
    task<outcome<>> start() override {
        auto loaded = co_await load_in_slices();
        if (!loaded) co_return loaded;
        co_return co_await script_.start();
    }
    task<outcome<>> replace(script_file by) override {
        auto replaced = co_await script_.replace(std::move(by));
        if (replaced) note_callbacks();
        co_return replaced;
    }
    task<outcome<>> prepare(script_file by) override { return script_.prepare(std::move(by)); }
    void adopt() override {
        script_.adopt();
        note_callbacks();
    }
    void discard() override { script_.discard(); }
    task<void> stop(duration limit) override { return script_.stop(limit); }
    task<void> end(duration limit) override {
        co_await script_.end(limit);
        routes_.cancel();
        co_await routes_.join();
        // Clients are left where no time was for their on_disconnect.
        clients_.clear();
        groups_.clear();
        last_ = nullptr;
        data_bytes_ = 0;
    }

    bool takes_messages_of(const script_client& of) const noexcept override {
        return takes_messages_ || of.route != nullptr || of.pipe != 0;
    }
    script_client& enter(std::uint64_t id, void* peer) override {
        auto made = std::make_unique<script_client>(id);
        made->peer = peer;
        script_client& its = *made;
        EDDY_ASSERT(id != 0 && peer != nullptr && !clients_.contains(id));
        clients_.insert_or_assign(id, std::move(made));
        return its;
    }
    void connect(script_client& of) override {
        of.is_admitted = !script_.defines(on_auth);
        proceed(of, on_auth, {});
    }
    bool message(script_client& of, std::string_view text) override {
        EDDY_ASSERT(!of.is_busy);
        last_ = &of;
        if ((of.route != nullptr || of.pipe != 0) && pass_on(of, text)) [[unlikely]]
            return !of.is_busy;
        return proceed(of, on_client_message, text);
    }
    bool message_later(script_client& of, std::string_view text) override {
        if (of.is_refused || of.is_dismissed) return false;
        if (!of.is_busy) {
            static_cast<void>(message(of, text));
            return true;
        }
        if (of.waiting.size() >= max_waiting_messages) return false;
        of.waiting.emplace_back(text);
        return true;
    }
    void leave(script_client& of) noexcept override {
        EDDY_ASSERT(of.peer != nullptr && !of.is_leaving);
        of.peer = nullptr;
        if (of.route != nullptr) of.route->close();
        of.route = nullptr;
        of.unsent = byte_buffer();
        of.unsent_count = 0;
        if (of.is_busy) return;
        try {
            end_client(of);
        } catch (const std::bad_alloc&) {
            forget(of);
        }
    }

    task<bool> upstream(upstream_event what) override {
        const std::size_t which = callback_of(what.what);
        if (!script_.defines(which)) co_return false;
        const std::array<script_argument, 2> both{static_cast<double>(what.number),
                                                  std::string_view(what.text)};
        const bool has_text = what.what != upstream_event::kind::connected;
        const script::call_end* end = nullptr;
        auto call = script_.begin(which, std::span(both).first(has_text ? 2 : 1), end);
        if (call) static_cast<void>(co_await await_call(std::move(call)));
        co_return true;
    }

    bool judges_claims() const noexcept override { return script_.defines(on_master_auth); }
    bool claim(script_client& of, std::string_view password) override {
        EDDY_ASSERT(!of.is_busy);
        return proceed(of, on_master_auth, password);
    }

    bool takes_sends() const noexcept override { return script_.defines(on_send); }
    task<outcome<std::optional<std::string>>> send(std::string text) override {
        return ask_on_send(script_, on_send, std::move(text), sends_, "the server");
    }

    bool judges_websockets() const noexcept override { return script_.defines(on_websocket); }
    task<websocket_verdict> judge(script_client& of, const eddy::http::request& incoming) override {
        std::string host;
        auto facts = facts_of(incoming, host);
        facts.id = of.id;
        const script::call_end* end = nullptr;
        auto call = script_.begin_with(on_websocket, request_arguments(incoming, facts), end);
        result<script::call_end> awaited;
        if (call) {
            awaited = co_await await_call(std::move(call));
            // The response to a request that was cancelled is no answer.
            if (!awaited) co_return websocket_verdict{.status = 503};
            end = &*awaited;
        }
        auto judged = websocket_verdict_of(*end);
        if (judged) co_return std::move(*judged);
        script_.note_misuse("on_websocket", judged.error());
        co_return websocket_verdict{.status = 500};
    }

    bool takes_requests() const noexcept override { return script_.defines(on_http_request); }
    task<std::optional<eddy::http::response>> answer(eddy::http::request& incoming) override {
        return answer_by(script_, on_http_request, incoming, max_body_);
    }

    bool is_round_over() const noexcept override { return script_.is_round_over(); }

    std::vector<script_client*> find(const script_receivers& which) override {
        if (which.ids.empty()) return members(which.group);
        std::vector<script_client*> found;
        for (const std::uint64_t id : which.ids)
            if (script_client* const one = find(id)) found.push_back(one);
        return found;
    }
    const script_tallies& counted() const noexcept override { return script_.counted(); }

    script_type type_of(const script_identity& of) {
        script_type made;
        made.callbacks = server_callbacks();
        made.libraries.push_back(server_library(*this));
        made.libraries.push_back(upstream_library(transport_.upstream_links()));
        made.fields = {{"name", of.name},
                       {"port", static_cast<double>(of.port)},
                       {"type", std::string("server")},
                       {"state", std::string("running")},
                       {"protocol", std::string(of.protocol)}};
        made.table_name = "server";
        made.daemon = of.daemon;
        return made;
    }

private:
    void note_callbacks() noexcept {
        takes_messages_ = script_.defines(on_client_message) || script_.defines(on_message);
        // on_message(text) is that of other systems; on_message(client, text) is ours.
        wants_text_alone_ = script_.defines(on_message) && script_.parameters(on_message) == 1;
        script_.note_memory();
    }

    // --- Of the functions ----------------------------------------------------------------------

    script_transport& transport() noexcept override { return transport_; }
    script_client* find(std::uint64_t id) noexcept override {
        if (last_ != nullptr && last_->id == id) return last_;
        const auto found = clients_.find(id);
        return found == clients_.end() ? nullptr : found->second.get();
    }
    bool has_others() const noexcept override { return transport_.has_other_loops(); }
    bool is_elsewhere(std::uint64_t id) const noexcept override {
        return transport_.is_elsewhere(id);
    }
    std::size_t& data_bytes() noexcept override { return data_bytes_; }
    std::size_t max_data_bytes() const noexcept override { return max_data_; }
    host* daemon() const noexcept override { return daemon_.get(); }
    const std::string& own_name() const noexcept override { return name_; }
    bool route(script_client& of, std::shared_ptr<client_route> to) override {
        EDDY_ASSERT(to != nullptr && of.peer != nullptr);
        if (routes_.children() >= max_client_routes) return false;
        if (of.route != nullptr) of.route->close();
        of.pipe = 0;
        of.route = to;
        routes_.spawn(serve(of.id, std::move(to)));
        return true;
    }
    std::vector<script_client*> all() override {
        std::vector<script_client*> made;
        for (const auto& [id, one] : clients_)
            if (one->peer != nullptr && one->is_admitted) made.push_back(one.get());
        std::ranges::sort(made, {}, &script_client::id);
        return made;
    }
    std::vector<script_client*> members(std::string_view group) override {
        const auto found = groups_.find(group);
        if (found == groups_.end()) return {};
        return {found->second.begin(), found->second.end()};
    }
    void join(script_client& who, std::string_view group) override {
        if (!who.groups.emplace(group).second) return;
        auto found = groups_.find(group);
        if (found == groups_.end()) found = groups_.try_emplace(std::string(group)).first;
        found->second.push_back(&who);
    }
    void part(script_client& who, std::string_view group) override {
        const auto found = groups_.find(group);
        if (found != groups_.end()) {
            std::erase(found->second, &who);
            if (found->second.empty()) groups_.erase(found);
        }
        who.groups.erase(who.groups.find(group));
    }

    // --- Routes and pipes ----------------------------------------------------------------------

    /// Passes a message on to the client's route or pipe. False where that has ended: the script
    /// has it.
    bool pass_on(script_client& of, std::string_view text) {
        EDDY_ASSERT(!of.is_busy && (of.pipe != 0) != (of.route != nullptr));
        if (of.pipe != 0) {
            script_client* const to = find(of.pipe);
            if (to != nullptr && to->peer != nullptr) {
                static_cast<void>(transport_.send(*to, text));
                return true;
            }
            of.pipe = 0;
            return false;
        }
        if (of.route->is_closed()) {
            of.route = nullptr;
            return false;
        }
        if (of.route->send(text)) return true;
        of.is_busy = true;
        of.idle.reset();
        script_.version().tasks().spawn(await_room(of, of.route));
        return true;
    }
    task<void> await_room(script_client& of, std::shared_ptr<client_route> in) {
        co_await in->room();
        end_event(of);
    }
    task<void> serve(std::uint64_t id, std::shared_ptr<client_route> over) {
        co_await over->run(transport_.max_message(),
                           [this, id, its = over.get()](std::string_view line) {
                               script_client* const to = find(id);
                               if (to != nullptr && to->peer != nullptr && to->route.get() == its)
                                   static_cast<void>(transport_.send(*to, line));
                           });
        script_client* const from = find(id);
        if (from != nullptr && from->route == over) from->route = nullptr;
    }

    // --- Order of a client's callbacks ---------------------------------------------------------

    /// The callback behind `which` of the same event.
    static std::size_t next_of(std::size_t which) noexcept {
        if (which == on_auth) return on_connect;
        return which == on_client_message ? on_message : no_callback;
    }
    /// The first callback from `which` on that the script has.
    std::size_t defined_from(std::size_t which) const noexcept {
        while (which != no_callback && !script_.defines(which)) which = next_of(which);
        return which;
    }

    std::span<const script_argument> arguments_of(std::size_t callback, const script_client& of,
                                                  std::string_view text) noexcept {
        arguments_[0] = static_cast<double>(of.id);
        arguments_[1] = text;
        const std::span<const script_argument> both(arguments_);
        if (callback == on_message && wants_text_alone_) return both.subspan(1, 1);
        const bool has_text =
            callback == on_message || callback == on_client_message || callback == on_master_auth;
        return both.first(has_text ? 2 : 1);
    }

    /// Runs the callbacks of an event from `which` on. False while one of them waits, and where the
    /// client is forgotten.
    bool proceed(script_client& of, std::size_t which, std::string_view text) {
        script::call_order order = script::call_order::in_order;
        if (which == on_client_message && of.overtaking > 0) {
            --of.overtaking;
            order = script::call_order::overtaking;
        }
        for (which = defined_from(which); which != no_callback;
             which = defined_from(next_of(which))) {
            const script::call_end* end = nullptr;
            auto call = script_.begin(which, arguments_of(which, of, text), end, order);
            if (call) return wait_for(of, which, std::move(call), text);
            if (!passes(of, which, *end)) return true;
        }
        return true;
    }

    bool wait_for(script_client& of, std::size_t which, std::unique_ptr<script_call> call,
                  std::string_view text) {
        EDDY_ASSERT(!of.is_busy);
        of.is_busy = true;
        of.idle.reset();
        const std::uint64_t id = of.id;
        script_version& version = call->version();
        const bool has_next = next_of(which) != no_callback;
        version.tasks().spawn(
            go_on(of, which, std::move(call), has_next ? std::string(text) : std::string()));
        const auto found = clients_.find(id);
        return found != clients_.end() && !found->second->is_busy;
    }

    /// Judges the end of a callback; false when the client is refused.
    bool passes(script_client& of, std::size_t which, const script::call_end& end) {
        if (which == on_master_auth) {
            const bool* const truth = end.results.empty() ? nullptr : end.results[0].truth();
            if (of.peer != nullptr) transport_.decide_claim(of, truth != nullptr && *truth);
        }
        if (which > on_connect) return true;
        const verdict judged = verdict_of(which, end);
        if (judged.is_refusal) refuse(of, judged.reason);
        if (which == on_auth && !judged.is_refusal) of.is_admitted = true;
        return !judged.is_refusal;
    }

    /// The same as proceed(), where one of them waits.
    task<void> go_on(script_client& of, std::size_t which, std::unique_ptr<script_call> call,
                     std::string text) {
        for (;;) {
            script_version& version = call->version();
            const script::call_end end = co_await version.finish(std::move(call));
            if (!passes(of, which, end)) break;
            which = defined_from(next_of(which));
            if (which == no_callback) break;
            call = script_.version().make_call(which, arguments_of(which, of, text));
            if (&call->version() == &version) continue;
            // The version before may be ended, and its tasks with it.
            script_version& next = call->version();
            next.tasks().spawn(go_on(of, which, std::move(call), std::move(text)));
            co_return;
        }
        end_event(of);
    }

    void refuse(script_client& of, const std::string& reason) {
        of.is_refused = true;
        if (of.peer != nullptr) transport_.refuse(of, reason);
    }

    /// The callbacks of an event that has waited have ended: the next event of the client.
    void end_event(script_client& of) {
        EDDY_ASSERT(of.is_busy);
        of.is_busy = false;
        of.overtaking = max_overtaking;
        while (!of.waiting.empty() && !of.is_refused && !of.is_leaving) {
            const std::string text = std::move(of.waiting.front());
            of.waiting.erase(of.waiting.begin());
            // Where it waits, its end comes here again, with the rest.
            if (!message(of, text)) return;
        }
        of.idle.set();
        if (of.peer == nullptr) end_client(of);
    }

    /// on_disconnect of a client that has gone, once.
    void end_client(script_client& of) {
        if (!of.is_leaving && !of.is_refused && script_.defines(on_disconnect)) {
            of.is_leaving = true;
            if (!proceed(of, on_disconnect, {})) return;
        }
        forget(of);
    }

    void forget(script_client& of) noexcept {
        EDDY_ASSERT(of.peer == nullptr && !of.is_busy && !of.is_dirty);
        if (last_ == &of) last_ = nullptr;
        while (!of.groups.empty()) {
            const auto found = groups_.find(*of.groups.begin());
            if (found != groups_.end()) {
                std::erase(found->second, &of);
                if (found->second.empty()) groups_.erase(found);
            }
            of.groups.erase(of.groups.begin());
        }
        for (const auto& [key, each] : of.data) data_bytes_ -= data_size(key, each);
        clients_.erase(of.id);
    }

    script_transport& transport_;
    std::unordered_map<std::uint64_t, std::unique_ptr<script_client>> clients_;
    std::map<std::string, std::vector<script_client*>, std::less<>> groups_;
    script_client* last_ = nullptr;  // whose message came last
    script_file file_;               // until it is loaded
    const std::size_t max_data_;
    const std::size_t max_body_;
    std::size_t data_bytes_ = 0;
    std::array<script_argument, 2> arguments_;
    const std::shared_ptr<std::size_t> sends_ = std::make_shared<std::size_t>(0);  // that wait
    bool takes_messages_ = false;
    bool wants_text_alone_ = false;
    const std::string name_;
    const std::shared_ptr<host> daemon_;
    scope routes_;
    loop_script script_;
};

/// For trials.
class no_transport final : public script_transport {
    bool send(script_client& /*to*/, std::string_view /*text*/) override { return false; }
    bool send_to_all(std::string_view /*text*/) override { return false; }
    std::size_t send_to_each(const std::vector<script_client*>& /*to*/,
                             std::string_view /*text*/) override {
        return 0;
    }
    bool send_elsewhere(script_receivers /*to*/, std::string_view /*text*/) override {
        return false;
    }
    bool has_other_loops() const noexcept override { return false; }
    void disconnect(script_client& /*of*/) override {}
    void refuse(script_client& /*of*/, std::string_view /*reason*/) override {}
    void decide_claim(script_client& /*of*/, bool /*is_granted*/) override {}
    std::string ip_of(const script_client& /*of*/) const override { return {}; }
    std::uint64_t connections() const override { return 0; }
    std::size_t max_message() const override { return SIZE_MAX; }
};

}  // namespace

std::span<const script::callback> server_callbacks() {
    static const std::string wrapper =
        std::string(request_wrapper())
            .append("return function(client, ...) return run(client, request(...)) end");
    static const std::array<script::callback, callback_count> all = {{
        {.name = "on_auth", .arguments = "client", .results = 2},
        {.name = "on_connect", .arguments = "client", .results = 2},
        {.name = "on_client_message", .arguments = "client, text"},
        {.name = "on_message", .arguments = "client, text"},
        {.name = "on_disconnect", .arguments = "client"},
        {.name = "on_upstream", .arguments = "upstream, text"},
        {.name = "on_upstream_connect", .arguments = "upstream"},
        {.name = "on_upstream_disconnect", .arguments = "upstream, reason"},
        {.name = "on_master_auth", .arguments = "client, password", .results = 1},
        send_callback,
        {.name = "on_websocket", .arguments = "client, request", .results = 2, .wrapper = wrapper},
        http_request_callback(),
    }};
    return all;
}

outcome<std::unique_ptr<server_script>> server_script::make(const script_config& from,
                                                            script_identity identity,
                                                            serving::journal& lines,
                                                            script_transport& to) {
    return std::make_unique<loaded_script>(from, identity, lines, to);
}

outcome<> try_server_script(const script_config& from) {
    no_transport to;
    no_journal lines;
    return loaded_script(from, {}, lines, to).load();
}

task<outcome<>> try_server_script_in_slices(script_config from) {
    no_transport to;
    no_journal lines;
    loaded_script tried(from, {}, lines, to);
    auto loaded = co_await tried.load_in_slices();
    co_await tried.abandon();
    co_return loaded;
}

std::vector<std::string> server_functions() {
    no_transport to;
    no_journal lines;
    return functions_of(loaded_script({}, {}, lines, to).type_of({}));
}

}  // namespace eddy::runtime::server
