// JSON of etcd's gateway: 64-bit integers are strings in it, bytes are base64, and what is zero or
// empty is left out.
#include "cluster/etcd/etcd_messages.hpp"

#include <eddy/wire/json.hpp>

#include "base/text/base64.hpp"

#include <nlohmann/json.hpp>

#include <charconv>
#include <utility>

namespace eddy::cluster {
namespace {

using nlohmann::json;

/// Values of the enumeration etcd_event's type, of Compare's result and target, and of a range's
/// order, as the gateway names them.
constexpr std::string_view removal_type = "DELETE";

/// An object of JSON within the limits; nothing for other texts.
std::optional<json> parse_object(std::string_view text) {
    if (nests_deeper(text, max_etcd_depth)) return std::nullopt;
    json parsed = json::parse(text, nullptr, /*exceptions*/ false);
    if (!parsed.is_object()) return std::nullopt;
    return parsed;
}

const json* member(const json& of, const char* name) {
    const auto found = of.find(name);
    return found == of.end() || found->is_null() ? nullptr : &*found;
}

/// Reads a number, also one that is written as a text; one that is missing leaves 0. False for
/// another value.
template <class Integer>
bool read_integer(const json& of, const char* name, Integer& into) {
    const json* const found = member(of, name);
    if (found == nullptr) return true;
    if (found->is_number_integer()) {
        into = found->get<Integer>();
        return true;
    }
    if (!found->is_string()) return false;
    const std::string& text = found->get_ref<const std::string&>();
    const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), into);
    return error == std::errc() && end == text.data() + text.size();
}

bool read_flag(const json& of, const char* name, bool& into) {
    const json* const found = member(of, name);
    if (found == nullptr) return true;
    if (!found->is_boolean()) return false;
    into = found->get<bool>();
    return true;
}

bool read_text(const json& of, const char* name, std::string& into) {
    const json* const found = member(of, name);
    if (found == nullptr) return true;
    if (!found->is_string()) return false;
    into = found->get<std::string>();
    return true;
}

bool read_bytes(const json& of, const char* name, std::string& into) {
    const json* const found = member(of, name);
    if (found == nullptr) return true;
    if (!found->is_string()) return false;
    auto bytes = bytes_of_base64(found->get_ref<const std::string&>());
    if (!bytes) return false;
    into = std::move(*bytes);
    return true;
}

/// Each answer has one, and no other server's has.
bool read_header(const json& of, etcd_header& into) {
    const json* const header = member(of, "header");
    if (header == nullptr || !header->is_object()) return false;
    return read_integer(*header, "cluster_id", into.cluster_id) && into.cluster_id != 0 &&
           read_integer(*header, "revision", into.revision) && into.revision >= 0;
}

bool read_entry(const json& of, etcd_entry& into) {
    return of.is_object() && read_bytes(of, "key", into.key) && !into.key.empty() &&
           read_bytes(of, "value", into.value) &&
           read_integer(of, "create_revision", into.create_revision) &&
           read_integer(of, "mod_revision", into.mod_revision) &&
           read_integer(of, "lease", into.lease);
}

bool read_entries(const json& of, std::vector<etcd_entry>& into) {
    const json* const all = member(of, "kvs");
    if (all == nullptr) return true;
    if (!all->is_array()) return false;
    into.reserve(all->size());
    for (const json& each : *all)
        if (!read_entry(each, into.emplace_back())) return false;
    return true;
}

bool read_event(const json& of, etcd_event& into) {
    if (!of.is_object()) return false;
    std::string type;
    const json* const entry = member(of, "kv");
    if (entry == nullptr || !read_text(of, "type", type)) return false;
    into.is_removal = type == removal_type;
    return read_entry(*entry, into.entry);
}

bool read_events(const json& of, std::vector<etcd_event>& into) {
    const json* const all = member(of, "events");
    if (all == nullptr) return true;
    if (!all->is_array()) return false;
    into.reserve(all->size());
    for (const json& each : *all)
        if (!read_event(each, into.emplace_back())) return false;
    return true;
}

std::optional<etcd_lease_reply> lease_of(const json& from) {
    etcd_lease_reply made;
    if (!read_header(from, made.header) || !read_integer(from, "ID", made.id) ||
        !read_integer(from, "TTL", made.ttl))
        return std::nullopt;
    return made;
}

/// Answers of streams stand in an object of their own.
const json* stream_result(const json& from) {
    const json* const result = member(from, "result");
    return result != nullptr && result->is_object() ? result : nullptr;
}

/// The range of the first answer of a transaction whose conditions did not hold.
bool read_found(const json& of, std::optional<etcd_entry>& into) {
    const json* const responses = member(of, "responses");
    if (responses == nullptr || !responses->is_array() || responses->empty()) return true;
    if (!responses->front().is_object()) return false;
    const json* const range = member(responses->front(), "response_range");
    if (range == nullptr) return true;
    std::vector<etcd_entry> entries;
    if (!range->is_object() || !read_entries(*range, entries)) return false;
    if (!entries.empty()) into = std::move(entries.front());
    return true;
}

void write_keys(json_writer& out, const etcd_range& of) {
    out.member("key", base64(of.key));
    if (!of.end.empty()) out.member("range_end", base64(of.end));
}

void write_comparison(json_writer& out, std::string_view key, std::string_view target,
                      std::string_view name, std::int64_t value) {
    out.begin_object()
        .member("key", base64(key))
        .member("target", target)
        .member("result", "EQUAL")
        .member(name, std::to_string(value))
        .end_object();
}

}  // namespace

