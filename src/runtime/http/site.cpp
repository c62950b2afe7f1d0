// Files, log, workers and counts of a site.
#include "runtime/http/site.hpp"

#include <fmt/format.h>

#include <cstddef>
#include <utility>

namespace eddy::runtime::http {
namespace {

using eddy::http::static_files;

constexpr metric requests_total{.name = "requests_total",
                                .kind = metric_kind::counter,
                                .help = "Responses by the class of their status.",
                                .labels = {"code"}};
constexpr metric request_seconds{
    .name = "request_seconds",
    .kind = metric_kind::histogram,
    .help = "Time from the end of a request's head to the end of its response."};

const site_worker& as_worker(const serving::loop_worker& of) noexcept {
    return static_cast<const site_worker&>(of);
}
site_worker& as_worker(serving::loop_worker& of) noexcept { return static_cast<site_worker&>(of); }

const config& own(const serving_config& of) noexcept { return static_cast<const config&>(of); }

outcome<std::shared_ptr<std::vector<static_files>>> open_files(const config& by,
                                                               std::size_t count) {
    auto all = std::make_shared<std::vector<static_files>>();
    while (all->size() < count) {
        auto opened = static_files::open(by.root, by.files);
        if (!opened)
            return refuse(400, fmt::format("--root {} cannot be served: {}", by.root,
                                           opened.error().message()));
        all->push_back(std::move(*opened));
    }
    return all;
}

void add_classes(status_classes& to, const status_classes& of) noexcept {
    for (std::size_t i = 0; i < of.size(); ++i) to[i] += of[i];
}

}  // namespace

site::site(creation from)
    : served_runtime({.what = "the site", .thread_prefix = "ht-"}, std::move(from)),
      log_(events(), counted().dropped) {}

const config& site::chosen() const noexcept { return own(common()); }

outcome<served_runtime::config_pointer> site::read(const settings& options) const {
    return shared(read_config(options));
}

outcome<> site::prepare() {
    // One for each worker; that of the loop that accepts may serve nothing.
    auto files = open_files(chosen(), chosen().threads + 1);
    if (!files) return std::unexpected(files.error());
    if (auto opened = log_.open(chosen().access_log, chosen().threads > 1); !opened) return opened;
    files_ = std::move(*files);
    context_.emplace(events(), log_.lines(), log_.is_open());
    return {};
}

task<outcome<>> site::check(config_pointer next, bool /*discards_data*/) {
    const http::config& wanted = own(*next);
    if (auto files = open_files(wanted, 1); !files) co_return std::unexpected(files.error());
    if (wanted.access_log.empty()) co_return outcome<>();
    co_return line_log::check(wanted.access_log);
}

serving::loop_pool::factory site::worker_factory() {
    return [&context = *context_, by = shared_config(),
            files = std::move(files_)](const serving::worker_place& place) {
        return std::make_unique<site_worker>(place, context, own(*by),
                                             std::move(files->at(place.index)));
    };
}

task<outcome<>> site::begin() {
    log_.begin();
    co_return outcome<>();
}

void site::retire(const serving::loop_worker& last) {
    add_classes(by_status_, as_worker(last).by_status());
    latency_.merge(as_worker(last).latency());
}

task<void> site::end() {
    co_await log_.close();
    context_.reset();
    files_.reset();
}

void site::add_counts(metrics& to) const {
    status_classes by_status = by_status_;
    auto latency = std::make_shared<histogram>(latency_);
    for_each_worker([&](const serving::loop_worker& of) {
        add_classes(by_status, as_worker(of).by_status());
        latency->merge(as_worker(of).latency());
    });
    labelled<serving::tally> requests(requests_total);
    for (std::size_t i = 0; i < by_status.size(); ++i)
        requests.at({fmt::format("{}xx", i + 1)}) = by_status[i];
    to.add_samples(requests);
    to.add_sample(request_seconds, latency);
    to.latency = std::move(latency);
}

task<outcome<bool>> site::reread_files() {
    auto files = open_files(chosen(), chosen().threads + 1);
    if (!files) co_return std::unexpected(files.error());
    if (auto opened = log_.reopen(); !opened) co_return std::unexpected(opened.error());
    pool().post_to_all([files = std::move(*files)](serving::loop_worker& of) {
        auto& its = as_worker(of);
        its.replace_files(std::move(files->at(its.index())));
    });
    co_return true;
}

void site::apply_live() {
    pool().post_to_all(
        [by = shared_config()](serving::loop_worker& of) { as_worker(of).apply(own(*by)); });
}

}  // namespace eddy::runtime::http
