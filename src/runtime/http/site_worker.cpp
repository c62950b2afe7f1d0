// Serving the clients of a site on one loop.
#include "runtime/http/site_worker.hpp"

#include <eddy/io/loop.hpp>

#include "http/codings/compression.hpp"
#include "runtime/scripting/script_limits.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <memory>
#include <string>
#include <utility>

namespace eddy::runtime::http {

using eddy::http::client_label;
using eddy::http::exchange_record;

namespace {

// Small compressed results take at most this part of --cache, on top of it.
constexpr std::size_t compressed_share = 8;

}  // namespace

site_worker::site_worker(const serving::worker_place& place, request_log& log, const config& chosen,
                         std::optional<eddy::http::static_files> files,
                         const script_identity& identity)
    : server_worker(place, this, chosen.limits, chosen.max_connections),
      config_(chosen),
      requests_(log, chosen.format, place.count > 1),
      files_(std::move(files)),
      compressed_(chosen.files.cache_bytes / compressed_share),
      index_(place.index),
      compressed_bytes_(chosen.files.cache_bytes / compressed_share) {
    const bool serves = place.count == 1 || place.index != 0;
    if (!chosen.script || !serves) return;
    auto made = site_script::make(chosen.script, identity, place.events);
    if (made) script_ = std::move(*made);
    if (!made) script_fault_ = made.error().message;
}

site_worker::~site_worker() = default;

task<void> site_worker::drain(duration limit) {
    const time_point last = loop::current().after(limit);
    if (script_) co_await script_->stop(std::min<duration>(limit, script_farewell));
    co_await server_worker::drain(std::max(last - loop::current().now(), duration{}));
    if (!script_) co_return;
    const duration left = last - loop::current().now();
    co_await script_->end(std::clamp(left, duration{}, duration(script_farewell)));
}

task<outcome<>> site_worker::start_script() {
    if (!script_fault_.empty()) co_return refuse(400, script_fault_);
    if (!script_) co_return outcome<>();
    co_return co_await script_->start();
}

task<outcome<>> site_worker::prepare_script(script_file by) {
    if (!script_) co_return outcome<>();
    co_return co_await script_->prepare(std::move(by));
}

void site_worker::adopt_script() {
    if (script_) script_->adopt();
}

void site_worker::discard_script() {
    if (script_) script_->discard();
}

void site_worker::apply(const config& chosen) {
    copy_live(option_rows(), chosen, config_);
    set_max_connections(config_.max_connections);
}

void site_worker::replace_files(std::optional<eddy::http::static_files> files) {
    files_ = std::move(files);
    compressed_ = eddy::http::coded_cache(compressed_bytes_);
}

task<eddy::http::response> site_worker::handle(eddy::http::request& incoming) {
    if (script_ && script_->answers()) return answer_by_script(incoming);
    return serve(incoming);
}

task<eddy::http::response> site_worker::answer_by_script(eddy::http::request& incoming) {
    auto answer = co_await script_->answer(incoming);
    if (!answer) co_return co_await serve(incoming);
    if (config_.compress) eddy::http::compress_response(incoming, *answer);
    co_return std::move(*answer);
}

/// The files.
task<eddy::http::response> site_worker::serve(eddy::http::request& incoming) {
    if (config_.compress && files_) return answer_compressed(incoming);
    if (files_) return files_->serve(incoming, incoming.path());
    return [](site_worker& self) -> task<eddy::http::response> {
        co_return self.reject(404, "there is nothing here");
    }(*this);
}

task<eddy::http::response> site_worker::answer_compressed(eddy::http::request& incoming) {
    eddy::http::response answer = co_await files_->serve(incoming, incoming.path());
    eddy::http::compress_response(incoming, answer, {}, compressed_);
    co_return answer;
}

eddy::http::response site_worker::reject(int status, std::string_view what) {
    return {status, "text/plain; charset=utf-8",
            fmt::format("{} {}: {}\n", status, http1::reason_phrase(status), what)};
}

std::unique_ptr<const client_label> site_worker::label(const stream& accepted) const {
    return requests_.label(accepted, announced());
}

void site_worker::note(const client_label* from, const exchange_record& what) {
    server_worker::note(from, what);
    requests_.note(from, what, counted_.dropped);
}

}  // namespace eddy::runtime::http
