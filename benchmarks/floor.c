/* An epoch on a whole graph with every pass fused, in float32: how fast a CPU is if nothing but the work is done.

   The passes are those of infomax/kernels/cpu.py, where it says why they suffice; Adam follows X^T G row by row. */

#include <math.h>
#include <omp.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

typedef struct {
    const int64_t *starts, *columns;
    const float *values;
} csr;

typedef struct {
    float *value, *mean, *variance, *kept;
} weight;

typedef struct {
    int64_t n, f, d, threads, height; /* of so many rows of G a core's cache has room */
    csr x, xt, p, pt;
    weight theta, bias, slope, bilinear, offset;
    float *y, *z[2], *y_grad, *theta_grad, *slant; /* [n, d], [n, d] each, [n, d], [f, d], [2 n] */
} problem;

/* Add entries e to stop of a row of a product, four at a time. */
static void add(float *restrict row, csr a, int64_t e, int64_t stop, const float *y, int64_t d, const int64_t *rename) {
#define FROM(i) (y + (rename ? rename[a.columns[i]] : a.columns[i]) * d)
    for (; e + 4 <= stop; e += 4) {
        const float *restrict p = FROM(e), *restrict q = FROM(e + 1), *restrict r = FROM(e + 2), *restrict s = FROM(e + 3);
        const float *v = a.values + e, b = v[0], c = v[1], g = v[2], h = v[3];
        for (int64_t k = 0; k < d; k++) row[k] += b * p[k] + c * q[k] + g * r[k] + h * s[k];
    }
    for (; e < stop; e++) {
        const float *restrict p = FROM(e), v = a.values[e];
        for (int64_t k = 0; k < d; k++) row[k] += v * p[k];
    }
}

/* A step of Adam for n of the weights from one on; before it they are kept. */
static void adam(weight w, int64_t from, int64_t n, const float *restrict grad, double lr, int64_t step) {
    const float rate = lr / (1 - pow(0.9, step)), scale = 1 / sqrt(1 - pow(0.999, step));
    float *restrict value = w.value + from, *restrict mean = w.mean + from, *restrict variance = w.variance + from;
    memcpy(w.kept + from, value, n * sizeof(float));
    for (int64_t i = 0; i < n; i++) {
        mean[i] += (grad[i] - mean[i]) * 0.1f;
        variance[i] += (grad[i] * grad[i] - variance[i]) * 0.001f;
        value[i] -= rate * mean[i] / (sqrtf(variance[i]) * scale + 1e-8f);
    }
}

