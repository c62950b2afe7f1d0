// Formats of the access log.
#include "runtime/logs/access_log.hpp"

#include "net/network.hpp"

#include <fmt/chrono.h>
#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include <algorithm>
#include <cstddef>
#include <cstdlib>
#include <ctime>
#include <utility>

namespace eddy::runtime {
namespace {

using eddy::http::client_label;
using eddy::http::exchange_record;

/// Bytes of one text of the client's in a line, at most.
constexpr std::size_t text_limit = 4096;

/// As nginx escapes. No quote is left, so that readers which know no escapes find the fields' ends.
std::string escaped(std::string_view text) {
    std::string made;
    for (const char c : text.substr(0, text_limit)) {
        const auto byte = static_cast<unsigned char>(c);
        if (c == '"' || c == '\\' || byte < 0x20 || byte >= 0x7f)
            made += fmt::format("\\x{:02X}", byte);
        else
            made += c;
    }
    return made;
}

/// A text that is one word of a line, and not empty.
std::string escaped_word(std::string_view text) {
    if (text.empty()) return "-";
    std::string made;
    for (const char c : escaped(text)) {
        if (c == ' ')
            made += "\\x20";
        else
            made += c;
    }
    return made;
}

std::optional<std::string_view> field(const exchange_record& what, std::string_view name) {
    return what.request ? what.request->headers.find(name) : std::nullopt;
}

/// A field of the request in quotes.
std::string quoted_field(const exchange_record& what, std::string_view name) {
    const auto value = field(what, name);
    return fmt::format("\"{}\"", value && !value->empty() ? escaped(*value) : "-");
}

double seconds(duration time) noexcept { return std::chrono::duration<double>(time).count(); }

std::string json_line(const client_label& client, const exchange_record& what,
                      std::chrono::system_clock::time_point ended) {
    nlohmann::ordered_json line = {{"time", json_time(ended)}, {"client", client.address}};
    if (!client.user.empty()) line["user"] = client.user.substr(0, text_limit);
    if (what.request) {
        line["method"] = what.request->method.substr(0, text_limit);
        line["target"] = what.request->target.substr(0, text_limit);
        line["version"] = what.request->minor_version == 0 ? "HTTP/1.0" : "HTTP/1.1";
    }
    line["status"] = what.status;
    line["bytes"] = what.content_bytes;
    line["seconds"] = seconds(what.time);
    if (!what.is_whole) line["cut_off"] = true;
    if (what.upstream) {
        line["upstream"] = *what.upstream->name;
        line["tries"] = what.upstream->tries;
        line["upstream_seconds"] = seconds(what.upstream->time);
    }
    constexpr std::pair<std::string_view, const char*> fields[] = {
        {"Host", "host"}, {"Referer", "referer"}, {"User-Agent", "user_agent"}};
    for (const auto& [name, key] : fields)
        if (const auto value = field(what, name)) line[key] = value->substr(0, text_limit);
    std::string text = json_text(line);
    if (!client.announced.empty()) {
        text.pop_back();
        text += ",\"announced\":" + client.announced + "}";
    }
    return text + "\n";
}

/// A text that need not be one, such as an id of bytes.
std::string printable(std::string_view text) {
    const bool is_text = std::ranges::all_of(text, [](char c) { return c > ' ' && c <= '~'; });
    if (is_text) return std::string(text);
    std::string digits;
    for (const char c : text) digits += fmt::format("{:02x}", static_cast<unsigned char>(c));
    return digits;
}

/// An object about the client; empty for none.
std::string json_of(const proxy_protocol::client_values& of) {
    nlohmann::ordered_json made;
    if (!of.alpn.empty()) made["alpn"] = of.alpn;
    if (!of.authority.empty()) made["authority"] = of.authority;
    if (!of.unique_id.empty()) made["unique_id"] = printable(of.unique_id);
    if (of.has_tls) {
        nlohmann::ordered_json& tls = made["tls"];
        tls["version"] = of.tls_version;
        tls["cipher"] = of.tls_cipher;
        if (!of.tls_name.empty()) tls["name"] = of.tls_name;
        tls["verified"] = of.is_verified;
    }
    return made.is_null() ? std::string() : json_text(made);
}

}  // namespace

std::string json_time(std::chrono::system_clock::time_point at) {
    const auto since_epoch = at.time_since_epoch();
    const auto ms = std::chrono::duration_cast<std::chrono::milliseconds>(since_epoch) % 1000;
    return fmt::format("{:%Y-%m-%dT%H:%M:%S}.{:03}Z",
                       fmt::gmtime(std::chrono::system_clock::to_time_t(at)), ms.count());
}

std::string json_text(const nlohmann::ordered_json& of) {
    return of.dump(-1, ' ', false, nlohmann::ordered_json::error_handler_t::replace);
}

client_label log_label(access_format format, const endpoint& peer, std::string user,
                       const proxy_protocol::client_values* announced) {
    client_label made;
    const bool is_json = format == access_format::json;
    const endpoint from = unmapped(peer);
    if (from.is_unix()) {
        made.address = "unix:";
        // A client may choose its name freely, with spaces and line breaks.
        if (is_json) made.address += from.host();
    } else if (from.family() == AF_UNSPEC) {
        made.address = "-";
    } else if (is_json) {
        made.address = from.to_string();
    } else {
        made.address = host_text(from);  // readers of logs take one with a zone for no address
    }
    if (announced != nullptr) {
        if (is_json) made.announced = json_of(*announced);
        if (user.empty() && announced->is_verified && !announced->tls_name.empty())
            user = "CN=" + announced->tls_name;
    }
    made.user = is_json ? std::move(user) : escaped_word(user);
    return made;
}

std::string access_log_writer::line(const client_label& client, const exchange_record& what,
                                    std::chrono::system_clock::time_point ended) {
    if (format_ == access_format::json) return json_line(client, what, ended);
    return apache_line(client, what, std::chrono::system_clock::to_time_t(ended));
}

std::string access_log_writer::apache_line(const client_label& client, const exchange_record& what,
                                           std::int64_t second) {
    std::string line =
        fmt::format("{} - {} [{}] ", client.address, client.user, local_time(second));
    if (what.request)
        line += fmt::format("\"{} {} HTTP/1.{}\"", escaped(what.request->method),
                            escaped(what.request->target), what.request->minor_version);
    else
        line += "\"-\"";
    line += fmt::format(" {} {}", what.status, what.content_bytes);
    if (format_ == access_format::combined)
        line +=
            fmt::format(" {} {}", quoted_field(what, "Referer"), quoted_field(what, "User-Agent"));
    if (what.upstream)
        line += fmt::format(" {} {} {:.6f}", escaped_word(*what.upstream->name),
                            what.upstream->tries, seconds(what.upstream->time));
    else if (is_proxy_)
        line += " - - -";  // each line has as many fields
    line += '\n';
    return line;
}

/// "10/Oct/2000:13:55:36 -0700". The view ends with the next call.
std::string_view access_log_writer::local_time(std::int64_t second) {
    if (written_ == second) return local_time_;
    const std::time_t at = second;
    std::tm local{};
    if (::localtime_r(&at, &local) == nullptr) local = fmt::gmtime(std::time_t{0});
    const long minutes = std::labs(local.tm_gmtoff) / 60;
    local_time_ = fmt::format("{:%d/%b/%Y:%H:%M:%S} {}{:02}{:02}", local,
                              local.tm_gmtoff < 0 ? '-' : '+', minutes / 60, minutes % 60);
    written_ = second;
    return local_time_;
}

}  // namespace eddy::runtime
