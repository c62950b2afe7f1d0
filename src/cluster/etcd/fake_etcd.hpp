// Test double of etcd's JSON gateway: keys, leases and watches in memory, on any backend, with the
// faults that a real one has and a test cannot make it have.
#pragma once

#include <eddy/http/request.hpp>
#include <eddy/http/response.hpp>
#include <eddy/http/session.hpp>
#include <eddy/io/event.hpp>
#include <eddy/io/loop.hpp>
#include <eddy/io/scope.hpp>
#include <eddy/io/stream.hpp>
#include <eddy/io/task.hpp>

#include "base/text/base64.hpp"
#include "io/testing.hpp"

#include <nlohmann/json.hpp>

#include <chrono>
#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace eddy::cluster::testing {

using namespace std::chrono_literals;

/// One server, which may be stopped and started again at its port. stop() before the destructor.
/// One loop's thread.
class fake_etcd final : public http::request_handler {
public:
    using json = nlohmann::json;

    struct entry {
        std::string value;
        std::int64_t created = 0;
        std::int64_t written = 0;
        std::int64_t lease = 0;
    };

    fake_etcd() { go_on(); }
    fake_etcd(const fake_etcd&) = delete;
    fake_etcd& operator=(const fake_etcd&) = delete;

    // --- What it holds, for the test to change ---
    std::uint64_t cluster_id = 0xc1;
    std::int64_t revision = 1;
    std::int64_t compacted = 0;
    std::map<std::string, entry> keys;
    std::string password;               ///< of the user "eddy"; empty: authentication is off
    std::string token = "token-1";      ///< that authenticate gives and other requests need
    std::size_t max_value = SIZE_MAX;   ///< bytes; more are "request is too large"
    std::size_t max_answer = SIZE_MAX;  ///< bytes; more are "message larger than max"
    bool has_space = true;
    bool has_leader = true;
    bool keeps_leases = false;  ///< no lease ends by its time
    /// Answers in place of its own: nothing for the usual one.
    std::function<std::optional<http::response>(std::string_view path)> script;

    // --- What it has seen ---
    std::map<std::string, int> calls;  ///< by path behind "/v3/"
    int connections = 0;

    std::string uri() const { return "127.0.0.1:" + std::to_string(port_); }
    std::uint16_t port() const noexcept { return port_; }

    void start() {
        listener_ = must(loop::current().listen(must(endpoint::ip("127.0.0.1", port_))));
        port_ = listener_.local().port();
        serving_ = std::make_unique<scope>();
        serving_->spawn(accept_all());
        serving_->spawn(end_leases());
    }
    /// As a kill: connections break, keys and leases stay. Leases have their full time again at the
    /// next start, as etcd's have.
    task<void> stop() {
        if (!serving_) co_return;
        serving_->cancel();
        listener_.close();
        co_await serving_->join();
        serving_.reset();
        for (auto& [id, its] : leases_) its.end = loop::current().now() + its.time;
    }

    /// Requests from now on, and watches, are silent until go_on().
    void freeze() noexcept { going_on_.reset(); }
    void go_on() noexcept { going_on_.set(); }

    void put(const std::string& key, std::string value, std::int64_t lease = 0) {
        ++revision;
        entry& its = keys[key];
        if (its.created == 0) its.created = revision;
        its.value = std::move(value);
        its.written = revision;
        its.lease = lease;
        record({{"kv", json_of(key, its, false)}});
    }
    /// By value: the caller's may be the key of the entry itself.
    void remove(std::string key) {  // NOLINT(performance-unnecessary-value-param)
        if (keys.erase(key) == 0) return;
        ++revision;
        record({{"type", "DELETE"},
                {"kv", {{"key", base64(key)}, {"mod_revision", std::to_string(revision)}}}});
    }
    std::int64_t make_lease(std::chrono::seconds time) {
        leases_[++last_lease_] = {time, loop::current().now() + time};
        return last_lease_;
    }
    void end_lease(std::int64_t id) {
        leases_.erase(id);
        std::vector<std::string> gone;
        for (const auto& [key, its] : keys)
            if (its.lease == id) gone.push_back(key);
        for (const std::string& key : gone) remove(key);
    }
    std::size_t leases() const noexcept { return leases_.size(); }
    /// Ends all watches with their connections.
    void cut_watches() {
        ++cuts_;
        changed();
    }
    /// Another key space: as after a restored backup, or a new installation.
    void replace_keys(std::map<std::string, entry> by, std::int64_t at) {
        keys = std::move(by);
        revision = at;
        history_.clear();
        cut_watches();
    }

