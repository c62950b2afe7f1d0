// Formats of the access log.
#include "runtime/http/access_log.hpp"

#include <fmt/chrono.h>
#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include <optional>
#include <utility>

namespace eddy::runtime::http {
namespace {

using eddy::http::exchange_record;

/// Bytes of one text of the client's in a line, at most.
constexpr std::size_t text_limit = 4096;

/// As Apache httpd escapes: quotes and backslashes with a backslash, other bytes that are not
/// printable ASCII as \xHH.
std::string escaped(std::string_view text) {
    std::string made;
    for (const char c : text.substr(0, text_limit)) {
        const auto byte = static_cast<unsigned char>(c);
        if (c == '"' || c == '\\')
            made += {'\\', c};
        else if (byte < 0x20 || byte >= 0x7f)
            made += fmt::format("\\x{:02x}", byte);
        else
            made += c;
    }
    return made;
}

std::optional<std::string_view> field(const exchange_record& what, std::string_view name) {
    return what.request ? what.request->headers.find(name) : std::nullopt;
}

std::string common_line(std::string_view client, const exchange_record& what,
                        std::chrono::system_clock::time_point ended) {
    std::string line = fmt::format("{} - - [{:%d/%b/%Y:%H:%M:%S} +0000] ", client,
                                   fmt::gmtime(std::chrono::system_clock::to_time_t(ended)));
    if (what.request)
        line += fmt::format("\"{} {} HTTP/1.{}\"", escaped(what.request->method),
                            escaped(what.request->target), what.request->minor_version);
    else
        line += "\"-\"";
    line += fmt::format(" {} {}\n", what.status, what.content_bytes);
    return line;
}

std::string json_line(std::string_view client, const exchange_record& what,
                      std::chrono::system_clock::time_point ended) {
    const auto since_epoch = ended.time_since_epoch();
    const auto ms = std::chrono::duration_cast<std::chrono::milliseconds>(since_epoch) % 1000;
    nlohmann::ordered_json line = {
        {"time", fmt::format("{:%Y-%m-%dT%H:%M:%S}.{:03}Z",
                             fmt::gmtime(std::chrono::system_clock::to_time_t(ended)), ms.count())},
        {"client", client}};
    if (what.request) {
        line["method"] = what.request->method.substr(0, text_limit);
        line["target"] = what.request->target.substr(0, text_limit);
        line["version"] = what.request->minor_version == 0 ? "HTTP/1.0" : "HTTP/1.1";
    }
    line["status"] = what.status;
    line["bytes"] = what.content_bytes;
    line["seconds"] = std::chrono::duration<double>(what.time).count();
    if (!what.is_whole) line["cut_off"] = true;
    constexpr std::pair<std::string_view, const char*> fields[] = {
        {"Host", "host"}, {"Referer", "referer"}, {"User-Agent", "user_agent"}};
    for (const auto& [name, key] : fields)
        if (const auto value = field(what, name)) line[key] = value->substr(0, text_limit);
    // Bytes that are no UTF-8 are replaced.
    return line.dump(-1, ' ', false, nlohmann::ordered_json::error_handler_t::replace) + "\n";
}

}  // namespace

std::string access_line(access_format format, std::string_view client, const exchange_record& what,
                        std::chrono::system_clock::time_point ended) {
    return format == access_format::json ? json_line(client, what, ended)
                                         : common_line(client, what, ended);
}

}  // namespace eddy::runtime::http
