import { BitReader, BitstreamError, BitWriter } from './bits.ts';
import type { ByteReader } from './byte-reader.ts';
import { unescapeNal } from './nal.ts';

/** Where a parameter set has its place among those of a stream: it takes that of another with the same kind and id. */
export interface SetPlace {
  /** Its NAL unit type. */
  readonly kind: number;
  readonly id: number;
  /** Id of the set that it refers to: the SPS of a PPS, the VPS of an SPS. */
  readonly of: number;
}

interface KnownSet extends SetPlace {
  readonly nal: Buffer;
  readonly text: string;
}

const IDS = 256;
/** Longer than any parameter set: lists of scaling factors take some 3 kB, everything else some hundred bytes. */
export const MAX_SET_BYTES = 8192;
/** A stream with every id in use has less; the one that has been there longest without a change leaves. */
const MAX_BYTES = 64 * 1024;

/** The parameter sets of a stream that are there to be referred to. */
export class ParameterSets {
  readonly #locate: (nal: Buffer) => SetPlace;
  readonly #byPlace = new Map<number, KnownSet>();
  /** They are there with every key frame, and whoever sends them may have made them many. */
  readonly #byText = new Map<string, KnownSet>();
  #bytes = 0;
  /** Another number after each change. */
  version = 0;

  /** @param locate tells the place of a set, or throws a BitstreamError where it is malformed */
  constructor(locate: (nal: Buffer) => SetPlace) {
    this.#locate = locate;
  }

  /**
   * Takes sets, each in the place of the one with its kind and id.
   * @returns those that were not there already, byte for byte, as it keeps them
   * @throws BitstreamError when one is malformed; those before it are taken
   */
  add(nals: readonly Buffer[]): Buffer[] {
    const fresh: Buffer[] = [];
    for (const nal of nals) {
      if (nal.length > MAX_SET_BYTES) throw new BitstreamError('a parameter set is too long');
      const text = nal.toString('latin1');
      if (this.#byText.has(text)) continue;
      // copied, for a slice would keep the whole buffer that it came in
      const known = { ...this.#locate(nal), nal: Buffer.from(nal), text };
      this.#put(known);
      fresh.push(known.nal);
    }
    return fresh;
  }

  get(kind: number, id: number): Buffer | undefined {
    return this.#byPlace.get(kind * IDS + id)?.nal;
  }

  /** The sets of a kind, in the order of their places' first use. @param of only those that refer to a set of this id */
  all(kind: number, of?: number): readonly (SetPlace & { readonly nal: Buffer })[] {
    return [...this.#byPlace.values()].filter((set) => set.kind === kind && (of === undefined || set.of === of));
  }

  #put(known: KnownSet): void {
    const place = known.kind * IDS + known.id;
    this.#forget(this.#byPlace.get(place));
    this.#byPlace.set(place, known);
    this.#byText.set(known.text, known);
    this.#bytes += known.nal.length;
    this.version++;
    for (const [at, old] of this.#byPlace) {
      if (this.#bytes <= MAX_BYTES || old === known) break;
      this.#byPlace.delete(at);
      this.#forget(old);
    }
  }

  #forget(known: KnownSet | undefined): void {
    if (known === undefined) return;
    this.#byText.delete(known.text);
    this.#bytes -= known.nal.length;
  }
}

/** The sets that a coded video sequence needs. */
export interface ActiveSets {
  /** All of them, in the order in which they are sent. */
  readonly nals: readonly Buffer[];
  readonly sps: Buffer;
  /** Equal where decoders are set up alike: what VPS and SPS tell, but for their ids. */
  readonly meaning: string;
  /** Decoder configuration record for 4-byte lengths. */
  readonly record: Buffer;
}

/**
 * What a parameter set tells but for its ids.
 * @param ids bits from and to where they are, behind the emulation prevention
 */
export function withoutIds(nal: Buffer, ids: readonly (readonly [from: number, to: number])[]): string {
  const data = unescapeNal(nal);
  let end = data.length * 8;
  while (end > 0 && !isSet(data, end - 1)) end--;
  const reader = new BitReader(data);
  const rest = new BitWriter();
  for (const [from, to] of [...ids, [end, end] as const]) {
    while (reader.position < from) {
      const bits = Math.min(32, from - reader.position);
      rest.write(reader.read(bits), bits);
    }
    reader.skip(to - from);
  }
  return rest.finish().toString('latin1');
}

function isSet(data: Buffer, bit: number): boolean {
  return (((data[bit >> 3] as number) >> (7 - (bit & 7))) & 1) === 1;
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
