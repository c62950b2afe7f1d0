// The pairing heap behind timers (Fredman, Sedgewick, Sleator, Tarjan 1986).
#include <eddy/io/timer.hpp>

namespace eddy {

timer* timer_heap::meld(timer* a, timer* b) noexcept {
    if (!a) return b;
    if (!b) return a;
    if (b->when_ < a->when_) std::swap(a, b);
    // b becomes a's first child.
    b->prev_ = a;
    b->next_ = a->child_;
    if (a->child_) a->child_->prev_ = b;
    a->child_ = b;
    return a;
}

timer* timer_heap::meld_siblings(timer* first) noexcept {
    // Two passes, both loops: pairs from left to right onto a stack, then that stack into one.
    timer* stack = nullptr;
    while (first) {
        timer* a = first;
        timer* b = a->next_;
        first = b ? b->next_ : nullptr;
        a->next_ = a->prev_ = nullptr;
        if (b) b->next_ = b->prev_ = nullptr;
        timer* pair = meld(a, b);
        pair->next_ = stack;
        stack = pair;
    }
    timer* root = nullptr;
    while (stack) {
        timer* next = stack->next_;
        stack->next_ = nullptr;
        root = meld(root, stack);
        stack = next;
    }
    return root;
}

void timer_heap::insert(timer& node) noexcept {
    EDDY_ASSERT(!node.armed_);
    node.child_ = node.next_ = node.prev_ = nullptr;
    node.armed_ = true;
    root_ = meld(root_, &node);
}

void timer_heap::remove(timer& node) noexcept {
    EDDY_ASSERT(node.armed_);
    node.armed_ = false;
    timer* below = meld_siblings(node.child_);
    if (&node == root_) {
        root_ = below;
    } else {
        if (node.prev_->child_ == &node)
            node.prev_->child_ = node.next_;
        else
            node.prev_->next_ = node.next_;
        if (node.next_) node.next_->prev_ = node.prev_;
        root_ = meld(root_, below);
    }
    node.child_ = node.next_ = node.prev_ = nullptr;
}

}  // namespace eddy
