// Options bound to members: rows that join an option with the member of its type's configuration.
// The type's table, the reading of settings and live changes are made from the rows.
#pragma once

#include <eddy/base/assert.hpp>
#include <eddy/io/timer.hpp>

#include "base/problem.hpp"
#include "runtime/options/option.hpp"
#include "runtime/options/settings.hpp"

#include <concepts>
#include <cstdint>
#include <functional>
#include <initializer_list>
#include <memory>
#include <string>
#include <string_view>
#include <type_traits>
#include <utility>
#include <vector>

namespace eddy::runtime {

/// Choice of an option, as it is written and as it is read.
template <class Value>
struct named_value {
    std::string_view name;
    Value value;
};

/// Member of a member, such as nested(&config::files, &static_options::index).
template <class Outer, class Inner>
constexpr auto nested(Outer outer, Inner inner) {
    return [outer, inner](auto& of) -> auto& { return std::invoke(inner, std::invoke(outer, of)); };
}

/// Refuses a path of `--name` that does not begin at the root; an empty one is none.
inline outcome<> check_whole_path(std::string_view name, std::string_view path) {
    if (path.empty() || path.starts_with('/')) return {};
    return refuse(400, "--" + std::string(name) + " cannot be \"" + std::string(path) +
                           "\": write the whole path, from /");
}

/// Row of a type's table. A member is a pointer to a member of `Config` or of a base of it, or
/// nested().
template <class Config>
class bound_option {
public:
    template <class Member>
    using value_of = std::remove_cvref_t<std::invoke_result_t<const Member&, Config&>>;
    template <class Member>
    using reader_of = outcome<value_of<Member>> (*)(const settings&, const Config&);

    /// Flag, integer, size, duration or text, as the member's type is.
    template <class Member>
    static bound_option bound(Member member, option&& row) {
        check_kind<value_of<Member>>(row);
        return make(std::move(row), member, converter<value_of<Member>>{});
    }

    /// Time of which 0 means none: the member is duration::max() then.
    template <class Member>
        requires std::same_as<value_of<Member>, duration>
    static bound_option none_at_zero(Member member, option&& row) {
        check_kind<duration>(row);
        return make(std::move(row), member, finite_time{});
    }

    /// Time that the member has in whole microseconds.
    template <class Member>
        requires std::same_as<value_of<Member>, std::int64_t>
    static bound_option in_microseconds(Member member, option&& row) {
        check_kind<duration>(row);
        return make(std::move(row), member, microseconds{});
    }

    /// Path of a file or folder; refuses a relative one.
    template <class Member>
        requires std::same_as<value_of<Member>, std::string>
    static bound_option whole_path(Member member, option&& row) {
        EDDY_ASSERT(row.kind == option_kind::text && row.is_path);
        return make(std::move(row), member, path_reader{});
    }

    /// One of `values`, whose names become the option's choices. Without a value and a default the
    /// member stays as it is.
    template <class Member>
    static bound_option choice(Member member, option&& row,
                               std::vector<named_value<value_of<Member>>> values) {
        EDDY_ASSERT(row.kind == option_kind::choice && row.choices.empty());
        for (const auto& each : values) row.choices.push_back(each.name);
        return make(std::move(row), member, chooser<value_of<Member>>{std::move(values)});
    }

    /// Value that `read` makes of the settings, and of the members of the rows before.
    template <class Member>
    static bound_option read_by(Member member, option&& row, reader_of<Member> read) {
        return make(std::move(row), member, own_reader<value_of<Member>>{read});
    }

    /// Option that a function reads into `member`, such as read_serving_config(); the row only
    /// applies it live.
    template <class Member>
    static bound_option copied(Member member, option&& row) {
        return make(std::move(row), member, no_reader{});
    }

    /// Options that functions read, not live.
    static bound_option unbound(option&& row) { return bound_option(std::move(row), nullptr); }
    static std::vector<bound_option> unbound_all(std::vector<option> rows) {
        std::vector<bound_option> made;
        for (option& each : rows) made.push_back(unbound(std::move(each)));
        return made;
    }

    const option& row() const noexcept { return row_; }
    bool has_member() const noexcept { return member_ != nullptr; }

    /// Sets the member, if the row reads it. The refusal names the option.
    outcome<> read(const settings& chosen, Config& into) const {
        return has_member() ? member_->read(chosen, row_.name, into) : outcome<>();
    }
    /// Copies the member, which the row has.
    void copy(const Config& from, Config& to) const {
        EDDY_ASSERT(has_member());
        member_->copy(from, to);
    }
    /// True when both have the same value of the member, which the row has.
    bool is_equal(const Config& a, const Config& b) const {
        EDDY_ASSERT(has_member());
        return member_->is_equal(a, b);
    }

private:
    struct binding {
        virtual ~binding() = default;
        virtual outcome<> read(const settings&, std::string_view, Config&) const = 0;
        virtual void copy(const Config& from, Config& to) const = 0;
        virtual bool is_equal(const Config& a, const Config& b) const = 0;
    };

