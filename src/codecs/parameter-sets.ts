import { BitReader, BitstreamError, BitWriter } from './bits.ts';
import type { ByteReader } from './byte-reader.ts';
import { unescapeNal } from './nal.ts';

/** Kind and ids of a parameter set. A set replaces that with the same kind and id. */
export interface SetPlace {
  /** NAL unit type. */
  readonly kind: number;
  readonly id: number;
  /** Id of the set that this one refers to: the SPS of a PPS, the VPS of an SPS. */
  readonly of: number;
}

interface KnownSet extends SetPlace {
  readonly nal: Buffer;
  readonly text: string;
}

const IDS = 256;
/** Longer than any parameter set: scaling lists take some 3 kB, the rest some hundred bytes. */
export const MAX_SET_BYTES = 8192;
/** More than a stream that uses every id; above it, the set unchanged for longest is removed. */
const MAX_BYTES = 64 * 1024;

/** Parameter sets of a stream, for pictures to refer to. */
export class ParameterSets {
  readonly #locate: (nal: Buffer) => SetPlace;
  readonly #byPlace = new Map<number, KnownSet>();
  /** Finds repeats without parsing: sets come with every key frame, and a publisher may send many. */
  readonly #byText = new Map<string, KnownSet>();
  #bytes = 0;
  /** Grows with each change. */
  version = 0;

  /** @param locate returns the kind and ids of a set, or throws a BitstreamError when malformed */
  constructor(locate: (nal: Buffer) => SetPlace) {
    this.#locate = locate;
  }

  /**
   * Adds sets, each replacing that with its kind and id.
   * @returns copies of the new ones, compared byte for byte
   * @throws BitstreamError when one is malformed; those before it are added
   */
  add(nals: readonly Buffer[]): Buffer[] {
    const fresh: Buffer[] = [];
    for (const nal of nals) {
      if (nal.length > MAX_SET_BYTES) throw new BitstreamError('a parameter set is too long');
      const text = nal.toString('latin1');
      if (this.#byText.has(text)) continue;
      // copied: a slice would keep the whole received buffer
      const known = { ...this.#locate(nal), nal: Buffer.from(nal), text };
      this.#put(known);
      fresh.push(known.nal);
    }
    return fresh;
  }

  get(kind: number, id: number): Buffer | undefined {
    return this.#byPlace.get(kind * IDS + id)?.nal;
  }

  /** Sets of a kind, in order of the first use of their ids. @param of id of the set that they refer to; any by default */
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

/** Parameter sets of a coded video sequence. */
export interface ActiveSets {
  /** In sending order. */
  readonly nals: readonly Buffer[];
  readonly sps: Buffer;
  /** Content of VPS and SPS without ids: equal where decoders are set up alike. */
  readonly meaning: string;
  /** Decoder configuration record for 4-byte lengths. */
  readonly record: Buffer;
}

/** Content of a parameter set without its ids. @param ids their bits, counted without emulation prevention; `to` is exclusive */
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

/** Reads `count` NAL units, each after its 2-byte length. */
export function readParameterSets(reader: ByteReader, count: number): Buffer[] {
  const nals: Buffer[] = [];
  for (let i = 0; i < count; i++) {
    const nal = reader.bytes(reader.u16());
    if (nal.length === 0) throw new BitstreamError('a parameter set is empty');
    nals.push(nal);
  }
  return nals;
}

/** Adds NAL units to `parts`, each after its 2-byte length. */
export function writeParameterSets(parts: Buffer[], nals: readonly Buffer[]): void {
  for (const nal of nals) {
    if (nal.length > 0xffff) throw new BitstreamError('a parameter set is too long');
    parts.push(Buffer.of(nal.length >> 8, nal.length & 0xff), nal);
  }
}
