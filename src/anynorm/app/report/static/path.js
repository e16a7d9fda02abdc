// The exact path: coefficients at its knots, straight lines in between (as SolutionPath has it).

// For s the place before it in a sorted array and how much of the segment lies behind, in [0, 1].
function placeIn(places, s) {
  const last = places.length - 1;
  if (last === 0) return [0, 0];
  let low = 0;
  let high = last + 1;
  while (low < high) {
    const middle = (low + high) >> 1;
    if (places[middle] <= s) low = middle + 1;
    else high = middle;
  }
  const k = Math.min(Math.max(low - 1, 0), last - 1);
  const length = places[k + 1] - places[k];
  return [k, length > 0 ? Math.max(0, Math.min((s - places[k]) / length, 1)) : 1];
}

class Path {
  constructor(packed) {
    this.s = f8(packed.s);
    this.penalties = f8(packed.penalties);
    this.intercepts = f8(packed.intercepts);
    this.losses = f8(packed.losses);
    this.gaps = f8(packed.gaps);
    this.indptr = i4(packed.indptr);
    this.indices = i4(packed.indices);
    this.values = f8(packed.values);
    this.joints = packed.joints;
    this.stopped = packed.stopped;
    this.end = this.s[this.s.length - 1];
    this.#columns();
  }

  // By feature: the knots at which it is in use, its values there, where it enters and leaves,
  // perhaps several times.
  #columns() {
    this.columns = new Map();
    const K = this.s.length;
    for (let k = 0; k < K; k++) {
      for (let e = this.indptr[k]; e < this.indptr[k + 1]; e++) {
        if (this.values[e] === 0) continue;
        const j = this.indices[e];
        let column = this.columns.get(j);
        if (!column) this.columns.set(j, (column = { knots: [], values: [], stretches: [] }));
        column.knots.push(k);
        column.values.push(this.values[e]);
      }
    }
    this.events = Array.from({ length: K }, () => null);
    const note = (k, kind, j) => {
      this.events[k] = this.events[k] || { enter: [], leave: [] };
      this.events[k][kind].push(j);
    };
    for (const [j, { knots }] of this.columns) {
      const column = this.columns.get(j);
      knots.forEach((k, i) => {
        if (i === 0 || knots[i - 1] < k - 1) {
          if (k > 0) note(k - 1, "enter", j);
          column.stretches.push({ enter: k > 0 ? this.s[k - 1] : 0, leave: null, number: column.stretches.length + 1 });
        }
        if (k < K - 1 && (i === knots.length - 1 || knots[i + 1] > k + 1)) {
          note(k + 1, "leave", j);
          column.stretches[column.stretches.length - 1].leave = this.s[k + 1];
        }
      });
    }
    this.eventKnots = [];
    this.events.forEach((event, k) => { if (event) this.eventKnots.push(k); });
  }

  // The solution at s: weights by feature, intercept, loss.
  at(s) {
    const [k, t] = placeIn(this.s, s);
    const weights = new Map();
    const add = (knot, share) => {
      if (share === 0) return;
      for (let e = this.indptr[knot]; e < this.indptr[knot + 1]; e++) {
        const j = this.indices[e];
        weights.set(j, (weights.get(j) || 0) + share * this.values[e]);
      }
    };
    const after = Math.min(k + 1, this.s.length - 1);
    add(k, 1 - t);
    add(after, t);
    for (const [j, value] of weights) if (value === 0) weights.delete(j);
    const mix = (values) => (1 - t) * values[k] + t * values[after];
    return {
      s, weights, knot: k, share: t, intercept: mix(this.intercepts), loss: mix(this.losses),
      gap: Math.max(this.gaps[k], t > 0 ? this.gaps[after] : 0),
      prices: t > 0 && t < 1 ? [this.price(k), this.price(k)] : this.pricesAt(t === 1 ? after : k),
    };
  }

  // Where a feature enters and leaves around s: the stretch that s is in, otherwise the next or the last.
  stretchAt(j, s) {
    const column = this.columns.get(j);
    if (!column) return { enter: null, leave: null, number: 0 };
    const { stretches } = column;
    return stretches.find(({ leave }) => leave === null || leave > s) || stretches[stretches.length - 1];
  }

  // 1 / lambda on the segment that leaves a knot.
  price(k) {
    return 1 / this.penalties[k];
  }

  // All the C for which a knot is optimal.
  pricesAt(k) {
    return [k > 0 ? this.price(k - 1) : 0, this.price(k)];
  }

  // The smallest s that is optimal for C.
  ofPrice(C) {
    const penalty = (1 + 4 * Number.EPSILON) / C;
    let k = 0;
    while (k < this.s.length - 1 && this.penalties[k] > penalty) k += 1;
    return this.s[k];
  }

  // The last s with at most that many features, null where there is none.
  ofCount(count) {
    for (let k = this.s.length - 1; k >= 0; k--) {
      if (this.indptr[k + 1] - this.indptr[k] <= count) return this.s[k];
    }
    return null;
  }

  // The changes of the set of features before (or at) s, and after it.
  changes(s) {
    let before = null;
    let after = null;
    for (const k of this.eventKnots) {
      if (this.s[k] <= s) before = k;
      else { after = k; break; }
    }
    return [before, after];
  }
}

// Decision values of n rows at places of s, straight in between.
class Scores {
  constructor(packed) {
    this.s = f8(packed.s);
    this.scores = f4(packed.scores);
    this.n = this.scores.length / this.s.length;
  }

  at(s) {
    const [k, t] = placeIn(this.s, s);
    const after = Math.min(k + 1, this.s.length - 1);
    const found = new Float64Array(this.n);
    for (let i = 0; i < this.n; i++) {
      found[i] = (1 - t) * this.scores[k * this.n + i] + t * this.scores[after * this.n + i];
    }
    return found;
  }
}

// The cross-validated error: at a jump the value to the right of it.
class Curve {
  constructor(packed) {
    this.s = f8(packed.s);
    this.error = f4(packed.error);
    this.se = f4(packed.se);
  }

  at(s) {
    const [k, t] = placeIn(this.s, s);
    const after = Math.min(k + 1, this.s.length - 1);
    const mix = (values) => (values ? (1 - t) * values[k] + t * values[after] : null);
    return { error: mix(this.error), se: mix(this.se) };
  }
}

// One class of the page: its path, and what is known of the rows along it.
class View {
  constructor(packed) {
    this.name = packed.name;
    this.other = packed.other;
    this.picks = packed.picks;
    this.chosen = packed.chosen;
    this.path = new Path(packed);
    this.target = u1(packed.target);
    this.oof = packed.oof ? new Scores(packed.oof) : null;
    this.training = packed.training ? new Scores(packed.training) : null;
    this.cv = packed.cv ? new Curve(packed.cv) : null;
  }

  // Where a rule has this class, by default the chosen one; without one, the middle of the path.
  start(rule = this.chosen) {
    const pick = this.picks.find(([name]) => name === rule);
    return pick ? pick[1] : this.path.s[this.path.s.length >> 1];
  }
}
