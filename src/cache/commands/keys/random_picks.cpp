// Random elements and scans of sets and hashes.
#include "cache/commands/keys/random_picks.hpp"

#include "cache/commands/keys/scan_options.hpp"
#include "cache/engine/call.hpp"

#include <algorithm>
#include <utility>
#include <vector>

namespace eddy::cache {
namespace {

// Below this part of the collection, elements are drawn until enough different ones are found.
constexpr std::size_t few = 3;

void reply_element(call& c, const collection::element& e, picked what) {
    if (what == picked::fields) return c.reply.bulk(e.field);
    if (c.reply.protocol() == 3) c.reply.array(2);
    c.reply.bulk(e.field);
    c.reply.bulk(e.value);
}

void reply_head(call& c, std::size_t count, picked what) {
    const bool flat = what == picked::fields_and_values && c.reply.protocol() == 2;
    c.reply.array(flat ? count * 2 : count);
}

}  // namespace

std::optional<std::int64_t> random_count(call& c, std::size_t at) {
    const auto count = c.integer(at);
    if (!count || *count != INT64_MIN) return count;
    c.error(
        "ERR value is out of range, value must between -9223372036854775807 and "
        "9223372036854775807");
    return std::nullopt;
}

void reply_random(call& c, const collection& from, std::int64_t count, picked what) {
    if (count < 0) {
        reply_head(c, static_cast<std::size_t>(-count), what);
        for (; count < 0 && !c.reply_is_too_large(); ++count) reply_element(c, from.random(), what);
        return;
    }
    const std::size_t size = from.size();
    const auto wanted = static_cast<std::size_t>(
        std::min(static_cast<std::uint64_t>(count), static_cast<std::uint64_t>(size)));
    reply_head(c, wanted, what);
    if (wanted == 0) return;

    // Views stay good: nothing changes in between.
    std::vector<collection::element> chosen;
    if (wanted < size / few) {
        const auto less = [](const collection::element& a, const collection::element& b) {
            return a.field.data() < b.field.data();
        };
        const auto same = [](const collection::element& a, const collection::element& b) {
            return a.field.data() == b.field.data();
        };
        while (chosen.size() < wanted) {
            for (std::size_t i = chosen.size(); i < wanted; ++i) chosen.push_back(from.random());
            std::sort(chosen.begin(), chosen.end(), less);
            chosen.erase(std::unique(chosen.begin(), chosen.end(), same), chosen.end());
        }
    } else {
        // Reservoir: each element takes a random place among those before it.
        collection::walk walk(from);
        std::size_t seen = 0;
        for (collection::element e; walk.next(e); ++seen) {
            if (seen < wanted) {
                chosen.push_back(e);
            } else if (const auto at = c.state.data.env.random.below(seen + 1); at < wanted) {
                chosen[at] = e;
            }
        }
    }
    for (const collection::element& e : chosen) {
        if (c.reply_is_too_large()) return;
        reply_element(c, e, what);
    }
}

void reply_empty_scan(call& c) {
    c.reply.array(2);
    c.reply.bulk("0");
    c.reply.array(0);
}

void reply_scan(call& c, const collection& over, std::uint64_t cursor) {
    scan_options options;
    const bool is_hash = over.type() == value_type::hash;
    if (!options.parse(c, 3, is_hash ? scan_of::hash : scan_of::set)) return;
    std::vector<collection::element> found;
    std::size_t visited = 0;
    do {
        std::vector<collection::element> step;
        cursor = over.scan(cursor, step);
        visited += std::max<std::size_t>(step.size(), 1);
        for (const collection::element& e : step) {
            if (options.matches(e.field)) found.push_back(e);
        }
    } while (cursor != 0 && visited < static_cast<std::uint64_t>(options.count));
    const bool pairs = is_hash && !options.names_only;
    c.reply.array(2);
    c.reply.bulk_integer(static_cast<std::int64_t>(cursor));
    c.reply.array(pairs ? found.size() * 2 : found.size());
    for (const collection::element& e : found) {
        if (c.reply_is_too_large()) return;
        c.reply.bulk(e.field);
        if (pairs) c.reply.bulk(e.value);
    }
}

}  // namespace eddy::cache
