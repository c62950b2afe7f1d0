// Test fixture: hooks without threads and without scripts, answered by the test.
#pragma once

#include "cache/read_through/read_through.hpp"
#include "cache/testing/test_client.hpp"

#include <gtest/gtest.h>

#include <chrono>
#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <utility>

namespace eddy::cache::testing {

class HooksTest : public ::testing::Test, protected hook_host {
protected:
    void begin(hook_options options = {}, engine_options of_engine = {}) {
        options.has_miss = true;
        begin_exactly(options, of_engine);
    }
    /// With the functions that `options` name and no others.
    void begin_exactly(const hook_options& options, engine_options of_engine = {}) {
        of_engine.seed = 7;
        home_ = std::make_unique<engine>(of_engine);
        set_time(1'000'000'000);
        hooks_ = &read_through::attach(*home_, options, *this);
    }
    hook_options all() const {
        hook_options options;
        options.has_write = options.has_delete = options.has_expire = true;
        return options;
    }

    void hook_work_came() noexcept override { ++calls_; }
    void set_time(std::int64_t us) {
        now_us_ = us;
        home_->set_time(std::chrono::microseconds(us));
    }
    void pass_ms(std::int64_t ms) {
        set_time(now_us_ + ms * 1000);
        hooks_->tick();
        while (home_->upkeep()) {
        }
    }

    /// The next job, as "miss key", "write key=value ttl"; empty when there is none.
    std::string next() {
        hook_job job;
        if (!hooks_->take(job)) return {};
        std::string text;
        switch (job.what) {
            case hook_job::kind::miss: text = "miss "; break;
            case hook_job::kind::write: text = "write "; break;
            case hook_job::kind::erase: text = "erase "; break;
            case hook_job::kind::expire: text = "expire "; break;
        }
        if (job.database != 0) text += std::to_string(job.database) + ":";
        text += job.key;
        if (job.value) text += "=" + *job.value;
        if (job.ttl_ms != 0) text += " " + std::to_string(job.ttl_ms);
        jobs_[text] = job.id;
        return text;
    }
    void give(const std::string& job, std::string value, std::int64_t ttl_ms = 0) {
        hook_result result;
        result.id = jobs_.at(job);
        result.value = std::move(value);
        if (ttl_ms != 0) result.ttl_ms = ttl_ms;
        hooks_->finish(std::move(result));
    }
    void give_none(const std::string& job, std::optional<std::int64_t> ttl_ms = {}) {
        hook_result result;
        result.id = jobs_.at(job);
        result.ttl_ms = ttl_ms;
        hooks_->finish(std::move(result));
    }
    void give_failure(const std::string& job) {
        hook_result result;
        result.id = jobs_.at(job);
        result.failed = true;
        hooks_->finish(std::move(result));
    }
    void end_waits(test_client& who) { home_->end_wait(who.who()); }

    std::unique_ptr<engine> home_;
    read_through* hooks_ = nullptr;
    std::int64_t now_us_ = 0;
    int calls_ = 0;
    std::map<std::string, std::uint64_t> jobs_;
};

}  // namespace eddy::cache::testing
