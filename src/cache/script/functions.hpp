// Libraries of functions, which stay until they are deleted: FUNCTION and FCALL.
#pragma once

#include "cache/script/runner.hpp"
#include "lua/sandbox.hpp"

#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

namespace eddy::cache {

/// All libraries of one engine, with the sandbox that they live in. One thread.
class libraries {
public:
    /// The codes of all libraries together; beyond it FUNCTION LOAD is refused.
    static constexpr std::size_t max_text_bytes = std::size_t{32} << 20;
    /// Loading a library may take so long.
    static constexpr std::int64_t max_load_ms = 500;

    /// The runner must outlive it.
    explicit libraries(script_runner& runner);
    libraries(const libraries&) = delete;
    libraries& operator=(const libraries&) = delete;

    struct function {
        std::string name;  ///< found in any case
        std::string description;
        bool is_described = false;
        int reference = 0;        ///< in the sandbox
        std::uint32_t flags = 0;  ///< of script_flag
    };
    struct library {
        std::string name;
        std::string code;
        std::vector<std::unique_ptr<function>> functions;
    };

    /// Compiles and runs the code, which registers its functions. The library's name, or empty with
    /// the reason in `why`; nothing has changed then.
    std::string load(std::string_view code, bool replace, std::string& why);
    bool remove(std::string_view name);
    void flush();

    const function* find(std::string_view name) const noexcept;
    const std::vector<std::unique_ptr<library>>& all() const noexcept { return all_; }

    std::size_t size() const noexcept { return all_.size(); }
    std::size_t function_count() const noexcept;
    std::size_t text_bytes() const noexcept;
    lua::sandbox& sandbox() noexcept { return sandbox_; }
    const lua::sandbox& sandbox() const noexcept { return sandbox_; }

private:
    library* find_library(std::string_view name) noexcept;
    void forget(const library& gone) noexcept;

    void furnish(lua::stack in);
    /// Scripts find the globals in that table of the sandbox's registry, or with 0 their usual
    /// ones.
    void use_globals(int table);
    /// redis.register_function(), closed over the libraries.
    static int register_function(lua_State* raw);

    script_runner& runner_;
    int load_globals_ = 0;  // all that a library finds while it is loaded; in the sandbox
    lua::sandbox sandbox_;
    std::vector<std::unique_ptr<library>> all_;
    library* loading_ = nullptr;
};

}  // namespace eddy::cache