/* One epoch against the graph whose features are shuffled by rows; the loss. */
double epoch(const problem *this, const int64_t *rows, double lr, int64_t step) {
    const problem t = *this;
    const int64_t n = t.n, f = t.f, d = t.d;
    const float *bias = t.bias.value, *w = t.bilinear.value, a = *t.slope.value, o = *t.offset.value;
    float s[d], v[d], c[d], v_grad[d], bias_grad[d], zero[d], slope_grad = 0, offset_grad = 0;
    double sums[d], loss = 0;
    memset(sums, 0, sizeof sums), memset(zero, 0, sizeof zero), memset(c, 0, sizeof c);
    memset(v_grad, 0, sizeof v_grad), memset(bias_grad, 0, sizeof bias_grad);
#pragma omp parallel num_threads(t.threads)
    {
        float part[d], h[d];
        /* X Theta */
#pragma omp for schedule(static)
        for (int64_t i = 0; i < n; i++) {
            memset(t.y + i * d, 0, d * sizeof(float));
            add(t.y + i * d, t.x, t.x.starts[i], t.x.starts[i + 1], t.theta.value, d, NULL);
        }
        /* both views, and the sum of the positives */
        memset(part, 0, sizeof part);
#pragma omp for schedule(static) nowait
        for (int64_t i = 0; i < n; i++) {
            for (int side = 0; side < 2; side++) {
                float *restrict u = t.z[side] + i * d;
                memcpy(u, bias, d * sizeof(float));
                add(u, t.p, t.p.starts[i], t.p.starts[i + 1], t.y, d, side ? rows : NULL);
                for (int64_t k = 0; k < d && !side; k++) part[k] += u[k] > 0 ? u[k] : a * u[k];
            }
        }
#pragma omp critical
        for (int64_t k = 0; k < d; k++) sums[k] += part[k];
#pragma omp barrier
#pragma omp single
        for (int64_t k = 0; k < d; k++) s[k] = 1 / (1 + exp(-sums[k] / n));
#pragma omp for schedule(static)
        for (int64_t i = 0; i < d; i++) {
            float along = 0;
            for (int64_t k = 0; k < d; k++) along += w[i * d + k] * s[k];
            v[i] = along;
        }
        /* scores */
        memset(part, 0, sizeof part);
#pragma omp for schedule(static) reduction(+ : loss, offset_grad) nowait
        for (int64_t i = 0; i < 2 * n; i++) {
            const float *restrict u = t.z[i >= n] + i % n * d, sign = i < n ? 1 : -1;
            float score = o;
            for (int64_t k = 0; k < d; k++) h[k] = u[k] > 0 ? u[k] : a * u[k];
            for (int64_t k = 0; k < d; k++) score += h[k] * v[k];
            const float small = expf(-fabsf(score));
            const float slant = ((score > 0 ? 1 : small) / (1 + small) - (i < n)) / (2 * n);
            loss += fmaxf(-sign * score, 0) + log1pf(small);
            offset_grad += t.slant[i] = slant;
            for (int64_t k = 0; k < d; k++) part[k] += slant * h[k];
        }
#pragma omp critical
        for (int64_t k = 0; k < d; k++) v_grad[k] += part[k];
#pragma omp barrier
#pragma omp single
        {
            for (int64_t i = 0; i < d; i++)
                for (int64_t k = 0; k < d; k++) c[k] += v_grad[i] * w[i * d + k];
            for (int64_t k = 0; k < d; k++) c[k] *= s[k] * (1 - s[k]) / n;
        }
        /* the gradient of both views, in their place */
        memset(part, 0, sizeof part);
#pragma omp for schedule(static) reduction(+ : slope_grad)
        for (int64_t i = 0; i < 2 * n; i++) {
            float *restrict u = t.z[i >= n] + i % n * d, slant = t.slant[i], along = 0;
            const float *restrict push = i < n ? c : zero;
            for (int64_t k = 0; k < d; k++) {
                const float grad = slant * v[k] + push[k];
                along += fminf(u[k], 0) * grad;
                part[k] += u[k] = u[k] > 0 ? grad : a * grad;
            }
            slope_grad += along;
        }
#pragma omp critical
        for (int64_t k = 0; k < d; k++) bias_grad[k] += part[k];
        /* that of Y */
#pragma omp for schedule(static)
        for (int64_t j = 0; j < n; j++) {
            const int64_t i = rows[j];
            memset(t.y_grad + i * d, 0, d * sizeof(float));
            add(t.y_grad + i * d, t.pt, t.pt.starts[i], t.pt.starts[i + 1], t.z[0], d, NULL);
            add(t.y_grad + i * d, t.pt, t.pt.starts[j], t.pt.starts[j + 1], t.z[1], d, NULL);
        }
        /* that of Theta, by blocks of rows of the one of Y, and the step */
        const int64_t share = (t.xt.starts[f] + omp_get_num_threads() - 1) / omp_get_num_threads();
        const int64_t least = omp_get_thread_num() * share;
        int64_t first = 0, last;
        while (first < f && t.xt.starts[first] < least) first++;
        for (last = first; last < f && t.xt.starts[last] < least + share;) last++;
        int64_t *reached = malloc((last - first) * sizeof(int64_t));
        memcpy(reached, t.xt.starts + first, (last - first) * sizeof(int64_t));
        memset(t.theta_grad + first * d, 0, (last - first) * d * sizeof(float));
        for (int64_t border = t.height; border < n + t.height; border += t.height)
            for (int64_t i = first; i < last; i++) {
                int64_t e = reached[i - first], stop = e;
                while (stop < t.xt.starts[i + 1] && t.xt.columns[stop] < border) stop++;
                add(t.theta_grad + i * d, t.xt, e, stop, t.y_grad, d, NULL);
                reached[i - first] = stop;
            }
        free(reached);
        adam(t.theta, first * d, (last - first) * d, t.theta_grad + first * d, lr, step);
#pragma omp for schedule(static)
        for (int64_t i = 0; i < d; i++) {
            for (int64_t k = 0; k < d; k++) h[k] = v_grad[i] * s[k];
            adam(t.bilinear, i * d, d, h, lr, step);
        }
    }
    adam(t.bias, 0, d, bias_grad, lr, step);
    adam(t.slope, 0, 1, &slope_grad, lr, step);
    adam(t.offset, 0, 1, &offset_grad, lr, step);
    return loss / (2 * n);
}
