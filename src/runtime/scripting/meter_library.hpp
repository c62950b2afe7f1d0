// Functions of scripts for counters and gauges of their own: eddy.counter(NAME), eddy.gauge(NAME).
#pragma once

#include "runtime/scripting/script_meters.hpp"
#include "script/library.hpp"

#include <string_view>
#include <vector>

namespace eddy::runtime {

/// Meters that one state uses, by number. One loop's thread.
class meter_library {
public:
    /// `all` outlives it.
    explicit meter_library(script_meters& all) noexcept : all_(all) {}

    /// Table `meters`, for meter_prelude().
    script::library functions() noexcept;

private:
    friend struct meter_functions;

    script_meters& all_;
    std::vector<script_meters::meter*> used_;  // their numbers count from 1
};

/// Defines in Lua `eddy.counter()` and `eddy.gauge()`. Behind meter_library::functions().
std::string_view meter_prelude() noexcept;

}  // namespace eddy::runtime
