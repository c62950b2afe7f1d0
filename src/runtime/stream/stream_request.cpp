// Request of a handoff.
#include "runtime/stream/stream_request.hpp"

#include <eddy/wire/http1/headers.hpp>
#include <eddy/wire/json.hpp>

#include "base/text/text.hpp"
#include "runtime/stream/sources/piece_joiner.hpp"
#include "wire/http1/forwarding.hpp"

#include <nlohmann/json.hpp>

#include <algorithm>
#include <array>
#include <utility>

namespace eddy::runtime::stream {
namespace {

using nlohmann::json;

/// Fields that frame or describe the content, or that the runtime sets itself, beside hop-by-hop
/// fields.
constexpr std::array kept_back = {
    std::string_view("content-length"), std::string_view("content-type"),
    std::string_view("cache-control"),  std::string_view("content-encoding"),
    std::string_view("content-range"),  std::string_view("x-accel-buffering"),
};

bool may_stand_in_response(std::string_view name, std::string_view value) noexcept {
    return http1::is_token(name) && http1::is_field_value(value) && !http1::is_hop_by_hop(name) &&
           std::ranges::none_of(kept_back,
                                [&](std::string_view each) { return is_word(name, each); });
}

/// Adds a field of response_headers, unless it must not be there or is beyond the limit.
void add_header(const std::string& name, const std::string& value, stream_request& into) {
    if (into.headers.size() < max_response_headers && may_stand_in_response(name, value))
        into.headers.push_back({name, value});
}

std::string text_of(const json& value) { return value.get_ref<const std::string&>(); }

/// True for a version as of SERVER_PROTOCOL (RFC 3875 4.1.16), such as "HTTP/1.0" or "1.0", that is
/// below 1.1. Others are taken for 1.1, which nearly all clients speak.
bool is_before_http_1_1(std::string_view version) noexcept {
    constexpr std::string_view protocol = "http/";
    if (is_word(version.substr(0, protocol.size()), protocol))
        version.remove_prefix(protocol.size());
    return version == "1.0" || version == "1" || version.starts_with("0.");
}

/// Members about the client's own request; false for a value of another type than it has.
bool read_client_member(const std::string& name, const json& value, stream_request& into) {
    if (name == "http_version") {
        if (!value.is_string() && !value.is_number()) return false;
        into.is_before_http_1_1 =
            is_before_http_1_1(value.is_string() ? text_of(value) : value.dump());
    }
    if (name == "request_method") {
        if (!value.is_string()) return false;
        into.is_head = text_of(value) == "HEAD";
    }
    return true;
}

/// Members, each with its own rule; false for a value of another type than it has.
bool read_member(const std::string& name, const json& value, stream_request& into) {
    if (value.is_null()) return true;
    const auto read_text = [&](std::string& text) {
        if (value.is_string()) text = text_of(value);
        return value.is_string();
    };
    if (name == "prompt") return read_text(into.prompt);
    if (name == "model") return read_text(into.model);
    const auto read_field = [&](std::string& text) {
        return read_text(text) && text.size() <= max_field_text;
    };
    if (name == "test_pattern") return read_field(into.test_pattern);
    if (name == "backend") return read_text(into.backend);
    if (name == "api_key") return read_field(into.api_key) && http1::is_field_value(into.api_key);
    const auto read_id = [&](std::string& text) {
        if (value.is_number()) text = value.dump();
        return value.is_number() || read_text(text);
    };
    if (name == "user_id") return read_id(into.user_id);
    if (name == "request_id") return read_id(into.request_id);
    if (name == "last_event_id")
        return read_id(into.last_event_id) && into.last_event_id.size() <= max_field_text;
    if (name == "max_tokens") {
        if (value.is_number_integer()) into.max_tokens = value.get<std::int64_t>();
        return value.is_number_integer();
    }
    if (name == "messages") {
        into.messages = value.dump(-1, ' ', false, json::error_handler_t::replace);
        return value.is_array();
    }
    if (name == "response_headers") {
        if (!value.is_object()) return false;
        for (const auto& [field, text] : value.items())
            if (text.is_string()) add_header(field, text_of(text), into);
    }
    return read_client_member(name, value, into);
}

/// The message with U+FFFD for each half of a surrogate pair that stands alone, such as "\ud83d":
/// JavaScript, Python and others cut texts there, and write it so. The same for other faults.
std::string with_whole_characters(std::string_view message) {
    if (valid_utf8(message) != message) return std::string(message);
    const marked_text marked = mark_halves(message);
    return marked.text.empty() ? std::string(message) : without_marks(marked.text);
}

/// Reader of the members about the response, up to the first fault of a text.
class terms_reader final : public json::json_sax_t {
public:
    stream_request read;

    bool null() override { return true; }
    bool boolean(bool /*value*/) override { return true; }
    bool number_integer(number_integer_t /*value*/) override { return true; }
    bool number_unsigned(number_unsigned_t /*value*/) override { return true; }
    bool number_float(number_float_t /*value*/, const string_t& /*text*/) override { return true; }
    bool binary(binary_t& /*value*/) override { return true; }
    bool string(string_t& text) override {
        if (levels_ == 1 && member_ == "request_method") read.is_head = text == "HEAD";
        if (levels_ == 2 && is_object_ && member_ == "response_headers")
            add_header(field_, text, read);
        return true;
    }
    bool start_object(std::size_t /*size*/) override { return begin(true); }
    bool start_array(std::size_t /*size*/) override { return begin(false); }
    bool end_object() override { return end(); }
    bool end_array() override { return end(); }
    bool key(string_t& name) override {
        if (levels_ == 1) member_ = name;
        if (levels_ == 2) field_ = name;
        return true;
    }
    bool parse_error(std::size_t /*at*/, const std::string& /*token*/,
                     const json::exception& /*why*/) override {
        return false;
    }

private:
    bool begin(bool is_object) noexcept {
        if (++levels_ == 2) is_object_ = is_object;
        return levels_ > 1 || is_object;
    }
    bool end() noexcept {
        --levels_;
        return true;
    }

    std::size_t levels_ = 0;
    bool is_object_ = false;  // the value of the member
    std::string member_;
    std::string field_;
};

}  // namespace

stream_request read_response_terms(std::string_view message) {
    terms_reader reader;
    static_cast<void>(json::sax_parse(message, &reader));
    return std::move(reader.read);
}

result<stream_request> read_request(std::string_view message) {
    stream_request read;
    // Senders written in C may send the end of their string as well.
    while (message.ends_with('\0')) message.remove_suffix(1);
    if (message.empty()) return read;
    // A NUL would be the end of the text for the parser.
    if (message.find('\0') != std::string_view::npos) return fail(errc::malformed);
    if (nests_deeper(message, message_depth_limit)) return fail(errc::limit_reached);
    read.message = message;
    json parsed = json::parse(read.message, nullptr, /*exceptions*/ false);
    if (parsed.is_discarded()) {
        read.message = with_whole_characters(message);
        parsed = json::parse(read.message, nullptr, /*exceptions*/ false);
    }
    if (!parsed.is_object()) return fail(errc::malformed);
    for (const auto& [name, value] : parsed.items())
        if (!read_member(name, value, read)) return fail(errc::malformed);
    return read;
}

}  // namespace eddy::runtime::stream
