import { BitstreamError } from './bits.ts';
import type { ByteReader } from './byte-reader.ts';

/** Of those that are kept: they are there with every picture, and whoever sends them may have made them many. */
const ids = new WeakMap<Buffer, number>();

/**
 * `known` with each of `found` in the place of the set with its id, or at the end.
 * Answers `known` itself when every one is there already, byte for byte.
 */
export function mergeById(
  known: readonly Buffer[],
  found: readonly Buffer[],
  idOf: (nal: Buffer) => number,
): readonly Buffer[] {
  if (found.length === 0) return known;
  const present = new Set(known.map(textOf));
  const fresh = found.filter((nal) => !present.has(textOf(nal)));
  if (fresh.length === 0) return known;
  const byId = new Map(known.map((nal) => [keptId(nal, idOf), nal]));
  // copied, for a slice would keep the whole buffer that it came in
  for (const nal of fresh) byId.set(idOf(nal), Buffer.from(nal));
  return [...byId.values()];
}

function textOf(nal: Buffer): string {
  return nal.toString('latin1');
}

function keptId(nal: Buffer, idOf: (nal: Buffer) => number): number {
  const id = ids.get(nal) ?? idOf(nal);
  ids.set(nal, id);
  return id;
}

/** Reads `count` NAL units, each behind its length in 2 bytes. */
export function readParameterSets(reader: ByteReader, count: number): Buffer[] {
  const nals: Buffer[] = [];
  for (let i = 0; i < count; i++) {
    const nal = reader.bytes(reader.u16());
    if (nal.length === 0) throw new BitstreamError('a parameter set is empty');
    nals.push(nal);
  }
  return nals;
}

/** Adds NAL units to `parts`, each behind its length in 2 bytes. */
export function writeParameterSets(parts: Buffer[], nals: readonly Buffer[]): void {
  for (const nal of nals) {
    if (nal.length > 0xffff) throw new BitstreamError('a parameter set is too long');
    parts.push(Buffer.of(nal.length >> 8, nal.length & 0xff), nal);
  }
}
