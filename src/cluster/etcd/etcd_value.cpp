// Texts of members in etcd.
#include "cluster/etcd/etcd_value.hpp"

#include "base/text/terminal_text.hpp"
#include "cluster/member_codec.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <utility>

namespace eddy::cluster {
namespace {

/// A number of runtimes, and the bytes of the text with the first so many.
struct part {
    std::size_t count = 0;
    std::size_t bytes = 0;
};

/// A number between two parts, of which the first one fits into `most` bytes and the second one
/// does not: by the bytes of the runtimes between them, and each third time the middle.
std::size_t next_count(part fits, part exceeds, std::size_t most, int step) noexcept {
    const std::size_t between = exceeds.count - fits.count;
    const std::size_t more =
        step % 3 == 2 ? between / 2 : between * (most - fits.bytes) / (exceeds.bytes - fits.bytes);
    return fits.count + std::clamp(more, std::size_t{1}, between - 1);
}

}  // namespace

outcome<etcd_value> write_etcd_value(const member_info& of, std::size_t most) {
    member_info whole = of;
    sort_runtimes(whole);
    auto text_with = [&, cut = whole](std::size_t count) mutable {
        const auto end = whole.runtimes.begin() + static_cast<std::ptrdiff_t>(count);
        cut.runtimes.assign(whole.runtimes.begin(), end);
        return encode_member(cut);
    };
    auto text = encode_member(whole);
    if (!text) return std::unexpected(std::move(text.error()));
    if (text->size() <= most) return etcd_value{std::move(*text), whole.runtimes.size()};
    part exceeds{whole.runtimes.size(), text->size()};
    text = text_with(0);
    if (!text) return std::unexpected(std::move(text.error()));
    if (text->size() > most)
        return refuse(400, fmt::format("the member {} takes {} bytes without its runtimes, and "
                                       "etcd at most {}",
                                       in_quotes(of.name, max_name), text->size(), most));
    part fits{0, text->size()};
    etcd_value made{std::move(*text), 0};
    // Nearly all that fit are good enough: each attempt writes the whole text.
    for (int step = 0; exceeds.count - fits.count > 1 && most - fits.bytes > most / 128; ++step) {
        const std::size_t count = next_count(fits, exceeds, most, step);
        text = text_with(count);
        if (!text) return std::unexpected(std::move(text.error()));
        if (text->size() > most) {
            exceeds = {count, text->size()};
            continue;
        }
        fits = {count, text->size()};
        made = {std::move(*text), count};
    }
    return made;
}

outcome<member_info> read_etcd_value(std::string_view name, std::string_view text) {
    auto read = decode_member(text);
    if (read && read->name != name)
        return refuse(400, fmt::format("it is of the member {}", in_quotes(read->name, max_name)));
    return read;
}

}  // namespace eddy::cluster