std::string etcd_prefix_end(std::string prefix) {
    while (prefix.back() == '\xff') prefix.pop_back();
    prefix.back() = static_cast<char>(static_cast<unsigned char>(prefix.back()) + 1);
    return prefix;
}

std::string write_etcd_range(const etcd_range& of) {
    json_writer out;
    out.begin_object();
    write_keys(out, of);
    if (of.limit > 0) out.member("limit", std::to_string(of.limit));
    if (of.revision > 0) out.member("revision", std::to_string(of.revision));
    if (of.is_keys_only) out.member("keys_only", true);
    out.end_object();
    return out.take();
}

std::string write_etcd_write(std::string_view key, std::string_view value, std::int64_t lease,
                             const etcd_condition& on) {
    json_writer out;
    out.begin_object().key("compare").begin_array();
    if (on.is_absent) write_comparison(out, key, "CREATE", "create_revision", 0);
    if (on.lease) write_comparison(out, key, "LEASE", "lease", *on.lease);
    if (on.mod_revision) write_comparison(out, key, "MOD", "mod_revision", *on.mod_revision);
    out.end_array().key("success").begin_array().begin_object().key("request_put").begin_object();
    out.member("key", base64(key)).member("value", base64(value));
    if (lease != 0) out.member("lease", std::to_string(lease));
    out.end_object().end_object().end_array();
    out.key("failure").begin_array().begin_object().key("request_range").begin_object();
    out.member("key", base64(key)).end_object().end_object().end_array().end_object();
    return out.take();
}

std::string write_etcd_grant(std::int64_t seconds) {
    json_writer out;
    out.begin_object().member("TTL", std::to_string(seconds)).end_object();
    return out.take();
}

std::string write_etcd_lease(std::int64_t id) {
    json_writer out;
    out.begin_object().member("ID", std::to_string(id)).end_object();
    return out.take();
}

std::string write_etcd_authenticate(std::string_view user, std::string_view password) {
    json_writer out;
    out.begin_object().member("name", user).member("password", password).end_object();
    return out.take();
}

std::string write_etcd_watch(const etcd_range& keys) {
    json_writer out;
    out.begin_object().key("create_request").begin_object();
    write_keys(out, keys);
    out.member("start_revision", std::to_string(keys.revision)).member("fragment", true);
    out.end_object().end_object();
    return out.take();
}

std::optional<etcd_range_reply> read_etcd_range(std::string_view text) {
    const auto parsed = parse_object(text);
    etcd_range_reply made;
    if (!parsed || !read_header(*parsed, made.header) || !read_entries(*parsed, made.entries) ||
        !read_flag(*parsed, "more", made.has_more))
        return std::nullopt;
    return made;
}

std::optional<etcd_write_reply> read_etcd_write(std::string_view text) {
    const auto parsed = parse_object(text);
    etcd_write_reply made;
    if (!parsed || !read_header(*parsed, made.header) ||
        !read_flag(*parsed, "succeeded", made.is_written))
        return std::nullopt;
    if (!made.is_written && !read_found(*parsed, made.found)) return std::nullopt;
    return made;
}

std::optional<etcd_lease_reply> read_etcd_grant(std::string_view text) {
    const auto parsed = parse_object(text);
    if (!parsed) return std::nullopt;
    auto made = lease_of(*parsed);
    if (made && (made->id == 0 || made->ttl <= 0)) return std::nullopt;
    return made;
}

std::optional<etcd_lease_reply> read_etcd_keep_alive(std::string_view text) {
    const auto parsed = parse_object(text);
    if (!parsed) return std::nullopt;
    const json* const result = stream_result(*parsed);
    return result != nullptr ? lease_of(*result) : std::nullopt;
}

std::optional<etcd_lease_reply> read_etcd_time_to_live(std::string_view text) {
    const auto parsed = parse_object(text);
    return parsed ? lease_of(*parsed) : std::nullopt;
}

std::optional<etcd_plain_reply> read_etcd_plain(std::string_view text) {
    const auto parsed = parse_object(text);
    etcd_plain_reply made;
    if (!parsed || !read_header(*parsed, made.header)) return std::nullopt;
    return made;
}

std::optional<etcd_token_reply> read_etcd_token(std::string_view text) {
    const auto parsed = parse_object(text);
    etcd_token_reply made;
    if (!parsed || !read_text(*parsed, "token", made.token) || made.token.empty())
        return std::nullopt;
    return made;
}

std::optional<etcd_watch_line> read_etcd_watch_line(std::string_view text) {
    const auto parsed = parse_object(text);
    if (!parsed) return std::nullopt;
    const json* const result = stream_result(*parsed);
    etcd_watch_line made;
    if (result == nullptr || !read_header(*result, made.header) ||
        !read_flag(*result, "created", made.is_created) ||
        !read_flag(*result, "canceled", made.is_canceled) ||
        !read_integer(*result, "compact_revision", made.compact_revision) ||
        !read_text(*result, "cancel_reason", made.cancel_reason) ||
        !read_events(*result, made.events))
        return std::nullopt;
    return made;
}

std::optional<etcd_failure> read_etcd_failure(std::string_view text) {
    const auto parsed = parse_object(text);
    if (!parsed) return std::nullopt;
    const json* const error = member(*parsed, "error");
    if (error == nullptr) return std::nullopt;
    etcd_failure made;
    if (error->is_object()) {
        if (!read_integer(*error, "grpc_code", made.code) ||
            !read_text(*error, "message", made.message))
            return std::nullopt;
        return made;
    }
    if (!read_integer(*parsed, "code", made.code) || !read_text(*parsed, "error", made.message))
        return std::nullopt;
    return made;
}

}  // namespace eddy::cluster
