// Dispatcher of subcommands: CONFIG GET, CLIENT LIST, by the rows of the table.
#include "cache/catalog/command_table.hpp"
#include "cache/catalog/commands.hpp"
#include "cache/engine/call.hpp"
#include "cache/engine/execution.hpp"

namespace eddy::cache::commands {

void subcommand(call& c) {
    const command_spec* const form = find_form(*c.spec, c.arg(1));
    if (form == nullptr) return c.unknown_subcommand();
    if (!arity_fits(*form, c.count))
        return c.wrong_arity(form->name.substr(c.spec->name.size() + 1));
    c.client.last_command = form->name.data();
    form->run(c);
}

}  // namespace eddy::cache::commands
