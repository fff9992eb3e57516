import type { Random } from './random.ts';

type Mutation = (bytes: Buffer, random: Random, other: Buffer) => Buffer;

/** Values that lengths, counts and times lie with. */
const LIES = [0, 1, 0x7f, 0x80, 0xff, 0x7fff, 0xffff, 0x7fffff, 0xffffff, 0x7fffffff, 0xffffffff];

const MUTATIONS: readonly Mutation[] = [
  (bytes, random) => {
    const copy = Buffer.from(bytes);
    for (let i = random.below(12); i >= 0; i--) {
      const at = random.below(copy.length);
      copy[at] = (copy[at] as number) ^ (1 << random.below(8));
    }
    return copy;
  },
  (bytes, random) => bytes.subarray(0, random.below(bytes.length)),
  (bytes, random) => {
    const at = random.below(bytes.length);
    return Buffer.concat([bytes.subarray(0, at), bytes.subarray(at + random.below(300))]);
  },
  (bytes, random) => {
    const at = random.below(bytes.length);
    return Buffer.concat([bytes.subarray(0, at), random.bytes(random.below(300)), bytes.subarray(at)]);
  },
  (bytes, random) => {
    const at = random.below(bytes.length);
    const again = bytes.subarray(at, at + random.below(2000));
    return Buffer.concat([bytes.subarray(0, at), again, again, bytes.subarray(at)]);
  },
  (bytes, random, other) => {
    return Buffer.concat([bytes.subarray(0, random.below(bytes.length)), other.subarray(random.below(other.length))]);
  },
  (bytes, random) => {
    const copy = Buffer.from(bytes);
    for (let i = random.below(4); i >= 0; i--) {
      const size = 1 + random.below(4);
      const lie = random.pick(LIES) % 2 ** (8 * size);
      if (copy.length >= size) copy.writeUIntBE(lie, random.below(copy.length - size + 1), size);
    }
    return copy;
  },
];

/**
 * Breaks bytes in one way or several: flipped, missing, doubled, foreign, lying. What is in front of `from` stays.
 * @param other what parts of are spliced in
 */
export function mutate(bytes: Buffer, random: Random, other: Buffer, from = 0): Buffer {
  let rest = bytes.subarray(from);
  for (let i = random.below(3); i >= 0 && rest.length > 0; i--) rest = random.pick(MUTATIONS)(rest, random, other);
  return Buffer.concat([bytes.subarray(0, from), rest]);
}
