// Filters of CLIENT LIST and CLIENT KILL: which sessions they are about.
#pragma once

#include "cache/clients/closing.hpp"

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string_view>
#include <vector>

namespace eddy::cache {

struct call;
namespace acl {
class user;
}

/// normal, replica, pubsub or master; none for the master.
struct client_type {
    std::optional<client_class> is;
};

class client_filter {
public:
    /// With SKIPME yes, the session that asks is left out.
    explicit client_filter(bool skips_me) noexcept : skips_me_(skips_me) {}

    /// The arguments from `i` on; false with the error replied.
    bool parse(call& c, std::size_t i);
    /// The one option of CLIENT KILL's old form.
    void take_address(std::string_view address) { wanted_.address = address; }
    bool fits(const call& c, const client_session& who) const;

private:
    /// Properties that a session must have, or must not have (NOT-…).
    struct properties {
        std::vector<std::uint64_t> ids;
        std::optional<client_type> type;
        const acl::user* user = nullptr;
        std::optional<std::string_view> address;
        std::optional<std::string_view> local_address;
        std::optional<std::string_view> ip;
        std::optional<std::string_view> name;
        std::optional<std::string_view> library_name;
        std::optional<std::string_view> library_version;
        std::optional<std::string_view> flags;
        std::optional<std::string_view> capabilities;
        std::optional<std::size_t> database;

        /// True if the session has `all` given properties, or else one of them.
        bool fit(const client_session& who, bool all) const;
    };
    enum class parsed : std::uint8_t { taken, refused, unknown };

    static parsed take_property(call& c, std::size_t& i, std::string_view word, bool negated,
                                properties& to);
    parsed take_limit(call& c, std::size_t& i);

    properties wanted_;
    properties unwanted_;
    std::optional<std::int64_t> min_age_s_;
    std::optional<std::int64_t> min_idle_s_;
    bool skips_me_;
};

/// True if the word is an option of client_filter.
bool is_client_filter(std::string_view word) noexcept;

}  // namespace eddy::cache
