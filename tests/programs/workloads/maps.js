// SPDX-License-Identifier: Apache-2.0
//
// node: a Map of objects and strings, sorted arrays, and Buffers, which lie outside of its heap.
'use strict';
const crypto = require('crypto');

const count = Number(process.argv[2]);
let state = 26;
function random() {
    state = (Math.imul(state, 1103515245) + 12345) >>> 0;
    return state;
}

const entries = new Map();
for (let i = 0; i < count; i++) {
    entries.set(`key ${i}`, { number: random(), name: `name ${i % 1000}`, list: [i, i + 1] });
}
let sum = 0;
for (const entry of entries.values()) sum = (sum + entry.number * entry.list[1]) % 1000000007;
console.log(entries.size, sum);
const keys = [...entries.keys()];
keys.sort((a, b) => entries.get(a).number - entries.get(b).number || (a < b ? -1 : 1));
console.log(keys[0], keys[count >> 1], keys[count - 1]);
const hash = crypto.createHash('sha256');
const buffers = [];
for (let i = 0; i < count / 2000; i++) {
    const buffer = Buffer.alloc(1 << 18);
    for (let j = 0; j < buffer.length; j += 4) buffer.writeUInt32LE(random(), j);
    buffers.push(buffer);
}
for (const buffer of buffers) hash.update(buffer);
for (let i = 0; i < count; i += 3) entries.delete(keys[i]);
for (const [key, entry] of entries) hash.update(key + entry.name);
console.log(entries.size, hash.digest('hex'));
