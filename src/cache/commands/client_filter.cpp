// Parser of the filters, and their comparison with a session.
#include "cache/commands/client_filter.hpp"

#include "cache/acl/acl.hpp"
#include "cache/clients/client_line.hpp"
#include "cache/engine/call.hpp"

#include <algorithm>
#include <string>

namespace eddy::cache {
namespace {

constexpr std::int64_t second_us = 1'000'000;
// Letters of CLIENT LIST's flags, also of states that no session here has.
constexpr std::string_view known_flags = "bcdeirtuxABEIMNOPRSTU";
constexpr std::string_view negation = "not-";

bool is_negated(std::string_view word) noexcept {
    return word.size() > negation.size() && is_word(word.substr(0, negation.size()), negation);
}

// The part of an error message that C's functions would print.
std::string c_text(std::string_view text) { return std::string(text.substr(0, text.find('\0'))); }

std::optional<client_type> type_argument(call& c, std::size_t i) {
    const std::string_view name = c.arg(i);
    if (is_word(name, "normal")) return client_type{client_class::normal};
    if (is_word(name, "slave") || is_word(name, "replica"))
        return client_type{client_class::replica};
    if (is_word(name, "pubsub")) return client_type{client_class::pubsub};
    if (is_word(name, "master") || is_word(name, "primary")) return client_type{};
    c.error("ERR Unknown client type '" + c_text(name) + "'");
    return std::nullopt;
}

bool is_of(const client_session& who, client_type type) noexcept {
    if ((who.special & client_session::master) != 0) return !type.is;
    return type.is == class_of(who);
}

// An address without its port, and without the brackets of IPv6.
std::string_view ip_of(std::string_view address) noexcept {
    address = address.substr(0, address.rfind(':'));
    if (address.starts_with('[') && address.ends_with(']'))
        address = address.substr(1, address.size() - 2);
    return address;
}

// A number of IDs, one at least; `i` is left at the last.
bool take_ids(call& c, std::size_t& i, std::vector<std::uint64_t>& to) {
    to.clear();
    do {
        const auto id = c.integer_in(i, 1, INT64_MAX, "ERR client-id should be greater than 0");
        if (!id) return false;
        to.push_back(static_cast<std::uint64_t>(*id));
    } while (i + 1 < c.count && parse_integer(c.arg(i + 1)) && ++i != 0);
    std::ranges::sort(to);
    return true;
}

bool take_database(call& c, std::size_t i, std::optional<std::size_t>& to) {
    const auto given = c.integer(i, "ERR DB is not an integer or out of range");
    if (!given) return false;
    if (*given < 0 || static_cast<std::size_t>(*given) >= engine_databases) {
        c.error("ERR DB number should be between 0 and " + std::to_string(engine_databases - 1));
        return false;
    }
    to = static_cast<std::size_t>(*given);
    return true;
}

bool take_flags(call& c, std::size_t i, bool negated, std::optional<std::string_view>& to) {
    to = c.arg(i);
    if (to->find_first_not_of(known_flags) == std::string_view::npos) return true;
    c.error("ERR Unknown flags found in the " + std::string(negated ? "NOT-FLAGS" : "provided") +
            " filter: " + c_text(*to));
    return false;
}

bool take_capabilities(call& c, std::size_t i, bool negated, std::optional<std::string_view>& to) {
    to = c.arg(i);
    if (to->find_first_not_of('r') == std::string_view::npos) return true;
    c.error("ERR Unknown capa found in the " + std::string(negated ? "NOT-CAPA" : "provided") +
            " filter: " + c_text(*to));
    return false;
}

bool take_user(call& c, std::size_t i, const acl::user*& to) {
    to = c.state.settings.users.find(c.arg(i));
    if (to != nullptr) return true;
    c.error("ERR No such user '" + c_text(c.arg(i)) + "'");
    return false;
}

bool take_seconds(call& c, std::size_t i, std::string_view name, std::optional<std::int64_t>& to) {
    const auto given =
        c.integer(i, "ERR " + std::string(name) + " is not an integer or out of range");
    if (!given) return false;
    to = given;
    if (*given > 0) return true;
    c.error("ERR " + std::string(name) + " should be greater than 0");
    return false;
}

constexpr std::string_view properties_by_name[] = {"id",      "type",  "user", "addr",
                                                   "laddr",   "ip",    "name", "lib-name",
                                                   "lib-ver", "flags", "capa", "db"};
constexpr std::string_view limits_by_name[] = {"maxage", "idle", "skipme"};

}  // namespace

bool is_client_filter(std::string_view word) noexcept {
    const auto is = [&word](std::string_view each) { return is_word(word, each); };
    if (std::ranges::any_of(limits_by_name, is)) return true;
    if (is_negated(word)) word.remove_prefix(negation.size());
    return std::ranges::any_of(properties_by_name, is);
}

client_filter::parsed client_filter::take_property(call& c, std::size_t& i, std::string_view word,
                                                   bool negated, properties& to) {
    const std::string_view value = c.arg(i);
    const auto taken = [](bool ok) { return ok ? parsed::taken : parsed::refused; };
    if (is_word(word, "id")) return taken(take_ids(c, i, to.ids));
    if (is_word(word, "user")) return taken(take_user(c, i, to.user));
    if (is_word(word, "db")) return taken(take_database(c, i, to.database));
    if (is_word(word, "flags")) return taken(take_flags(c, i, negated, to.flags));
    if (is_word(word, "capa")) return taken(take_capabilities(c, i, negated, to.capabilities));
    if (is_word(word, "type")) {
        to.type = type_argument(c, i);
        return taken(to.type.has_value());
    }
    std::optional<std::string_view>* const text = is_word(word, "addr")       ? &to.address
                                                  : is_word(word, "laddr")    ? &to.local_address
                                                  : is_word(word, "ip")       ? &to.ip
                                                  : is_word(word, "name")     ? &to.name
                                                  : is_word(word, "lib-name") ? &to.library_name
                                                  : is_word(word, "lib-ver")  ? &to.library_version
                                                                              : nullptr;
    if (text == nullptr) return parsed::unknown;
    *text = value;
    return parsed::taken;
}

client_filter::parsed client_filter::take_limit(call& c, std::size_t& i) {
    const std::string_view word = c.arg(i);
    const std::string_view value = c.arg(i + 1);
    const auto taken = [](bool ok) { return ok ? parsed::taken : parsed::refused; };
    if (is_word(word, "maxage")) return taken(take_seconds(c, i + 1, "maxage", min_age_s_));
    if (is_word(word, "idle")) return taken(take_seconds(c, i + 1, "idle", min_idle_s_));
    if (!is_word(word, "skipme")) return parsed::unknown;
    skips_me_ = is_word(value, "yes");
    return skips_me_ || is_word(value, "no") ? parsed::taken : parsed::unknown;
}

bool client_filter::parse(call& c, std::size_t i) {
    for (; i < c.count; ++i) {
        if (i + 1 == c.count) {
            c.syntax_error();
            return false;
        }
        parsed how = take_limit(c, i);
        ++i;
        if (how == parsed::unknown) {
            std::string_view word = c.arg(i - 1);
            const bool negated = is_negated(word);
            if (negated) word.remove_prefix(negation.size());
            how = take_property(c, i, word, negated, negated ? unwanted_ : wanted_);
        }
        if (how == parsed::taken) continue;
        if (how == parsed::unknown) c.syntax_error();
        return false;
    }
    return true;
}

bool client_filter::properties::fit(const client_session& who, bool all) const {
    bool result = all;
    const auto check = [&](bool is_given, auto&& has) {
        if (is_given && has() != all) result = !all;
    };
    // A client without a name or a library has none, not an empty one.
    const auto check_text = [&](const std::optional<std::string_view>& given,
                                std::string_view its) {
        check(given.has_value(), [&] { return !its.empty() && *given == its; });
    };
    check(!ids.empty(), [&] { return std::ranges::binary_search(ids, who.id); });
    check(type.has_value(), [&] { return is_of(who, *type); });
    check(user != nullptr, [&] { return who.user == user; });
    check(database.has_value(), [&] { return who.db == *database; });
    check_text(address, who.address);
    check_text(local_address, who.local_address);
    check_text(ip, ip_of(who.address));
    check_text(name, who.name());
    check_text(library_name, who.introduced ? who.introduced->library_name : std::string_view());
    check_text(library_version,
               who.introduced ? who.introduced->library_version : std::string_view());
    check(flags.has_value(), [&] {
        const std::string its = client_flags(who);
        return std::ranges::all_of(*flags, [&its](char each) { return its.contains(each); });
    });
    check(capabilities.has_value(), [&] { return capabilities->empty() || who.redirects; });
    return result;
}

bool client_filter::fits(const call& c, const client_session& who) const {
    if (skips_me_ && &who == &c.client) return false;
    const std::int64_t now_us = c.state.data.env.now_us;
    if (min_age_s_ && (now_us - who.created_us) / second_us < *min_age_s_) return false;
    if (min_idle_s_ && (now_us - who.last_used_us) / second_us < *min_idle_s_) return false;
    return wanted_.fit(who, true) && !unwanted_.fit(who, false);
}

}  // namespace eddy::cache
