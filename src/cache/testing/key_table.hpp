// Test fixture: a dictionary of keys.
#pragma once

#include "base/test_seed.hpp"
#include "cache/keyspace/dictionary.hpp"

#include <cstddef>
#include <string>

namespace eddy::cache::testing {

/// A table of entries without values, and what frees them.
class key_table {
public:
    ~key_table() {
        dictionary::iterator all(table);
        while (dictionary::slot* const place = all.next()) release(dictionary::entry_of(*place));
    }

    bool has(const std::string& key) { return table.find(key, hash(key)) != nullptr; }

    void add(const std::string& key) {
        void* const block = memory.allocate(entry::size_for(key.size(), 0, false));
        table.insert(entry::make(block, key, 0, false), hash(key));
    }

    bool remove(const std::string& key) {
        dictionary::slot* const place = table.find(key, hash(key));
        if (place == nullptr) return false;
        entry* const gone = dictionary::entry_of(*place);
        table.erase(place, hash(key));
        release(gone);
        return true;
    }

    void release(entry* gone) { memory.release(gone, gone->size()); }

    slab memory;
    key_hash hash{eddy::testing::seed_of_this_run()};
    dictionary table{memory, hash, true};
};

inline std::string key_of(std::size_t i) { return "key:" + std::to_string(i); }

}  // namespace eddy::cache::testing
