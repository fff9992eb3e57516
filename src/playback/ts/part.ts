import { ascii, u32, u64 } from '../../containers/fmp4/box.ts';
import { readInto, SourceError, type ByteSource } from '../byte-source.ts';
import { lastAtMost } from '../clip/marks.ts';
import { PIECE_BYTES, pieceMemory } from '../piece-memory.ts';
import type { CarriedForm } from './forms.ts';
import { PieceConverter } from './piece-converter.ts';

/** Bytes in front of the media: the head of `mdat` with a size of 64 bits. */
export const MEDIA_AT = 16;

/** A stream whose samples are among the media. */
export interface TsPartLane {
  readonly pid: number;
  readonly form: CarriedForm;
  /** Header of the stream from its PMT, in hexadecimal digits. */
  readonly header?: string;
}

/** Pieces of the media, a column each. */
export interface TsPieces {
  /** Bytes of the file from `from` to `to`: whole PES packets. */
  readonly from: Float64Array;
  readonly to: Float64Array;
  /** Position of the piece in the media: samples of one lane after those of another. */
  readonly first: Float64Array;
  /** 1: parameter sets of video stay in its samples. */
  readonly keepsSets: Uint8Array;
}

/** Index of a part of an MPEG-TS file whose formats do not change: what makes an MP4 file of it. */
export interface TsPart {
  /** Seconds from the first frame of the file to that of the part. */
  readonly begin: number;
  readonly lanes: readonly TsPartLane[];
  readonly pieces: TsPieces;
  /** Bytes of the media. */
  readonly media: number;
  /** `moov`. */
  readonly movie: Buffer;
}

/** Bytes that an index takes in memory. */
export function indexBytes(parts: readonly TsPart[]): number {
  return parts.reduce((sum, { movie, pieces: { from } }) => sum + movie.length + from.length * 25 + 1024, 0);
}

/**
 * A part of an MPEG-TS file as an MP4 file: `mdat`, whose bytes are made from the file when they are read, and `moov`.
 * Keeps the piece that was read last.
 */
export class TsPartSource implements ByteSource {
  readonly size: number;
  readonly #file: ByteSource;
  readonly #part: TsPart;
  readonly #head: Buffer;
  /** By whether parameter sets stay. */
  readonly #converters = new Map<boolean, PieceConverter>();
  /** In memory of a converter. */
  #last: { readonly index: number; readonly bytes: Buffer } | undefined;

  /** @param file that the part is of */
  constructor(file: ByteSource, part: TsPart) {
    this.#file = file;
    this.#part = part;
    this.#head = Buffer.concat([u32(1), ascii('mdat'), u64(MEDIA_AT + part.media)]);
    this.size = MEDIA_AT + part.media + part.movie.length;
  }

  /** @throws ClipError if the file is not what it was when its index was made; as `ByteSource.read` */
  async read(offset: number, length: number, signal?: AbortSignal): Promise<Buffer> {
    this.#demandIn(offset, length);
    const out = Buffer.allocUnsafeSlow(length);
    await this.readInto(offset, out, signal);
    return out;
  }

  async readInto(offset: number, into: Buffer, signal?: AbortSignal): Promise<void> {
    this.#demandIn(offset, into.length);
    const { media, movie } = this.#part;
    const end = offset + into.length;
    place(into, offset, this.#head, 0);
    place(into, offset, movie, MEDIA_AT + media);
    const { first } = this.#part.pieces;
    for (let at = Math.max(offset, MEDIA_AT); at < Math.min(end, MEDIA_AT + media);) {
      const index = lastAtMost(first, at - MEDIA_AT);
      const begin = MEDIA_AT + (first[index] as number);
      const use = (piece: Buffer): void => {
        place(into, offset, piece, begin);
        at = begin + piece.length;
      };
      await this.#piece(index, use, signal);
    }
  }

  #demandIn(offset: number, length: number): void {
    if (offset < 0 || length < 0 || offset + length > this.size)
      throw new SourceError(`bytes ${offset} to ${offset + length} of ${this.size} were asked for`);
  }

  /** Reads a piece. @param use takes it before it may be replaced */
  async #piece(index: number, use: (bytes: Buffer) => void, signal?: AbortSignal): Promise<void> {
    if (this.#last?.index === index) return use(this.#last.bytes);
    const { pieces, media, lanes } = this.#part;
    const from = pieces.from[index] as number;
    const length = (pieces.to[index] as number) - from;
    const memory = length <= PIECE_BYTES ? pieceMemory.take() : Buffer.allocUnsafeSlow(length);
    const bytes = memory.subarray(0, length);
    await readInto(this.#file, from, bytes, signal);
    const keepsSets = pieces.keepsSets[index] === 1;
    let converter = this.#converters.get(keepsSets);
    if (converter === undefined) this.#converters.set(keepsSets, (converter = new PieceConverter(lanes, keepsSets)));
    this.#last = undefined;
    const wanted = (pieces.first[index + 1] ?? media) - (pieces.first[index] as number);
    const samples = converter.convert(bytes, from, wanted);
    pieceMemory.give(memory);
    this.#last = { index, bytes: samples };
    use(samples);
  }
}

/** Copies what is in both. @param begin position of `from` @param offset position of `to` */
function place(to: Buffer, offset: number, from: Buffer, begin: number): void {
  const start = Math.max(offset, begin);
  const end = Math.min(offset + to.length, begin + from.length);
  if (start < end) from.copy(to, start - offset, start - begin, end - begin);
}
