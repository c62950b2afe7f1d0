// Reading rows of a list.
#include "cli/text/list_rows.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <utility>

namespace eddy::cli {
namespace {

/// A member as a text; empty where it is absent or null.
std::string member_text(const json& object, std::string_view name) {
    const auto found = object.find(name);
    if (found == object.end() || found->is_null()) return {};
    if (found->is_string()) return found->get<std::string>();
    return found->dump(-1, ' ', false, json::error_handler_t::replace);
}

}  // namespace

/// Events of nlohmann's parser: no tree of values is made. False ends it.
struct list_rows::reader : nlohmann::json_sax<json> {
    explicit reader(list_rows& into) : to(into) {}

    bool null() override { return value({}); }
    bool boolean(bool truth) override { return value(truth ? "true" : "false"); }
    bool number_integer(std::int64_t number) override { return whole(number); }
    bool number_unsigned(std::uint64_t number) override { return whole(number); }
    bool number_float(double /*number*/, const std::string& text) override { return value(text); }
    bool string(std::string& text) override { return value(text); }
    bool binary(json::binary_t& /*bytes*/) override { return false; }
    bool start_object(std::size_t /*size*/) override { return std::exchange(depth, 1) == 0; }
    bool end_object() override { return std::exchange(depth, 0) == 1; }
    bool key(std::string& name) override {
        is_in_rows = name == "rows";
        return is_in_rows || name == "fields";
    }
    bool start_array(std::size_t /*size*/) override {
        row_size = 0;
        return ++depth <= (is_in_rows ? 3 : 2) && depth >= 2;
    }
    bool end_array() override {
        return --depth < 2 || (row_size == to.fields_.size() && row_size > 0);
    }
    bool parse_error(std::size_t /*position*/, const std::string& /*last*/,
                     const nlohmann::detail::exception& /*why*/) override {
        return false;
    }

    bool whole(auto number) {
        const fmt::format_int text(number);
        return value({text.data(), text.size()});
    }
    bool value(std::string_view text) {
        if (is_in_rows && depth == 3 && ++row_size <= to.fields_.size())
            to.add(text);
        else if (!is_in_rows && depth == 2)
            to.fields_.emplace_back(text);
        else
            return false;
        return true;
    }

    list_rows& to;
    unsigned depth = 0;
    bool is_in_rows = false;
    std::size_t row_size = 0;
};

/// Reader of rows as the daemon writes them: no spaces, and texts of ASCII without escapes. It
/// takes a fraction of the time of the parser above, which reads everything else.
class list_rows::plain_reader {
public:
    plain_reader(std::string_view answer, list_rows& into) : rest_(answer), to_(into) {}

    bool read() {
        if (!skip("{\"fields\":[")) return false;
        do {
            std::string_view name;
            if (!take_text(name)) return false;
            to_.fields_.emplace_back(name);
        } while (skip(","));
        if (!skip("],\"rows\":[")) return false;
        if (skip("]}")) return rest_.empty();
        do
            if (!take_row()) return false;
        while (skip(","));
        return skip("]}") && rest_.empty();
    }

private:
    bool skip(std::string_view text) noexcept {
        if (!rest_.starts_with(text)) return false;
        rest_.remove_prefix(text.size());
        return true;
    }
    bool take_row() {
        if (!skip("[")) return false;
        for (std::size_t left = to_.fields_.size(); left > 0; --left)
            if (!take_value() || !skip(left > 1 ? "," : "]")) return false;
        return true;
    }
    bool take_value() {
        std::string_view text;
        if (skip("null")) {
            // An empty text.
        } else if (rest_.starts_with('"')) {
            if (!take_text(text)) return false;
        } else if (!take_number(text)) {
            return false;
        }
        to_.add(text);
        return true;
    }
    bool take_text(std::string_view& text) noexcept {
        if (!skip("\"")) return false;
        std::size_t size = 0;
        while (size < rest_.size() && is_plain(rest_[size])) ++size;
        text = rest_.substr(0, size);
        rest_.remove_prefix(size);
        return skip("\"");
    }
    static bool is_plain(char c) noexcept { return c >= ' ' && c <= '~' && c != '"' && c != '\\'; }
    /// Digits, maybe with a fraction; without a sign or a zero in front, and an exponent.
    bool take_number(std::string_view& text) noexcept {
        const std::size_t whole = digits_at(0);
        if (whole == 0 || (whole > 1 && rest_.front() == '0')) return false;
        std::size_t size = whole;
        if (size < rest_.size() && rest_[size] == '.') {
            const std::size_t fraction = digits_at(size + 1);
            if (fraction == 0) return false;
            size += 1 + fraction;
        }
        text = rest_.substr(0, size);
        rest_.remove_prefix(size);
        return true;
    }
    std::size_t digits_at(std::size_t at) const noexcept {
        std::size_t end = at;
        while (end < rest_.size() && rest_[end] >= '0' && rest_[end] <= '9') ++end;
        return end - at;
    }

    std::string_view rest_;
    list_rows& to_;
};

std::optional<list_rows> list_rows::parse(std::string_view answer) {
    list_rows made;
    made.text_.reserve(answer.size());
    if (plain_reader(answer, made).read()) return made;
    made = list_rows();
    made.text_.reserve(answer.size());
    reader from(made);
    if (!json::sax_parse(answer, &from) || made.fields_.empty()) return std::nullopt;
    return made;
}

list_rows list_rows::of(const json& list, std::span<const std::string_view> fields) {
    list_rows made;
    made.fields_.assign(fields.begin(), fields.end());
    for (const json& each : list)
        for (const std::string_view name : fields) made.add(member_text(each, name));
    return made;
}

std::size_t list_rows::column(std::string_view field) const noexcept {
    const auto found = std::ranges::find(fields_, field);
    return found == fields_.end() ? absent : static_cast<std::size_t>(found - fields_.begin());
}

}  // namespace eddy::cli
