// Test fixture: random commands, from templates as in differential_commands.hpp.
#pragma once

#include <eddy/base/random.hpp>

#include "cache/testing/test_client.hpp"

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace eddy::cache::testing {

class random_commands {
public:
    random_commands(std::string_view templates, std::uint64_t seed)
        : lines_(separate(templates)), random_(seed) {}

    arguments next() {
        arguments words = split(lines_[random_.below(lines_.size())]);
        for (std::string& word : words) {
            for (std::size_t at = 0; (at = word.find('%', at)) != std::string::npos;) {
                const std::string with = filling(word[at + 1]);
                word.replace(at, 2, with);
                at += with.size();
            }
        }
        // A trim stands for two or three words.
        arguments all;
        for (const std::string& word : words) {
            if (word.find("MAXLEN ") == 0 || word.find("MINID ") == 0) {
                for (std::string& each : split(word)) all.push_back(std::move(each));
            } else {
                all.push_back(word);
            }
        }
        return all;
    }
    bool chance(std::uint64_t of) { return random_.below(of) == 0; }
    std::uint64_t below(std::uint64_t limit) { return random_.below(limit); }

private:
    std::string number(std::uint64_t below) { return std::to_string(random_.below(below)); }
    std::string filling(char what) {
        switch (what) {
            case 'k': return "k" + number(9);
            case 'v': return chance(3) ? number(1000) : std::string(random_.below(40), 'v');
            case 'm': return chance(2) ? "m" + number(20) : number(30);
            case 'i': return chance(2) ? number(50) : "-" + number(9);
            case 'n': return number(10);
            case 'f': return number(100) + "." + number(100);
            case 'x': return chance(2) ? "-" + number(9) : number(20);
            case 'z': return "z" + number(4);
            case 'g': return "g" + number(3);
            case 'd': return number(80) + ".5";
            case 'b': return chance(3) ? "(" + number(9) : number(9);
            case 'l': return "[" + number(9);
            case 'a': return chance(3) ? "*" : std::to_string(++last_) + "-" + number(9);
            case 'r': return chance(3) ? "-" : number(last_ + 2);
            case 'c': return "c" + number(3);
            case 't':
                switch (random_.below(4)) {
                    case 0: return "MAXLEN ~ " + number(30);
                    case 1: return "MINID ~ " + number(last_ + 1);
                    case 2: return "MAXLEN " + number(30);
                    default: return "MINID = " + number(last_ + 1);
                }
            default: return "*";
        }
    }

    std::vector<std::string_view> lines_;
    random_generator random_;
    std::uint64_t last_ = 0;
};

}  // namespace eddy::cache::testing
