// Attention of many queries of one sequence: tiles of queries against tiles of keys, none behind the causal edge.
//
// Keys and values of the sequence are laid out once for the matrix products of ATen (`brgemm`: oneDNN's where it has
// them for the processor, BLAS else). The softmax runs over the tiles (as in flash-attention), in fp32.

#include "paged.h"

#include <ATen/native/CPUBlas.h>

namespace {

using at::native::cpublas::brgemm;

// Measured on two Zen 5 cores with 9 heads of 64 in 3 groups: a tile of scores stays in the second-level cache. Tiles
// always have the same size, because each size of a product is compiled at its first use.
constexpr int64_t QUERY_TILE = 64;
constexpr int64_t KEY_TILE = 128;

inline int64_t tiles_of(int64_t tokens, int64_t tile) {
    return (tokens + tile - 1) / tile;
}

// Whether `brgemm` takes pairs of bf16 as the dot products of the processor want them.
bool multiplies_pairs() {
    static const bool works = [] {
        std::vector<BFloat16> one(16 * 16), other(16 * 16);
        std::vector<float> product(16 * 16);
        try {
            brgemm(16, 16, 16, 16, 16, 16, false, one.data(), other.data(), product.data(), true);
            at::native::cpublas::brgemm_release(true);
            return true;
        } catch (const std::exception&) {
            return false;
        }
    }();
    return works;
}

inline void multiply(int64_t m, int64_t n, int64_t k, bool adds, const float* a, const float* b, float* c, bool) {
    brgemm(m, n, k, k, n, n, adds, a, b, c);
}

inline void multiply(int64_t m, int64_t n, int64_t k, bool adds, const BFloat16* a, const BFloat16* b, float* c,
                     bool are_pairs) {
    brgemm(m, n, k, k, n, n, adds, a, b, c, are_pairs);
}

template <typename T>
class Prefill {
public:
    Prefill(const Paged<T>& paged, const int64_t* table, int64_t num_queries, int64_t length)
        : paged_(paged), layout_(paged.layout), table_(table), num_queries_(num_queries), length_(length),
          first_(paged.first_seen(length - num_queries + 1)), num_tiles_(tiles_of(length - first_, KEY_TILE)),
          are_pairs_(sizeof(T) == 2 && multiplies_pairs()) {}

    void run(T* out, const T* queries) {
        const int64_t tile_numbers = KEY_TILE * layout_.head_dim;
        keys_.assign(layout_.kv_heads * num_tiles_ * tile_numbers, T(0.f));
        values_.assign(keys_.size(), T(0.f));
        by_tasks(layout_.kv_heads * num_tiles_, [&](int64_t task) {
            lay_out(keys_.data() + task * tile_numbers, values_.data() + task * tile_numbers, task / num_tiles_,
                    task % num_tiles_);
        });
        const int64_t num_query_tiles = tiles_of(num_queries_, QUERY_TILE);
        by_tasks(layout_.kv_heads * num_query_tiles, [&](int64_t task) {
            // The last tiles see most: they go first.
            attend(out, queries, task % layout_.kv_heads, num_query_tiles - 1 - task / layout_.kv_heads);
        });
    }

private:
    // Keys as (head_dim, KEY_TILE) and values as (KEY_TILE, head_dim); as pairs, two rows are interleaved.
    void lay_out(T* keys, T* values, int64_t kv_head, int64_t tile) const {
        const int64_t head_dim = layout_.head_dim, first = first_ + tile * KEY_TILE;
        const int64_t num_tokens = std::min(KEY_TILE, length_ - first);
        const int64_t pair = are_pairs_ ? 2 : 1;
        for (int64_t token = 0; token < num_tokens; ++token) {
            const int64_t offset = paged_.offset(table_, kv_head, first + token);
            const T* key = paged_.keys + offset;
            for (int64_t i = 0; i < head_dim; i += pair)
                std::memcpy(keys + i * KEY_TILE + token * pair, key + i, pair * sizeof(T));
            const T* value = paged_.values + offset;
            T* to = values + token / pair * pair * head_dim + token % pair;
            for (int64_t i = 0; i < head_dim; ++i) to[i * pair] = value[i];
        }
    }