    template <class Member, class Reader>
    struct member_binding final : binding {
        member_binding(Member at, Reader by) : member(at), reader(std::move(by)) {}
        outcome<> read(const settings& chosen, std::string_view name, Config& into) const override {
            return reader(chosen, name, into, std::invoke(member, into));
        }
        void copy(const Config& from, Config& to) const override {
            std::invoke(member, to) = std::invoke(member, from);
        }
        bool is_equal(const Config& a, const Config& b) const override {
            return std::invoke(member, a) == std::invoke(member, b);
        }

        Member member;
        Reader reader;
    };

    // Readers: (settings, name, the configuration so far, its member).
    template <class Value>
    struct converter {
        outcome<> operator()(const settings& chosen, std::string_view name, const Config& /*of*/,
                             Value& to) const {
            if constexpr (std::same_as<Value, bool>)
                to = chosen.flag(name);
            else if constexpr (std::same_as<Value, std::string>)
                to = chosen.text(name);
            else if constexpr (std::same_as<Value, duration>)
                to = duration(chosen.number(name));
            else
                to = static_cast<Value>(chosen.number(name));
            return {};
        }
    };
    struct finite_time {
        outcome<> operator()(const settings& chosen, std::string_view name, const Config& /*of*/,
                             duration& to) const {
            const std::int64_t given = chosen.number(name);
            to = given == 0 ? duration::max() : duration(given);
            return {};
        }
    };
    struct microseconds {
        outcome<> operator()(const settings& chosen, std::string_view name, const Config& /*of*/,
                             std::int64_t& to) const {
            constexpr std::int64_t ns_a_us = 1000;
            to = chosen.number(name) / ns_a_us;
            return {};
        }
    };
    struct path_reader {
        outcome<> operator()(const settings& chosen, std::string_view name, const Config& /*of*/,
                             std::string& to) const {
            to = chosen.text(name);
            return check_whole_path(name, to);
        }
    };
    template <class Value>
    struct chooser {
        outcome<> operator()(const settings& chosen, std::string_view name, const Config& /*of*/,
                             Value& to) const {
            const std::string& written = chosen.text(name);
            for (const auto& each : values)
                if (written == each.name) to = each.value;
            return {};
        }
        std::vector<named_value<Value>> values;
    };
    template <class Value>
    struct own_reader {
        outcome<> operator()(const settings& chosen, std::string_view /*name*/, const Config& of,
                             Value& to) const {
            outcome<Value> made = read(chosen, of);
            if (!made) return std::unexpected(std::move(made.error()));
            to = std::move(*made);
            return {};
        }
        outcome<Value> (*read)(const settings&, const Config&);
    };
    struct no_reader {
        template <class Value>
        outcome<> operator()(const settings& /*chosen*/, std::string_view /*name*/,
                             const Config& /*of*/, Value& /*to*/) const {
            return {};
        }
    };

    [[gnu::noinline]] bound_option(option&& row, std::shared_ptr<const binding> member)
        : row_(std::move(row)), member_(std::move(member)) {}

    template <class Member, class Reader>
    static bound_option make(option&& row, Member member, Reader reader) {
        return bound_option(std::move(row), std::make_shared<const member_binding<Member, Reader>>(
                                                member, std::move(reader)));
    }

    /// Fails for an option whose values do not fit the member: a fault of the table.
    template <class Value>
    static void check_kind(const option& row) {
        if constexpr (std::same_as<Value, bool>) {
            EDDY_ASSERT(row.kind == option_kind::flag);
        } else if constexpr (std::same_as<Value, std::string>) {
            EDDY_ASSERT(row.kind == option_kind::text);
        } else if constexpr (std::same_as<Value, duration>) {
            EDDY_ASSERT(row.kind == option_kind::duration);
        } else {
            static_assert(std::integral<Value>);
            EDDY_ASSERT(row.kind == option_kind::integer || row.kind == option_kind::size);
            EDDY_ASSERT(std::in_range<Value>(row.minimum) && std::in_range<Value>(row.maximum));
        }
    }

    option row_;
    std::shared_ptr<const binding> member_;  // null: functions read the option
};

template <class Config>
using bound_options = std::vector<bound_option<Config>>;

/// The rows of all parts, in this order.
template <class Row>
std::vector<Row> joined(std::initializer_list<std::vector<Row>> parts) {
    std::vector<Row> all;
    for (const std::vector<Row>& part : parts)
        for (const Row& each : part) all.push_back(each);
    return all;
}

/// The table of a type's options, in the order of the rows.
template <class Config>
std::vector<option> table_of(const bound_options<Config>& rows) {
    std::vector<option> table;
    for (const auto& each : rows) table.push_back(each.row());
    return table;
}

/// Reads all members that rows read, in the order of the rows; the first refusal ends it.
template <class Config>
outcome<> read_bound(const bound_options<Config>& rows, const settings& chosen, Config& into) {
    for (const auto& each : rows)
        if (auto read = each.read(chosen, into); !read) return read;
    return {};
}

/// Copies the members of live options; others stay. Every live row must have a member.
template <class Config>
void copy_live(const bound_options<Config>& rows, const Config& from, Config& to) {
    for (const auto& each : rows)
        if (each.row().live) each.copy(from, to);
}

}  // namespace eddy::runtime
