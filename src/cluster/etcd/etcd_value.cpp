// Texts of members in etcd.
#include "cluster/etcd/etcd_value.hpp"

#include "base/text/terminal_text.hpp"
#include "cluster/member_codec.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <utility>

namespace eddy::cluster {
namespace {

/// The member with its first `count` runtimes by name.
outcome<std::string> text_with(member_info& cut, const member_info& whole, std::size_t count) {
    cut.runtimes.assign(whole.runtimes.begin(),
                        whole.runtimes.begin() + static_cast<std::ptrdiff_t>(count));
    return encode_member(cut);
}

}  // namespace

outcome<etcd_value> write_etcd_value(const member_info& of, std::size_t most) {
    member_info whole = of;
    sort_runtimes(whole);
    auto text = encode_member(whole);
    if (!text) return std::unexpected(std::move(text.error()));
    etcd_value made{std::move(*text), whole.runtimes.size()};
    if (made.text.size() <= most) return made;
    // The largest number that fits: `few` do, `many` do not.
    member_info cut = whole;
    std::size_t few = 0;
    std::size_t many = whole.runtimes.size();
    text = text_with(cut, whole, few);
    if (text && text->size() > most)
        return refuse(400, fmt::format("the member {} takes {} bytes without its runtimes, and "
                                       "etcd at most {}",
                                       in_quotes(of.name, max_name), text->size(), most));
    while (text && many - few > 1) {
        const std::size_t middle = few + (many - few) / 2;
        text = text_with(cut, whole, middle);
        if (!text) break;
        (text->size() <= most ? few : many) = middle;
    }
    if (text) text = text_with(cut, whole, few);
    if (!text) return std::unexpected(std::move(text.error()));
    made.text = std::move(*text);
    made.shown = few;
    return made;
}

outcome<member_info> read_etcd_value(std::string_view name, std::string_view text) {
    auto read = decode_member(text);
    if (read && read->name != name)
        return refuse(400, fmt::format("it is of the member {}", in_quotes(read->name, max_name)));
    return read;
}

}  // namespace eddy::cluster