    void attend(T* out, const T* queries, int64_t kv_head, int64_t query_tile) const {
        const int64_t head_dim = layout_.head_dim, group = paged_.group();
        const int64_t first_query = query_tile * QUERY_TILE;
        const int64_t num = std::min(QUERY_TILE, num_queries_ - first_query);
        const int64_t num_rows = QUERY_TILE * group;
        thread_local std::vector<T> states, weights;
        thread_local std::vector<float> scores, sums, most, total;
        states.assign(num_rows * head_dim, T(0.f));
        weights.resize(num_rows * KEY_TILE);
        scores.resize(num_rows * KEY_TILE);
        sums.assign(num_rows * head_dim, 0.f);
        most.assign(num_rows, -std::numeric_limits<float>::infinity());
        total.assign(num_rows, 0.f);
        const auto at = [&](int64_t query) {  // of the group's heads
            return ((first_query + query) * layout_.num_heads + kv_head * group) * head_dim;
        };
        for (int64_t query = 0; query < num; ++query)
            std::memcpy(states.data() + query * group * head_dim, queries + at(query), group * head_dim * sizeof(T));
        const int64_t position = length_ - num_queries_ + first_query;  // of the tile's first query
        const int64_t edge = position + num;                           // no query sees what comes from there on
        const int64_t first_tile = (paged_.first_seen(position + 1) - first_) / KEY_TILE;
        for (int64_t tile = first_tile; first_ + tile * KEY_TILE < edge; ++tile) {
            const int64_t first = first_ + tile * KEY_TILE;
            const int64_t numbers = (kv_head * num_tiles_ + tile) * KEY_TILE * head_dim;
            multiply(num_rows, KEY_TILE, head_dim, false, states.data(), keys_.data() + numbers, scores.data(),
                     are_pairs_);
            for (int64_t row = 0; row < num * group; ++row) {
                const int64_t seen = position + row / group + 1;  // tokens
                const int64_t from = std::max<int64_t>(0, paged_.first_seen(seen) - first);
                const int64_t to = std::min(KEY_TILE, seen - first);
                soften(weights.data() + row * KEY_TILE, scores.data() + row * KEY_TILE, from, to, most[row],
                       total[row], sums.data() + row * head_dim);
            }
            multiply(num_rows, head_dim, KEY_TILE, true, weights.data(), values_.data() + numbers, sums.data(),
                     are_pairs_);
        }
        if (are_pairs_) at::native::cpublas::brgemm_release(true);
        for (int64_t query = 0; query < num; ++query)
            finish(out + at(query), sums.data() + query * group * head_dim, total.data() + query * group);
    }

    // The weighted sums of a group's heads over their weights' totals.
    void finish(T* out, const float* sums, const float* totals) const {
        for (int64_t head = 0; head < paged_.group(); ++head)
            for (int64_t i = 0; i < layout_.head_dim; i += LANES) {
                const int64_t at = head * layout_.head_dim + i, count = layout_.head_dim - i;
                store(out + at, load(sums + at, count) / Vec(totals[head]), count);
            }
    }

    // Scores of the tokens `from` to `to` of a tile become weights relative to the largest so far; others get none.
    void soften(T* weights, float* scores, int64_t from, int64_t to, float& most, float& total, float* sums) const {
        std::fill(weights, weights + KEY_TILE, T(0.f));
        if (from >= to) return;
        const Vec scale(layout_.scale);
        Vec peak(most);
        float peak_of_rest = most;
        int64_t t = from;
        for (; t + LANES <= to; t += LANES) peak = at::vec::maximum(peak, load(scores + t) * scale);
        for (; t < to; ++t) peak_of_rest = std::max(peak_of_rest, scores[t] * layout_.scale);
        const float highest = std::max(largest(peak), peak_of_rest);
        if (highest != most) {
            const Vec factor(std::exp(most - highest));
            total *= std::exp(most - highest);
            for (int64_t i = 0; i < layout_.head_dim; i += LANES) {
                const int64_t count = layout_.head_dim - i;
                store(sums + i, load(sums + i, count) * factor, count);
            }
            most = highest;
        }
        Vec added(0.f);
        for (t = from; t + LANES <= to; t += LANES) {
            const Vec weight = (load(scores + t) * scale - Vec(highest)).exp_u20();
            store(weights + t, weight);
            added += weight;
        }
        total += sum(added);
        for (; t < to; ++t) {
            const float weight = std::exp(scores[t] * layout_.scale - highest);
            weights[t] = static_cast<T>(weight);
            total += weight;
        }
    }

    const Paged<T> paged_;
    const Layout& layout_;
    const int64_t* table_;
    const int64_t num_queries_, length_;
    const int64_t first_;  // token that any query sees
    const int64_t num_tiles_;
    const bool are_pairs_;
    std::vector<T> keys_, values_;  // by KV head, then tile
};

}  // namespace

extern "C" void rill_attend_tiles(const Layout* layout, void* out, const void* queries, const void* keys,
                                  const void* values, const int64_t* table, int64_t num_queries, int64_t length) {
    const auto run = [&](auto zero) {
        using T = decltype(zero);
        const Paged<T> paged{static_cast<const T*>(keys), static_cast<const T*>(values), *layout};
        Prefill<T>(paged, table, num_queries, length).run(static_cast<T*>(out), static_cast<const T*>(queries));
    };
    layout->dtype == BF16 ? run(BFloat16()) : run(0.f);
}
