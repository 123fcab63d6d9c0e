// What is done to each token's states by itself: norms, the gate, turned queries and keys.
// Sums are in fp32; what is computed is rounded once, when it is stored.

#include "vectors.h"

namespace {

template <typename T>
float inverse_rms(const T* row, int64_t width, float eps) {
    Vec squares(0.f);
    for (int64_t i = 0; i < width; i += LANES) {
        const Vec numbers = load(row + i, width - i);
        squares = at::vec::fmadd(numbers, numbers, squares);
    }
    return 1.f / std::sqrt(sum(squares) / static_cast<float>(width) + eps);
}

template <typename T>
void norm_row(T* out, const T* row, const T* weight, int64_t width, float eps) {
    const Vec scale(inverse_rms(row, width, eps));
    for (int64_t i = 0; i < width; i += LANES) {
        const int64_t count = width - i;
        store(out + i, load(row + i, count) * scale * load(weight + i, count), count);
    }
}

template <typename T>
void norm(T* out, const T* states, const T* weight, int64_t num_rows, int64_t width, float eps) {
    by_rows(num_rows, width, [&](int64_t first, int64_t end) {
        for (int64_t row = first; row < end; ++row)
            norm_row(out + row * width, states + row * width, weight, width, eps);
    });
}

template <typename T>
void add_norm(T* out, T* states, const T* more, const T* weight, int64_t num_rows, int64_t width, float eps) {
    by_rows(num_rows, width, [&](int64_t first, int64_t end) {
        for (int64_t row = first; row < end; ++row) {
            T* sums = states + row * width;
            const T* added = more + row * width;
            for (int64_t i = 0; i < width; i += LANES) {
                const int64_t count = width - i;
                store(sums + i, load(sums + i, count) + load(added + i, count), count);
            }
            norm_row(out + row * width, sums, weight, width, eps);
        }
    });
}

// In place: `num_queries` heads of each row by one weight, then `num_keys` by the other; what follows stays.
template <typename T>
void norm_heads(T* projected, const T* query_weight, const T* key_weight, int64_t num_rows, int64_t row_width,
                int64_t num_queries, int64_t num_keys, int64_t head_dim, float eps) {
    by_rows(num_rows, row_width, [&](int64_t first, int64_t end) {
        for (int64_t row = first; row < end; ++row)
            for (int64_t head = 0; head < num_queries + num_keys; ++head) {
                T* numbers = projected + row * row_width + head * head_dim;
                norm_row(numbers, numbers, head < num_queries ? query_weight : key_weight, head_dim, eps);
            }
    });
}

template <typename T>
void gate(T* out, const T* widened, int64_t num_rows, int64_t width) {
    const Vec one(1.f);
    by_rows(num_rows, width, [&](int64_t first, int64_t end) {
        for (int64_t row = first; row < end; ++row) {
            const T* gates = widened + row * 2 * width;
            const T* through = gates + width;
            for (int64_t i = 0; i < width; i += LANES) {
                const int64_t count = width - i;
                const Vec opened = load(gates + i, count);
                const Vec silu = opened / (one + opened.neg().exp_u20());
                store(out + row * width + i, silu * load(through + i, count), count);
            }
        }
    });
}

template <typename T>
void turn(T* out, const T* head, const float* cos, const float* sin, int64_t half) {
    for (int64_t i = 0; i < half; i += LANES) {
        const int64_t count = half - i;
        const Vec one = load(head + i, count), other = load(head + half + i, count);
        const Vec c = load(cos + i, count), s = load(sin + i, count);
        store(out + i, one * c - other * s, count);
        store(out + half + i, other * c + one * s, count);
    }
}

template <typename T>
void place(T* queries, T* keys, T* values, const T* projected, const float* cos, const float* sin,
           const int64_t* slots, int64_t num_rows, int64_t num_heads, int64_t kv_heads, int64_t head_dim,
           int64_t block_tokens) {
    const int64_t half = head_dim / 2, row_width = (num_heads + 2 * kv_heads) * head_dim;
    by_rows(num_rows, row_width, [&](int64_t first, int64_t end) {
        for (int64_t row = first; row < end; ++row) {
            const T* heads = projected + row * row_width;
            const float *c = cos + row * half, *s = sin + row * half;
            for (int64_t head = 0; head < num_heads; ++head)
                turn(queries + (row * num_heads + head) * head_dim, heads + head * head_dim, c, s, half);
            const T* own_keys = heads + num_heads * head_dim;
            const T* own_values = own_keys + kv_heads * head_dim;
            for (int64_t head = 0; head < kv_heads; ++head) {
                const int64_t at = (slots[row] + head * block_tokens) * head_dim;
                turn(keys + at, own_keys + head * head_dim, c, s, half);
                std::memcpy(values + at, own_values + head * head_dim, head_dim * sizeof(T));
            }
        }
    });
}

}  // namespace

// `call<T>(...)` with the T of a dtype's code.
#define BY_DTYPE(dtype, ...)        \
    if ((dtype) == BF16) {          \
        using T = BFloat16;         \
        __VA_ARGS__;                \
    } else {                        \
        using T = float;            \
        __VA_ARGS__;                \
    }

extern "C" {

void rill_norm(int64_t dtype, void* out, const void* states, const void* weight, int64_t num_rows, int64_t width,
               float eps) {
    BY_DTYPE(dtype, norm((T*)out, (const T*)states, (const T*)weight, num_rows, width, eps))
}

void rill_add_norm(int64_t dtype, void* out, void* states, const void* more, const void* weight, int64_t num_rows,
                   int64_t width, float eps) {
    BY_DTYPE(dtype, add_norm((T*)out, (T*)states, (const T*)more, (const T*)weight, num_rows, width, eps))
}

void rill_norm_heads(int64_t dtype, void* projected, const void* query_weight, const void* key_weight,
                     int64_t num_rows, int64_t row_width, int64_t num_queries, int64_t num_keys, int64_t head_dim,
                     float eps) {
    BY_DTYPE(dtype, norm_heads((T*)projected, (const T*)query_weight, (const T*)key_weight, num_rows, row_width,
                               num_queries, num_keys, head_dim, eps))
}

void rill_gate(int64_t dtype, void* out, const void* widened, int64_t num_rows, int64_t width) {
    BY_DTYPE(dtype, gate((T*)out, (const T*)widened, num_rows, width))
}

void rill_place(int64_t dtype, void* queries, void* keys, void* values, const void* projected, const float* cos,
                const float* sin, const int64_t* slots, int64_t num_rows, int64_t num_heads, int64_t kv_heads,
                int64_t head_dim, int64_t block_tokens) {
    BY_DTYPE(dtype, place((T*)queries, (T*)keys, (T*)values, (const T*)projected, cos, sin, slots, num_rows, num_heads,
                          kv_heads, head_dim, block_tokens))
}

}  // extern "C"
