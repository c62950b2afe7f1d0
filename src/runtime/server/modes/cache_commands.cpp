// Commands that clients of a server may send to its cache, and the replies' text.
#include "runtime/server/modes/cache_commands.hpp"

#include "runtime/host/data_commands.hpp"

#include <fmt/format.h>

#include <vector>

namespace eddy::runtime::server {
namespace {

/// Name of another program's command for the number of keys.
constexpr std::string_view size_name = "size";

}  // namespace

std::string encode_cache_command(std::string_view text, byte_buffer& out) {
    // An array is no line; the parser would wait for the rest of it.
    if (text.starts_with('*')) return "\"*\" begins no command";
    resp::request_limits limits;
    limits.max_inline = text.size() + 2;
    resp::request_parser parser(limits);
    const std::string line = std::string(text) + "\r\n";
    const resp::request_outcome read = parser.next(line);
    if (read.status == resp::parse_status::error) return "unbalanced quotes";
    if (read.status != resp::parse_status::complete) return "there is no command";
    std::vector<std::string_view> args(read.request.args().begin(), read.request.args().end());
    if (args.size() == 1 && args[0] == size_name) args[0] = "dbsize";
    if (std::string refusal = refuse_data_command(args, "clients of a server"); !refusal.empty())
        return refusal;
    resp::write_command(out, args);
    return {};
}

void reply_lines::add(std::string_view text) {
    if (is_too_long_ || lines_.size() + text.size() + 1 > most_) {
        is_too_long_ = true;
        lines_ = byte_buffer();
        return;
    }
    has_break_ = has_break_ || text.find_first_of("\r\n") != std::string_view::npos;
    lines_.append(text);
    lines_.append('\n');
}

bool reply_lines::take(const resp::reply_event& event, byte_buffer& out) {
    using resp::reply_type;
    switch (event.type) {
        case reply_type::simple: add(event.text == "OK" ? "ok" : event.text); break;
        case reply_type::error: add(fmt::format("error: {}", event.text)); break;
        case reply_type::integer:
        case reply_type::boolean: add(fmt::format("{}", event.integer)); break;
        case reply_type::number: add(fmt::format("{}", event.number)); break;
        case reply_type::null: add("nil"); break;
        case reply_type::bulk:
        case reply_type::big_number:
        case reply_type::verbatim: add(event.text); break;
        default: is_list_ = true; break;
    }
    if (!event.ends_reply) return false;
    if (is_list_) add("end");
    if (is_too_long_)
        out.append(fmt::format("error: the reply has more than {} bytes\n", most_));
    else if (has_break_)
        out.append("error: the value has line breaks; read it by a client of the cache\n");
    else
        out.append(lines_.text());
    lines_.clear();
    is_list_ = is_too_long_ = has_break_ = false;
    return true;
}

}  // namespace eddy::runtime::server
