// Redis's limits of its encodings, at their defaults.
#include "cache/types/encoding_name.hpp"

#include "cache/keyspace/keyspace.hpp"
#include "cache/types/collection.hpp"
#include "cache/types/list.hpp"
#include "cache/types/number.hpp"
#include "cache/types/sorted_set.hpp"

#include <algorithm>

namespace eddy::cache {
namespace {

/// Whether Redis would keep the elements in one listpack, which takes 8 KiB for a list.
bool fits_listpack(const list& elements) noexcept {
    constexpr std::size_t most_bytes = 8192;
    constexpr std::size_t least_overhead = 2;  // of an element
    if (elements.size() > most_bytes / least_overhead) return false;
    std::size_t bytes = 0;
    for (list::position at = elements.first(); at && bytes <= most_bytes; at = list::after(at))
        bytes += list::get(at).size() + least_overhead;
    return bytes <= most_bytes;
}

}  // namespace

std::string_view encoding_name(environment& env, entry& e) {
    constexpr std::size_t max_embedded = 44;
    constexpr std::size_t max_integers = 512;
    constexpr std::size_t max_listed = 128;
    constexpr std::size_t max_listed_text = 64;
    const auto fits = [](const collection& all) {
        if (all.size() > max_listed) return false;
        collection::walk walk(all);
        for (collection::element e; walk.next(e);) {
            if (std::max(e.field.size(), e.value.size()) > max_listed_text) return false;
        }
        return true;
    };
    switch (e.type) {
        case value_type::string:
            if (e.held_as == encoding::integer) return "int";
            return e.has(entry::modified_text) || text_size(e) > max_embedded ? "raw" : "embstr";
        case value_type::list: return fits_listpack(*e.pointer<list>()) ? "listpack" : "quicklist";
        case value_type::set: {
            const collection members = collection(env, e);
            if (members.size() > max_integers) return "hashtable";
            collection::walk walk(members);
            for (collection::element m; walk.next(m);) {
                if (!parse_integer(m.field)) return fits(members) ? "listpack" : "hashtable";
            }
            return "intset";
        }
        case value_type::hash:
            if (!fits(collection(env, e))) return "hashtable";
            return e.held_as == encoding::timed_table ? "listpackex" : "listpack";
        case value_type::sorted_set:
            return sorted_set(env, e).is_listed() ? "listpack" : "skiplist";
        case value_type::stream: return "stream";
    }
    return "unknown";
}

}  // namespace eddy::cache
