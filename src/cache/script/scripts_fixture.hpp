// Fixture for tests of scripts: an engine that counts steps instead of time, and two clients.
#pragma once

#include "cache/engine/engine.hpp"
#include "cache/testing/test_client.hpp"

#include <gtest/gtest.h>

#include <string>
#include <string_view>

namespace eddy::cache::testing {

inline std::string bulk(std::string_view text) {
    return "$" + std::to_string(text.size()) + "\r\n" + std::string(text) + "\r\n";
}

inline constexpr std::string_view busy =
    "-BUSY Redis is busy running a script. You can only call SCRIPT "
    "KILL or SHUTDOWN NOSAVE.\r\n";

class scripting : public ::testing::Test {
protected:
    static engine_options options() {
        engine_options made;
        made.busy_reply_ms = 1;
        made.max_script_memory = 16U << 20;
        return made;
    }
    // By steps, for any machine: a script is late after two hundred thousand.
    scripting() { engine_.set_slice_clock(nullptr); }

    std::string eval(test_client& by, const std::string& text, const arguments& rest = {"0"}) {
        arguments args{"EVAL", text};
        args.insert(args.end(), rest.begin(), rest.end());
        return by.ask(args);
    }
    std::string eval(const std::string& text) { return eval(a_, text); }
    // The final reply of a script, late or not.
    std::string run(test_client& by, const std::string& text) {
        std::string reply = eval(by, text);
        while (engine_.script_is_late()) engine_.go_on();
        return reply + by.pushed();
    }
    void finish() {
        while (engine_.script_is_late()) engine_.go_on();
    }
    std::string info(const std::string& field) {
        const std::string all = b_("INFO memory");
        const std::size_t at = all.find("\n" + field + ":") + field.size() + 2;
        return all.substr(at, all.find('\r', at) - at);
    }

    engine engine_{options()};
    test_client a_{engine_};
    test_client b_{engine_};
};

}  // namespace eddy::cache::testing
