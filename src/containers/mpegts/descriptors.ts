import type { Descriptor } from './stream-types.ts';

/** Descriptors of a loop, as slices; ends at one that is cut off. */
export function readDescriptors(loop: Buffer): Descriptor[] {
  const found: Descriptor[] = [];
  for (let at = 0; at + 2 <= loop.length;) {
    const end = at + 2 + (loop[at + 1] as number);
    if (end > loop.length) break;
    found.push({ tag: loop[at] as number, data: loop.subarray(at + 2, end) });
    at = end;
  }
  return found;
}

/** Builds a loop of descriptors, each of at most 255 bytes. */
export function writeDescriptors(descriptors: readonly Descriptor[]): Buffer {
  return Buffer.concat(descriptors.flatMap(({ tag, data }) => [Buffer.of(tag, data.length), data]));
}
