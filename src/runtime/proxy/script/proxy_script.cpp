// Calls of on_route, and what its results mean.
#include "runtime/proxy/script/proxy_script.hpp"

#include <eddy/http/request.hpp>
#include <eddy/http/response.hpp>

#include "proxy/http/request_fields.hpp"
#include "runtime/proxy/backend_source.hpp"
#include "runtime/proxy/script/proxy_callbacks.hpp"
#include "runtime/scripting/awaited_call.hpp"
#include "runtime/scripting/http_callback.hpp"
#include "runtime/scripting/http_request.hpp"
#include "runtime/scripting/loop_script.hpp"
#include "runtime/scripting/script_names.hpp"
#include "script/http_fields.hpp"

#include <fmt/format.h>

#include <array>
#include <expected>
#include <string>
#include <string_view>
#include <type_traits>
#include <utility>
#include <vector>

namespace eddy::runtime::proxy {
namespace {

using eddy::proxy::field_setting;
using eddy::proxy::message_edit;
using eddy::proxy::route_choice;

constexpr std::size_t on_route = first_own_callback;
constexpr std::size_t on_proxy_request = on_route + 1;
constexpr std::size_t on_proxy_response = on_route + 2;

/// Bytes of a name in an error's text.
constexpr std::size_t longest_name = 100;

/// Adds the settings of a table by names: a text or number sets a field, false removes it. The
/// error is the script's mistake.
std::expected<void, std::string> read_settings(const script::value& from,
                                               std::vector<field_setting>& to) {
    if (from.is_nil()) return {};
    if (from.fields() == nullptr || !from.fields()->elements.empty())
        return std::unexpected(std::string("headers is no table of texts by name"));
    for (const auto& [name, each] : from.fields()->fields) {
        const bool* const truth = each.truth();
        const bool is_removed = truth != nullptr && !*truth;
        std::string kept;
        const std::string* const text = script::text_of(each, kept);
        if (!eddy::proxy::is_settable_field(name))
            return std::unexpected("the proxy decides about the header " +
                                   name.substr(0, longest_name) + " itself");
        if (!is_removed && (text == nullptr || text->empty() || !http1::is_field_value(*text)))
            return std::unexpected("the header " + name.substr(0, longest_name) +
                                   " is no text of one line, and not false");
        to.push_back({name, is_removed ? std::string() : *text});
    }
    return {};
}

/// The name of a backend as --backend has it is that of the address, such as "tcp://127.0.0.1:80".
std::string name_of(std::string_view text) {
    if (!text.starts_with('/') && text.find(':') != std::string_view::npos &&
        text.find("://") == std::string_view::npos)
        if (const auto read = read_sources(text, "on_route"); read && read->size() == 1)
            return read->front().name;
    return std::string(text);
}

script_type proxy_script_type(const script_identity& of) {
    script_type made;
    made.callbacks = proxy_callbacks();
    made.fields = {{"name", of.name},
                   {"port", static_cast<double>(of.port)},
                   {"type", std::string("proxy")},
                   {"state", std::string("running")}};
    made.table_name = "proxy";
    made.daemon = of.daemon;
    return made;
}

class loaded_script final : public proxy_script {
public:
    loaded_script(const script_config& from, const script_identity& identity,
                  serving::journal& lines)
        : file_(from.file), script_(proxy_script_type(identity), from, lines) {}

    task<outcome<>> start() override {
        auto loaded = co_await script_.load_in_slices(std::exchange(file_, {}));
        if (!loaded) co_return loaded;
        co_return co_await script_.start();
    }
    task<outcome<>> prepare(script_file by) override { return script_.prepare(std::move(by)); }
    void adopt() override { script_.adopt(); }
    void discard() override { script_.discard(); }
    task<void> stop(duration limit) override { return script_.stop(limit); }
    task<void> end(duration limit) override { return script_.end(limit); }
    const script_tallies& counted() const noexcept override { return script_.counted(); }

    bool chooses() const noexcept override { return script_.defines(on_route); }
    task<result<route_choice>> choose(const eddy::http::request& incoming, std::string_view host,
                                      std::string_view client, bool is_secure) override {
        request_arguments given(incoming, {.host = host, .client = client, .is_secure = is_secure});
        co_return co_await judged<route_choice>(on_route, given);
    }

