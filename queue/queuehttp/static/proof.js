"use strict";
// Finds the number of an ALTCHA challenge. One file in two places: the page loads it
// and calls usherProof.solve; each worker the page starts runs the same file and
// tries its share of the numbers, so that the page itself never stands still.
// SHA-256 is written out here (FIPS 180-4): crypto.subtle answers each hash by a
// promise of its own, which takes far longer than the hash (Chromium on
// one 2.8 GHz core: 29,000 a second against 700,000; slowed six times, 6,700 and 185,000).
(() => {
  const K = new Int32Array(64), START = new Int32Array(8);
  // The constants are the first 32 bits of the fractions of roots of primes. A double
  // holds them exactly enough: 53 bits, of which the whole part takes 5.
  for (let n = 2, i = 0; i < 64; n++) {
    let prime = true;
    for (let d = 2; d * d <= n; d++) if (n % d === 0) prime = false;
    if (!prime) continue;
    const bits = (x) => ((x - Math.floor(x)) * 4294967296) | 0;
    if (i < 8) START[i] = bits(Math.sqrt(n));
    K[i++] = bits(Math.cbrt(n));
  }
  const W = new Int32Array(64);

  // compress adds the 64 bytes of block at `at` to the state h.
  function compress(h, block, at) {
    for (let i = 0; i < 16; i++, at += 4) {
      W[i] = (block[at] << 24) | (block[at + 1] << 16) | (block[at + 2] << 8) | block[at + 3];
    }
    for (let i = 16; i < 64; i++) {
      const x = W[i - 15], y = W[i - 2];
      W[i] = (W[i - 16] + ((x >>> 7 | x << 25) ^ (x >>> 18 | x << 14) ^ (x >>> 3)) + W[i - 7] +
        ((y >>> 17 | y << 15) ^ (y >>> 19 | y << 13) ^ (y >>> 10))) | 0;
    }
    let a = h[0], b = h[1], c = h[2], d = h[3], e = h[4], f = h[5], g = h[6], k = h[7];
    for (let i = 0; i < 64; i++) {
      const t = (k + ((e >>> 6 | e << 26) ^ (e >>> 11 | e << 21) ^ (e >>> 25 | e << 7)) + ((e & f) ^ (~e & g)) + K[i] + W[i]) | 0;
      const u = (((a >>> 2 | a << 30) ^ (a >>> 13 | a << 19) ^ (a >>> 22 | a << 10)) + ((a & b) ^ (a & c) ^ (b & c))) | 0;
      k = g; g = f; f = e; e = (d + t) | 0; d = c; c = b; b = a; a = (t + u) | 0;
    }
    h[0] += a; h[1] += b; h[2] += c; h[3] += d; h[4] += e; h[5] += f; h[6] += g; h[7] += k;
  }

  // searcher remembers the state behind the salt's whole blocks, which is the same
  // for all numbers: one block is left to hash for each.
  function searcher(salt, challenge) {
    const bytes = new TextEncoder().encode(salt);
    const base = START.slice(), whole = bytes.length & ~63;
    for (let at = 0; at < whole; at += 64) compress(base, bytes, at);
    const want = new Int32Array(8);
    for (let i = 0; i < 8; i++) want[i] = parseInt(challenge.slice(8 * i, 8 * i + 8), 16) | 0;
    const rest = bytes.length - whole, tail = new Uint8Array(128), h = new Int32Array(8);
    tail.set(bytes.subarray(whole));
    let ready = 0; // digits the padding is made for
    // tries whether n is the number.
    return (n) => {
      let digits = 1;
      for (let x = 10; x <= n; x *= 10) digits++;
      const end = rest + digits, size = end + 9 <= 64 ? 64 : 128;
      if (digits !== ready) {
        ready = digits;
        tail.fill(0, rest);
        tail[end] = 0x80;
        const bits = (bytes.length + digits) * 8;
        for (let i = 0; i < 4; i++) tail[size - 1 - i] = (bits >>> (8 * i)) & 255;
      }
      for (let at = end - 1, x = n; at >= rest; at--) {
        const y = Math.floor(x / 10);
        tail[at] = 48 + x - 10 * y;
        x = y;
      }
      h.set(base);
      compress(h, tail, 0);
      if (size === 128) compress(h, tail, 64);
      for (let i = 0; i < 8; i++) if (h[i] !== want[i]) return false;
      return true;
    };
  }

  // slices tries from, from+step, … in slices of some ms; told hears how many after each.
  async function slices({ salt, challenge, max, from, step }, ms, pause, told) {
    const is = searcher(salt, challenge);
    let n = from, tried = 0;
    while (n <= max) {
      const until = performance.now() + ms;
      do {
        for (let i = 0; i < 64 && n <= max; i++, n += step, tried++) if (is(n)) return n;
      } while (n <= max && performance.now() < until);
      told(tried);
      await pause();
    }
    return -1;
  }

  const paused = () => new Promise((go) => setTimeout(go, 0));

  if (typeof document === "undefined" && typeof WorkerGlobalScope !== "undefined") {
    addEventListener("message", async (e) => {
      const number = await slices(e.data, 100, () => null, (tried) => postMessage({ tried }));
      postMessage({ number });
    });
    return;
  }

  const here = typeof document === "undefined" ? "" : document.currentScript.src;

  // crew lets several workers search; half the cores, as the page has other work too.
  function crew(task, signal, told) {
    const size = Math.min(4, Math.max(1, (navigator.hardwareConcurrency || 2) >> 1));
    const workers = [], tried = [];
    let idle = 0;
    return new Promise((found, failed) => {
      for (let i = 0; i < size; i++) {
        const w = new Worker(here);
        workers.push(w);
        w.onerror = () => failed(new Error("no worker"));
        w.onmessage = ({ data }) => {
          if (data.tried) told((tried[i] = data.tried, tried.reduce((a, b) => a + b, 0)));
          else if (data.number >= 0) found(data.number);
          else if (++idle === size) found(-1);
        };
        w.postMessage({ ...task, from: i, step: size });
      }
      signal?.addEventListener("abort", () => failed(signal.reason));
    }).finally(() => workers.forEach((w) => w.terminate()));
  }

  // solve finds the number of a challenge {algorithm, challenge, salt, maxnumber,
  // signature} and resolves to the text a join takes as `altcha`. It rejects when
  // there is none, or when the signal aborts. progress(0…1) tells how much has been
  // tried: on average it is done at a half.
  async function solve(challenge, { signal, progress } = {}) {
    if (challenge.algorithm !== "SHA-256") throw new Error("unknown algorithm " + challenge.algorithm);
    const max = challenge.maxnumber ?? 1e6, begun = performance.now();
    const task = { salt: challenge.salt, challenge: challenge.challenge, max };
    const told = (tried) => progress?.(Math.min(1, tried / (max + 1)));
    const alone = () => slices({ ...task, from: 0, step: 1 }, 8, () => {
      signal?.throwIfAborted();
      return paused();
    }, told);
    let number;
    try {
      number = typeof Worker === "undefined" || !here ? await alone() : await crew(task, signal, told);
    } catch (e) {
      signal?.throwIfAborted();
      number = await alone(); // workers are refused here: slower, but still no standing still
    }
    if (number < 0) throw new Error("no number answers this challenge");
    return btoa(JSON.stringify({
      algorithm: challenge.algorithm, challenge: challenge.challenge, number, salt: challenge.salt,
      signature: challenge.signature, took: Math.round(performance.now() - begun),
    }));
  }

  globalThis.usherProof = { solve, searcher };
})();
