// Where keys and values of a layer lie: in blocks, each with all tokens of one head behind the other.
#pragma once

#include "vectors.h"

extern "C" {

// As `Layout` in library.py.
struct Layout {
    int64_t dtype;
    int64_t num_heads;
    int64_t kv_heads;
    int64_t head_dim;
    int64_t block_tokens;
    int64_t window;  // tokens that a query sees; 0: all
    float scale;
};
}

template <typename T>
struct Paged {
    const T* keys;
    const T* values;
    const Layout& layout;

    // Offset of a token of the sequence with this table, in numbers.
    int64_t offset(const int64_t* table, int64_t head, int64_t token) const {
        const int64_t block = token / layout.block_tokens, within = token % layout.block_tokens;
        return ((table[block] + head) * layout.block_tokens + within) * layout.head_dim;
    }

    int64_t group() const { return layout.num_heads / layout.kv_heads; }

    // The first token that a query sees when `length` tokens are there, its own included.
    int64_t first_seen(int64_t length) const {
        return layout.window ? std::max<int64_t>(0, length - layout.window) : 0;
    }
};
