// Requests of a server's clients.
#include "runtime/server/http_visit.hpp"

#include <eddy/wire/websocket.hpp>

#include "runtime/server/page_client.hpp"
#include "runtime/server/server_worker.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <memory>
#include <string>
#include <utility>

namespace eddy::runtime::server {
namespace {

/// Gives the connection back to the server, as a WebSocket.
class return_to_worker final : public eddy::http::connection_takeover {
public:
    return_to_worker(server_worker& to, client& its) noexcept : worker_(to), client_(its) {}
    task<void> run(stream peer, byte_buffer received) override {
        worker_.open_websocket(client_, std::move(peer), std::move(received));
        co_return;
    }

private:
    server_worker& worker_;
    client& client_;
};

eddy::http::response answer_of(int status, std::string_view what) {
    return {status, "text/plain; charset=utf-8",
            fmt::format("{} {}: {}\n", status, http1::reason_phrase(status), what)};
}

}  // namespace

/// In place of files. The connection ends, since the client expects another server.
eddy::http::response http_visit::refuse_request() {
    worker_.note(server_worker::refusal::no_files, client_);
    auto refused = answer_of(426, "this port serves messages and WebSocket, and no files");
    const auto added = eddy::websocket::add_error_fields(refused.headers, {426, {}});
    const auto closes = refused.headers.add("Connection", "close");
    EDDY_ASSERT(added.has_value() && closes.has_value());
    return refused;
}

task<eddy::http::response> http_visit::answer_by_script(eddy::http::request& incoming) {
    auto answer = co_await worker_.script()->answer(incoming);
    if (answer) co_return std::move(*answer);
    co_return co_await serve(incoming);
}

/// The files.
task<eddy::http::response> http_visit::serve(eddy::http::request& incoming) {
    if (files_ != nullptr) return files_->serve(incoming, incoming.path());
    return [](http_visit& self) -> task<eddy::http::response> {
        co_return self.refuse_request();
    }(*this);
}

task<eddy::http::response> http_visit::handle(eddy::http::request& incoming) {
    if (!eddy::websocket::is_upgrade(incoming.head())) {
        if (worker_.injects_client() && incoming.path() == page_client_path) {
            return [](const eddy::http::request& asked) -> task<eddy::http::response> {
                co_return serve_page_client(asked);
            }(incoming);
        }
        if (worker_.script() != nullptr && worker_.script()->takes_requests())
            return answer_by_script(incoming);
        return serve(incoming);
    }
    return open_websocket(incoming);
}

task<eddy::http::response> http_visit::open_websocket(eddy::http::request& asked) {
    auto agreed = eddy::websocket::check_request(asked.head(), {});
    if (!agreed) {
        auto refused = answer_of(agreed.error().status, agreed.error().what);
        const auto added = eddy::websocket::add_error_fields(refused.headers, agreed.error());
        EDDY_ASSERT(added.has_value());
        co_return refused;
    }
    if (!eddy::websocket::is_origin_allowed(asked.head(), worker_.origins(), worker_.is_secure())) {
        worker_.note(server_worker::refusal::origin, client_,
                     asked.headers().find("Origin").value_or(""));
        co_return answer_of(403, "a page of this origin may not connect (--origins)");
    }
    server_script* const by = client_.script == nullptr ? nullptr : worker_.script();
    if (by != nullptr && by->judges_websockets()) {
        const websocket_verdict judged = co_await by->judge(*client_.script, asked);
        if (judged.status != 0) {
            const bool has_reason = !judged.reason.empty() && judged.status < 500;
            co_return answer_of(judged.status,
                                has_reason ? judged.reason : "the request is refused");
        }
        if (!judged.protocol.empty()) {
            agreed = eddy::websocket::check_request(asked.head(), {.protocols = {judged.protocol}});
            // One that was not offered is none, and then the client decides.
            EDDY_ASSERT(agreed.has_value());
        }
    }
    if (client_.script != nullptr)
        client_.script->web_fields = std::make_unique<const http1::header_list>(asked.headers());
    eddy::http::response switching(101);
    const auto added = eddy::websocket::add_response_fields(switching.headers, *agreed);
    EDDY_ASSERT(added.has_value());
    switching.takeover = std::make_unique<return_to_worker>(worker_, client_);
    co_return switching;
}

eddy::http::response http_visit::reject(int status, std::string_view what) {
    const bool is_served = files_ != nullptr || worker_.script() != nullptr;
    if (!is_served) worker_.note(server_worker::refusal::no_files, client_);
    return answer_of(status, what);
}

void http_visit::enter(eddy::http::session_state now) noexcept {
    using eddy::http::session_state;
    client_.touch();
    client_.enter(now == session_state::idle        ? serving::activity::resting
                  : now == session_state::receiving ? serving::activity::reading
                                                    : serving::activity::working);
}

void http_visit::note(const eddy::http::exchange_record& what) {
    ++requests_;
    const std::uint64_t known = std::min(counted_bytes_, what.bytes_in);
    counted_bytes_ -= known;
    counted_.bytes_in += what.bytes_in - known;
    counted_.bytes_out += what.bytes_out;
    if (!what.is_whole) ++counted_.errors;
}

bool http_visit::is_ending() const noexcept { return worker_.is_draining(); }

}  // namespace eddy::runtime::server
