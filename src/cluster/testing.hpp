// Members for tests of clusters.
#pragma once

#include <eddy/base/random.hpp>

#include "cluster/membership.hpp"

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace eddy::cluster::testing {

inline std::string random_id(random_generator& random) {
    std::string id;
    for (int i = 0; i < 32; ++i) id += "0123456789abcdef"[random.below(16)];
    return id;
}

/// A runtime as a daemon would show it.
inline runtime_info simple_runtime(std::string name, std::string group = "web") {
    runtime_info made;
    made.id = "0123456789ab";
    made.type = "http";
    made.group = std::move(group);
    made.state = "running";
    made.addresses = {"tcp://10.0.0.1:8080"};
    made.name = std::move(name);
    return made;
}

/// A member of this name with `runtimes` runtimes. Its id is from `random`.
inline member_info simple_member(std::string name, random_generator& random,
                                 std::size_t runtimes = 1) {
    member_info made;
    made.id = random_id(random);
    made.host = name + ".example";
    made.version = "1.2.3";
    made.started = 1'700'000'000;
    for (std::size_t i = 0; i < runtimes; ++i) {
        std::string number = std::to_string(1000 + i);
        made.runtimes.push_back(simple_runtime("r" + std::move(number)));
    }
    made.name = std::move(name);
    return made;
}

/// Observer that keeps all sentences.
class kept_reports final : public observer {
public:
    void note_trouble(std::string sentence) override { troubles.push_back(std::move(sentence)); }
    void note_recovery(std::string sentence) override { recoveries.push_back(std::move(sentence)); }

    std::vector<std::string> troubles;
    std::vector<std::string> recoveries;
};

/// The names of a snapshot's members, in order, with a space between.
inline std::string names_of(const snapshot& all) {
    std::string names;
    for (const auto& each : all.members) names += (names.empty() ? "" : " ") + each->name;
    return names;
}

}  // namespace eddy::cluster::testing