    task<http::response> handle(http::request& incoming) override {
        const auto body = co_await incoming.collect();
        if (!body) co_return http::response(400);
        const std::string path(incoming.path().substr(std::string_view("/v3/").size()));
        ++calls[path];
        must(co_await going_on_.wait());
        if (script) {
            auto scripted = script(path);
            if (scripted) co_return std::move(*scripted);
        }
        const json given = json::parse(incoming.content());
        if (path == "auth/authenticate") co_return authenticate(given);
        const auto shown = incoming.headers().find("Authorization");
        if (!password.empty() && shown.value_or("") != token)
            co_return failure(401, 16, "etcdserver: invalid auth token");
        if (!has_leader && incoming.headers().find("Grpc-Metadata-Hasleader"))
            co_return failure(503, 14, "etcdserver: no leader");
        if (path == "kv/range") co_return range(given);
        if (path == "kv/txn") co_return transact(given);
        if (path == "watch") co_return watch(given.at("create_request"));
        co_return about_lease(path, given);
    }
    http::response reject(int status, std::string_view) override { return http::response(status); }

    static http::response failure(int status, int code, const std::string& message) {
        const json text = {{"error", message}, {"message", message}, {"code", code}};
        return http::json(text.dump(), status);
    }

private:
    struct lease {
        duration time;
        time_point end;
    };

    static std::string bytes(const json& of, const char* name) {
        return of.contains(name) ? *bytes_of_base64(of.at(name).get<std::string>()) : "";
    }
    static std::int64_t number(const json& of, const char* name) {
        return of.contains(name) ? std::stoll(of.at(name).get<std::string>()) : 0;
    }
    json header() const {
        return {{"cluster_id", std::to_string(cluster_id)},
                {"member_id", "1"},
                {"revision", std::to_string(revision)},
                {"raft_term", "2"}};
    }
    static json json_of(const std::string& key, const entry& its, bool is_key_only) {
        json made = {{"key", base64(key)},
                     {"create_revision", std::to_string(its.created)},
                     {"mod_revision", std::to_string(its.written)},
                     {"version", "1"}};
        if (!is_key_only) made["value"] = base64(its.value);
        if (its.lease != 0) made["lease"] = std::to_string(its.lease);
        return made;
    }
    http::response answer(json with) const {
        with["header"] = header();
        return http::json(with.dump());
    }

    http::response authenticate(const json& given) const {
        if (password.empty()) return failure(412, 9, "etcdserver: authentication is not enabled");
        if (given.at("name") != "eddy" || given.at("password") != password)
            return failure(400, 3,
                           "etcdserver: authentication failed, invalid user ID or password");
        return answer({{"token", token}});
    }

    json found_in(const json& given) const {
        const std::string first = bytes(given, "key");
        const std::string end = given.contains("range_end") ? bytes(given, "range_end") : "";
        const std::int64_t limit = number(given, "limit");
        json made = json::object();
        json all = json::array();
        for (auto each = keys.lower_bound(first); each != keys.end(); ++each) {
            if (end.empty() ? each->first != first : each->first >= end) break;
            if (limit > 0 && static_cast<std::int64_t>(all.size()) == limit) {
                made["more"] = true;
                break;
            }
            all.push_back(json_of(each->first, each->second, given.contains("keys_only")));
        }
        if (!all.empty()) made["kvs"] = std::move(all);
        return made;
    }
    http::response range(const json& given) const {
        const std::int64_t at = number(given, "revision");
        if (at > 0 && at < compacted)
            return failure(400, 11, "etcdserver: mvcc: required revision has been compacted");
        json found = found_in(given);
        if (found.dump().size() > max_answer)
            return failure(429, 8, "grpc: received message larger than max");
        return answer(std::move(found));
    }

    bool holds(const json& comparison) const {
        const auto found = keys.find(bytes(comparison, "key"));
        const bool is_there = found != keys.end();
        const std::string target = comparison.at("target");
        if (target == "CREATE")
            return (is_there ? found->second.created : 0) == number(comparison, "create_revision");
        if (target == "MOD")
            return is_there && found->second.written == number(comparison, "mod_revision");
        return target == "LEASE" && is_there && found->second.lease == number(comparison, "lease");
    }
    http::response transact(const json& given) {
        for (const json& each : given.at("compare"))
            if (!holds(each)) {
                const json& wanted = given.at("failure").front().at("request_range");
                return answer({{"responses", {{{"response_range", found_in(wanted)}}}}});
            }
        const json& wanted = given.at("success").front().at("request_put");
        const std::int64_t under = number(wanted, "lease");
        std::string value = bytes(wanted, "value");
        if (under != 0 && !leases_.contains(under))
            return failure(404, 5, "etcdserver: requested lease not found");
        if (value.size() > max_value) return failure(400, 3, "etcdserver: request is too large");
        if (!has_space) return failure(429, 8, "etcdserver: mvcc: database space exceeded");
        put(bytes(wanted, "key"), std::move(value), under);
        return answer({{"succeeded", true}});
    }

