// `eddy lua` in a build without LuaJIT.
#include "cli/commands/commands.hpp"
#include "cli/stack/lua_declarations.hpp"

namespace eddy::cli {

std::expected<std::vector<nlohmann::json>, std::string> declarations_of_script(context&,
                                                                               std::string,
                                                                               const std::string&) {
    return std::unexpected("this build has no Lua; write the file in TOML");
}

command script_command() {
    command c;
    c.name = "lua";
    c.operands = "run|check";
    c.summary = "run a script against the daemon, or check one";
    c.most = 1000;
    c.literal_after = 0;
    c.run = [](context&, const arguments&) {
        complain("this build has no Lua");
        return exit_bad_input;
    };
    return c;
}

}  // namespace eddy::cli
