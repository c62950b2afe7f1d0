// Values that pass between scripts and the functions of C++ that they call: nil, truth values,
// numbers, texts and tables.
#pragma once

#include "lua/stack.hpp"

#include <concepts>
#include <cstddef>
#include <expected>
#include <memory>
#include <string>
#include <string_view>
#include <utility>
#include <variant>
#include <vector>

namespace eddy::script {

struct table;

/// Owns its text or table. Any thread.
class value {
public:
    /// nil
    value() noexcept = default;
    value(std::same_as<bool> auto truth) noexcept : is_(truth) {}
    value(double number) noexcept : is_(number) {}
    /// Exact up to 2^53.
    template <std::integral Number>
        requires(!std::same_as<Number, bool>)
    value(Number number) noexcept : is_(static_cast<double>(number)) {}
    value(std::string text) noexcept : is_(std::move(text)) {}
    value(std::string_view text) : is_(std::string(text)) {}
    value(const char* text) : is_(std::string(text)) {}
    value(table fields);

    bool is_nil() const noexcept { return std::holds_alternative<std::monostate>(is_); }
    // Null for a value of another type.
    const bool* truth() const noexcept { return std::get_if<bool>(&is_); }
    const double* number() const noexcept { return std::get_if<double>(&is_); }
    const std::string* text() const noexcept { return std::get_if<std::string>(&is_); }
    const table* fields() const noexcept {
        const auto* const kept = std::get_if<kept_table>(&is_);
        return kept == nullptr ? nullptr : kept->get();
    }

private:
    struct deleter {
        void operator()(table* of) const noexcept;
    };
    using kept_table = std::unique_ptr<table, deleter>;
    std::variant<std::monostate, bool, double, std::string, kept_table> is_;
};

/// Arguments or results, in order.
using values = std::vector<value>;

/// values{…} would copy them.
template <class... Each>
values values_of(Each&&... each) {
    values made;
    made.reserve(sizeof...(each));
    (made.emplace_back(std::forward<Each>(each)), ...);
    return made;
}

/// Table of Lua's with the elements 1, 2, … and fields whose names are texts.
struct table {
    std::vector<value> elements;
    std::vector<std::pair<std::string, value>> fields;

    /// The field's value; nil without one.
    const value& operator[](std::string_view name) const noexcept;
};

/// Values at a time, as arguments or results, at most.
inline constexpr std::size_t max_values = 16;
/// Tables within each other at most.
inline constexpr std::size_t max_value_depth = 16;
/// Bytes of the texts in a table that read_value() copies at most; each value counts as
/// `value_bytes` more.
inline constexpr std::size_t max_table_bytes = std::size_t{1} << 20;
inline constexpr std::size_t value_bytes = 16;

/// Room on a stack that read_value() needs.
inline constexpr int read_slots = 4 * static_cast<int>(max_value_depth);

/// Pushes a value, of at most max_value_depth tables within each other. Raises "not enough memory".
void push_value(lua::stack in, const value& of);
/// Copies the value at `index`, which counts from 1. The error is a noun phrase that names what
/// cannot be copied: "a function". Throws std::bad_alloc; raises nothing where `read_slots` are
/// left. `bytes` becomes what was copied of a table, see max_table_bytes.
std::expected<value, std::string> read_value(lua::stack in, int index, std::size_t& bytes);
std::expected<value, std::string> read_value(lua::stack in, int index);

}  // namespace eddy::script
