// Functions of one state that are called in another one, on another thread: bytecode of a function,
// which a host makes and loads itself, so that no script can forge it.
#pragma once

#include "lua/stack.hpp"

#include <string>
#include <string_view>

namespace eddy::lua {

/// Bytecode of the function at `index`; empty for one of C. Raises nothing. Throws std::bad_alloc.
std::string dump_function(stack in, int index);
/// Pushes the value of a local variable around the function at `index`, from 1 on, and returns its
/// name; null, and nothing pushed, where there are no more.
const char* push_upvalue(stack in, int index, int which) noexcept;
/// Pushes the function of dump_function()'s bytes, whose variables are nil. Raises errors.
void push_dumped(stack in, std::string_view code);
/// Pops a value, which the variable of the function at `index` gets.
void set_upvalue(stack in, int index, int which) noexcept;

}  // namespace eddy::lua
