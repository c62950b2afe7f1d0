// Files, log, workers and counts of a site.
#include "runtime/http/site.hpp"

#include "runtime/scripting/script_options.hpp"

#include <fmt/format.h>

#include <cstddef>
#include <utility>

namespace eddy::runtime::http {
namespace {

using eddy::http::static_files;

const site_worker& as_worker(const serving::loop_worker& of) noexcept {
    return static_cast<const site_worker&>(of);
}
site_worker& as_worker(serving::loop_worker& of) noexcept { return static_cast<site_worker&>(of); }

const config& own(const serving_config& of) noexcept { return static_cast<const config&>(of); }

using file_list = std::vector<std::optional<static_files>>;

outcome<std::shared_ptr<file_list>> open_files(const config& by, std::size_t count) {
    auto all = std::make_shared<file_list>(count);
    if (by.root.empty()) return all;
    for (auto& each : *all) {
        auto opened = static_files::open(by.root, by.files);
        if (!opened)
            return refuse(400, fmt::format("--root {} cannot be served: {}", by.root,
                                           opened.error().message()));
        each.emplace(std::move(*opened));
    }
    return all;
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
    written_.emplace(log_.lines(), log_.is_open());
    is_stopping_ = false;
    return {};
}

task<outcome<>> site::check(config_pointer next, bool /*discards_data*/) {
    const http::config& wanted = own(*next);
    if (auto files = open_files(wanted, 1); !files) co_return std::unexpected(files.error());
    if (wanted.script)
        if (auto good = co_await try_site_script_in_slices(wanted.script); !good) co_return good;
    if (wanted.access_log.empty()) co_return outcome<>();
    co_return line_log::check(wanted.access_log);
}

serving::loop_pool::factory site::worker_factory() {
    return [&log = *written_, by = shared_config(), files = std::move(files_),
            identity = script_identity{.name = name(), .port = local().port(), .daemon = daemon()}](
               const serving::worker_place& place) {
        return std::make_unique<site_worker>(place, log, own(*by),
                                             std::move(files->at(place.index)), identity);
    };
}

task<outcome<>> site::begin() {
    log_.begin();
    if (!chosen().script) co_return outcome<>();
    co_return co_await reloads_.run(
        on_each_worker([](serving::loop_worker& of) { return as_worker(of).start_script(); }));
}

task<outcome<>> site::reload_script() { return reloads_.run(read_and_replace_script()); }

task<outcome<>> site::read_and_replace_script() {
    if (!is_running()) co_return refuse(409, fmt::format("{} is not running", name()));
    if (!chosen().script) co_return has_no_script(name());
    auto read = co_await read_script_in_background("--lua", chosen().script.path, max_script_file);
    if (!read) co_return std::unexpected(read.error());
    if (!is_running() || is_stopping_) co_return refuse(409, fmt::format("{} was stopped", name()));
    co_return co_await on_each_worker_together(
        [&file = *read](serving::loop_worker& of) { return as_worker(of).prepare_script(file); },
        [](serving::loop_worker& of) { as_worker(of).adopt_script(); },
        [](serving::loop_worker& of) { as_worker(of).discard_script(); });
}

task<void> site::begin_stop() {
    is_stopping_ = true;
    co_await reloads_.end();
}

void site::retire(const serving::loop_worker& last) {
    requests_.add(as_worker(last).requests());
    if (const script_tallies* const its = as_worker(last).script_counts()) {
        script_counts_.add(*its);
        script_counts_.forget_gauges();
    }
}

task<void> site::end() {
    co_await log_.close();
    written_.reset();
    files_.reset();
}

void site::add_counts(metrics& to) const {
    request_totals all = requests_;
    for_each_worker([&](const serving::loop_worker& of) { all.add(as_worker(of).requests()); });
    all.add_to(to);
    if (is_running() && chosen().script) script_counts().add_samples_to(to);
}

/// Sum of all threads, and of starts before this one.
script_tallies site::script_counts() const {
    script_tallies all = script_counts_;
    for_each_worker([&](const serving::loop_worker& of) {
        if (const script_tallies* const its = as_worker(of).script_counts()) all.add(*its);
    });
    return all;
}

std::string site::lack() const { return script_counts().fault(name()); }

task<outcome<bool>> site::reread_files() {
    if (chosen().script)
        if (auto loaded = co_await reload_script(); !loaded)
            co_return std::unexpected(loaded.error());
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