    bool edits_requests() const noexcept override { return script_.defines(on_proxy_request); }
    task<result<message_edit>> edit_request(const eddy::http::request& incoming,
                                            std::string_view host, std::string_view client,
                                            bool is_secure) override {
        request_arguments given(incoming, {.host = host, .client = client, .is_secure = is_secure});
        co_return co_await judged<message_edit>(on_proxy_request, given);
    }
    bool edits_responses() const noexcept override { return script_.defines(on_proxy_response); }
    task<result<message_edit>> edit_response(const eddy::http::request& incoming,
                                             const eddy::http::response& answer) override {
        response_arguments given(incoming, answer);
        co_return co_await judged<message_edit>(on_proxy_response, given);
    }

private:
    /// Verdict of the callback on the arguments, which outlive the call. Fails if it is cancelled.
    template <class Verdict>
    task<result<Verdict>> judged(std::size_t callback, const pushed_arguments& given) {
        const script::call_end* end = nullptr;
        auto call = script_.begin_with(callback, given, end);
        if (!call) co_return verdict_of<Verdict>(callback, *end);
        const auto awaited = co_await await_call(std::move(call));
        if (!awaited) co_return fail(awaited.error());
        co_return verdict_of<Verdict>(callback, *awaited);
    }
    template <class Verdict>
    Verdict verdict_of(std::size_t callback, const script::call_end& end) {
        if constexpr (std::is_same_v<Verdict, route_choice>)
            return choice_of(end);
        else
            return edit_of(callback, end);
    }

    /// nil and true change nothing; false, and of requests a status, refuse; of responses a status
    /// is the new one; a table has status and headers.
    message_edit edit_of(std::size_t callback, const script::call_end& end) {
        using kind = script::call_end::kind;
        const bool is_request = callback == on_proxy_request;
        if (end.what == kind::gone) return {.status = 503, .why = "the script was ended"};
        if (end.what == kind::failed) return {.status = 500, .why = "the script has failed"};
        if (end.results.empty() || end.results[0].is_nil()) return {};
        const script::value& given = end.results[0];
        if (const bool* const truth = given.truth()) {
            if (*truth) return {};
            return {.status = is_request ? 403 : 502, .why = refused};
        }
        message_edit made;
        std::expected<void, std::string> good;
        const script::table* const whole = given.fields();
        const script::value& status = whole == nullptr ? given : (*whole)["status"];
        if (const int number = status_of(status); number != 0) {
            made.why = refused;
            (is_request ? made.status : made.new_status) = number;
        } else if (!status.is_nil()) {
            good = std::unexpected(std::string("its status is no whole number of 200 to 599"));
        }
        if (good && whole != nullptr) good = read_settings((*whole)["headers"], made.fields);
        if (good) return made;
        script_.note_misuse(is_request ? "on_proxy_request" : "on_proxy_response", good.error());
        return {.status = 500, .why = "the script returns what it may not"};
    }

    static route_choice choice_of(const script::call_end& end) {
        using kind = script::call_end::kind;
        if (end.what == kind::gone) return {.status = 503, .why = "on_route was ended"};
        if (end.what == kind::failed) return {.status = 500, .why = "on_route has failed"};
        if (end.results.empty() || end.results[0].is_nil()) return {};
        const script::value& chosen = end.results[0];
        if (const std::string* const name = chosen.text(); name != nullptr && !name->empty())
            return {.name = name_of(*name)};
        if (const bool* const truth = chosen.truth(); truth != nullptr && !*truth)
            return {.status = 403, .why = refused};
        if (const int status = status_of(chosen); status != 0)
            return {.status = status, .why = refused};
        return {.status = 500, .why = "on_route returns no backend, route or status"};
    }

    static constexpr std::string_view refused = "the request is refused";
    script_file file_;  // until it is loaded
    loop_script script_;
};

}  // namespace

std::span<const script::callback> proxy_callbacks() {
    static const std::string of_request =
        std::string(request_wrapper()).append("return function(...) return run(request(...)) end");
    static const std::string of_response =
        std::string(request_wrapper()).append("return function(...) return run(response(...)) end");
    static const std::array<script::callback, 3> all = {{
        {.name = "on_route", .arguments = "request", .results = 1, .wrapper = of_request},
        {.name = "on_proxy_request", .arguments = "request", .results = 1, .wrapper = of_request},
        {.name = "on_proxy_response",
         .arguments = "response",
         .results = 1,
         .wrapper = of_response},
    }};
    return all;
}

outcome<std::unique_ptr<proxy_script>> proxy_script::make(const script_config& from,
                                                          const script_identity& identity,
                                                          serving::journal& lines) {
    return std::make_unique<loaded_script>(from, identity, lines);
}

outcome<> try_proxy_script(const script_config& from) {
    return try_script(proxy_script_type({}), from);
}

task<outcome<>> try_proxy_script_in_slices(script_config from) {
    return try_script_in_slices(proxy_script_type({}), std::move(from));
}

std::vector<std::string> proxy_functions() { return functions_of(proxy_script_type({})); }

}  // namespace eddy::runtime::proxy