    http::response about_lease(const std::string& path, const json& given) {
        if (path == "lease/grant") {
            const std::int64_t id = make_lease(std::chrono::seconds(number(given, "TTL")));
            return answer({{"ID", std::to_string(id)}, {"TTL", given.at("TTL")}});
        }
        const std::int64_t id = number(given, "ID");
        const auto found = leases_.find(id);
        json made = {{"ID", std::to_string(id)}};
        if (path == "lease/revoke") {
            if (found == leases_.end())
                return failure(404, 5, "etcdserver: requested lease not found");
            end_lease(id);
            return answer(json::object());
        }
        if (path == "lease/keepalive") {
            if (found != leases_.end()) {
                found->second.end = loop::current().now() + found->second.time;
                made["TTL"] = text_of(found->second.time);
            }
            made["header"] = header();
            return http::json(json({{"result", made}}).dump() + "\n");
        }
        if (path != "lease/timetolive") return http::response(404);
        made["TTL"] =
            found == leases_.end() ? "-1" : text_of(found->second.end - loop::current().now());
        return answer(std::move(made));
    }
    static std::string text_of(duration time) {
        return std::to_string(std::chrono::duration_cast<std::chrono::seconds>(time).count());
    }

    http::response watch(const json& given) {
        const std::int64_t from = number(given, "start_revision");
        const std::string first = bytes(given, "key");
        const std::string end = given.contains("range_end") ? bytes(given, "range_end") : first;
        http::response made(200);
        made.add("Content-Type", "application/json");
        made.body = http::body::streamed(
            [=, this](http::body_writer& to) { return stream_changes(to, from, first, end); });
        return made;
    }
    static std::string line(json result) {
        return json({{"result", std::move(result)}}).dump() + "\n";
    }

    task<result<>> stream_changes(http::body_writer& to, std::int64_t from, std::string first,
                                  std::string end) {
        const int cuts = cuts_;
        const std::string created = line({{"header", header()}, {"created", true}});
        auto sent = co_await to.write(created);
        if (sent && from <= compacted) {
            const std::string cancelled =
                line({{"header", {{"cluster_id", std::to_string(cluster_id)}}},
                      {"canceled", true},
                      {"compact_revision", std::to_string(compacted)}});
            sent = co_await to.write(cancelled);
            // The stream stays open all the same.
            event never;
            if (sent) sent = co_await never.wait();
        }
        while (sent) {
            if (cuts_ != cuts) co_return fail(errc::closed);
            if (!has_leader) {
                const std::string lost =
                    json({{"error", {{"grpc_code", 14}, {"message", "etcdserver: no leader"}}}})
                        .dump() +
                    "\n";
                co_return co_await to.write(lost);
            }
            sent = co_await going_on_.wait();
            if (!sent) break;
            const auto next = history_.lower_bound(from);
            if (next == history_.end()) {
                sent = co_await changed_.wait();
                continue;
            }
            from = next->first + 1;
            const std::string key = bytes(next->second.at("kv"), "key");
            if (key < first || (key >= end && key != first)) continue;
            const std::string text = line({{"header", header()}, {"events", {next->second}}});
            sent = co_await to.write(text);
        }
        co_return sent;
    }

    void record(json change) {
        history_[revision] = std::move(change);
        changed();
    }
    void changed() {
        changed_.set();
        changed_.reset();
    }

    task<void> accept_all() {
        for (;;) {
            auto accepted = co_await listener_.accept();
            if (!accepted) co_return;
            ++connections;
            http::session_limits limits;
            limits.parser.body = 64UZ * 1024 * 1024;
            serving_->spawn(http::serve(std::move(*accepted), *this, limits));
        }
    }
    task<void> end_leases() {
        while (co_await loop::current().sleep_for(50ms)) {
            if (keeps_leases) continue;
            std::vector<std::int64_t> ended;
            for (const auto& [id, its] : leases_)
                if (its.end <= loop::current().now()) ended.push_back(id);
            for (const std::int64_t id : ended) end_lease(id);
        }
    }

    template <class T>
    static T must(result<T> of) {
        return eddy::testing::must(std::move(of));
    }

    std::map<std::int64_t, json> history_;
    std::map<std::int64_t, lease> leases_;
    std::int64_t last_lease_ = 7000;
    std::unique_ptr<scope> serving_;
    listener listener_;
    std::uint16_t port_ = 0;
    event changed_;  // set only within a call
    event going_on_;
    int cuts_ = 0;
};

}  // namespace eddy::cluster::testing
