// For tests: chunks that run in a sandbox, as scripts of an engine would.
#pragma once

#include "lua/errors.hpp"
#include "lua/sandbox.hpp"

#include <gtest/gtest.h>

#include <cstddef>
#include <cstdint>
#include <functional>
#include <map>
#include <string>
#include <string_view>
#include <vector>

namespace eddy::lua::testing {

/// Counts the checks; from a chosen one on each raises an error.
class counting_supervisor final : public supervisor {
public:
    void check(stack in) override {
        ++checks;
        if (checks < raises_from) return;
        ending = true;
        sandbox::of(in).check_always(true);
        raise_error(in, "stopped");
    }
    void check_quietly() override { ++quiet_checks; }
    bool is_ending() const noexcept override { return ending; }

    std::size_t checks = 0;
    std::size_t quiet_checks = 0;
    std::size_t raises_from = SIZE_MAX;
    bool ending = false;
};

/// A sandbox whose chunks have their arguments in ARGV. The text that a chunk returns, or its error
/// behind "error: ".
class sandboxed_lua {
public:
    explicit sandboxed_lua(std::size_t max_bytes = std::size_t{64} << 20)
        : machine(by, max_bytes, nullptr) {}

    std::string operator()(std::string_view chunk, const std::vector<std::string>& arguments = {}) {
        auto [known, is_new] = compiled_.try_emplace(std::string(chunk), 0);
        if (is_new) {
            std::string why;
            known->second = machine.compile(chunk, "@user_script", why);
            if (known->second == 0) {
                compiled_.erase(known);
                return "error: " + why;
            }
        }
        call what{known->second, arguments, {}};
        const stack in = machine.values();
        if (!machine.call_protected(run, &what)) {
            what.returned = "error: " + std::string(in.tostring(-1));
            in.pop();
        }
        if (by.ending) machine.check_always(false);
        by.ending = false;
        machine.collect_if_full();
        return what.returned;
    }

    counting_supervisor by;
    sandbox machine;

private:
    struct call {
        int function;
        const std::vector<std::string>& arguments;
        std::string returned;
    };
    static int run(lua_State* raw) {
        const stack in(raw);
        call& what = *static_cast<call*>(in.touserdata(1));
        in.settop(0);
        in.createtable();
        for (std::size_t i = 0; i < what.arguments.size(); ++i) {
            in.pushstring(what.arguments[i]);
            in.rawseti(-2, static_cast<int>(i) + 1);
        }
        sandbox::set_global(in, "ARGV");
        in.pushcclosure(note_error);
        in.getref(what.function);
        if (in.pcall(0, 1, 1)) {
            what.returned = in.tostring(-1);
        } else {
            if (in.istable(-1)) in.rawgetfield(-1, "err");
            what.returned = "error: ";
            what.returned += in.tostring(-1);
        }
        return 0;
    }

    std::map<std::string, int, std::less<>> compiled_;
};

}  // namespace eddy::lua::testing
