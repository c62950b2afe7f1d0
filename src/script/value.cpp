// Copies of values into a Lua state, and out of it.
#include "script/value.hpp"

#include <eddy/base/assert.hpp>

#include <algorithm>

namespace eddy::script {

value::value(table fields) : is_(kept_table(new table(std::move(fields)))) {}
void value::deleter::operator()(table* of) const noexcept { delete of; }

const value& table::operator[](std::string_view name) const noexcept {
    static const value nil;
    const auto found = std::ranges::find(fields, name, &std::pair<std::string, value>::first);
    return found == fields.end() ? nil : found->second;
}

namespace {

void push(lua::stack in, const value& of, std::size_t depth) {
    EDDY_ASSERT(depth <= max_value_depth);
    if (const bool* const truth = of.truth()) return in.pushboolean(*truth);
    if (const double* const number = of.number()) return in.pushnumber(*number);
    if (const std::string* const text = of.text()) return in.pushstring(*text);
    const table* const whole = of.fields();
    if (whole == nullptr) return in.pushnil();
    in.checkstack(4, "too many values");
    in.createtable(static_cast<int>(whole->elements.size()),
                   static_cast<int>(whole->fields.size()));
    int which = 0;
    for (const value& each : whole->elements) {
        push(in, each, depth + 1);
        in.rawseti(-2, ++which);
    }
    for (const auto& [name, each] : whole->fields) {
        in.pushstring(name);
        push(in, each, depth + 1);
        in.rawset(-3);
    }
}

/// One call of read_value().
class reader {
public:
    reader(lua::stack in, std::size_t& bytes) noexcept : in_(in), bytes_(bytes) { bytes = 0; }

    std::expected<value, std::string> read(int index, std::size_t depth) {
        std::string_view text;
        switch (in_.read_text(index, text)) {
            case lua::value_type::none:
            case lua::value_type::nil: return value();
            case lua::value_type::boolean: return value(in_.toboolean(index));
            case lua::value_type::number: return value(in_.tonumber(index));
            case lua::value_type::string:
                if (depth > 0 && !count(text.size())) return std::unexpected(too_large());
                return value(text);
            case lua::value_type::table: return read_table(index, depth + 1);
            default: return std::unexpected(std::string("a ") + in_.type_name(index));
        }
    }

private:
    static std::string too_large() { return "a table of more than 1 MiB"; }
    bool count(std::size_t bytes) noexcept {
        bytes_ += bytes + value_bytes;
        return bytes_ <= max_table_bytes;
    }

    /// The value on top, which is popped.
    std::expected<value, std::string> take(std::size_t depth) {
        if (!count(0)) return std::unexpected(too_large());
        auto read_one = read(in_.gettop(), depth);
        in_.pop();
        return read_one;
    }

    std::expected<value, std::string> read_table(int index, std::size_t depth) {
        if (depth > max_value_depth)
            return std::unexpected(std::string("tables within each other, more than 16"));
        const int height = in_.gettop();
        table made;
        auto read_all = read_elements(index, depth, made);
        if (read_all) read_all = read_fields(index, depth, made);
        in_.settop(height);
        if (!read_all) return std::unexpected(std::move(read_all.error()));
        return value(std::move(made));
    }

    std::expected<void, std::string> read_elements(int index, std::size_t depth, table& into) {
        for (int which = 1;; ++which) {
            in_.rawgeti(index, which);
            if (in_.isnil(-1)) return {};
            auto element = take(depth);
            if (!element) return std::unexpected(std::move(element.error()));
            into.elements.push_back(std::move(*element));
        }
    }

    std::expected<void, std::string> read_fields(int index, std::size_t depth, table& into) {
        in_.pushnil();
        while (in_.next(index)) {
            std::string_view name;
            const lua::value_type of_key = in_.read_text(-2, name);
            if (of_key == lua::value_type::number && is_element(in_.tonumber(-2), into)) {
                in_.pop();
                continue;
            }
            if (of_key != lua::value_type::string)
                return std::unexpected(
                    std::string("a table with a key that is no text and no element's number"));
            if (!count(name.size())) return std::unexpected(too_large());
            auto field = take(depth);
            if (!field) return std::unexpected(std::move(field.error()));
            into.fields.emplace_back(name, std::move(*field));
        }
        return {};
    }

    static bool is_element(double key, const table& of) noexcept {
        const auto count = static_cast<double>(of.elements.size());
        return key >= 1 && key <= count && key == static_cast<double>(static_cast<int>(key));
    }

    lua::stack in_;
    std::size_t& bytes_;
};

}  // namespace

void push_value(lua::stack in, const value& of) { push(in, of, 0); }

std::expected<value, std::string> read_value(lua::stack in, int index, std::size_t& bytes) {
    return reader(in, bytes).read(index, 0);
}

std::expected<value, std::string> read_value(lua::stack in, int index) {
    std::size_t bytes = 0;
    return read_value(in, index, bytes);
}

}  // namespace eddy::script
