import { ascii, u32, u64 } from '../../containers/fmp4/box.ts';
import { SourceError, type ByteSource } from '../byte-source.ts';
import { lastAtMost } from '../clip/marks.ts';
import { damagedTs } from './error.ts';
import { samplesReader, type CarriedForm } from './forms.ts';
import { UnitReader } from './unit-reader.ts';

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
    if (offset < 0 || length < 0 || offset + length > this.size)
      throw new SourceError(`bytes ${offset} to ${offset + length} of ${this.size} were asked for`);
    const { media, movie } = this.#part;
    const out = Buffer.allocUnsafeSlow(length);
    const end = offset + length;
    place(out, offset, this.#head, 0);
    place(out, offset, movie, MEDIA_AT + media);
    const { first } = this.#part.pieces;
    for (let at = Math.max(offset, MEDIA_AT); at < Math.min(end, MEDIA_AT + media);) {
      const index = lastAtMost(first, at - MEDIA_AT);
      const piece = await this.#piece(index, signal);
      const begin = MEDIA_AT + (first[index] as number);
      place(out, offset, piece, begin);
      at = begin + piece.length;
    }
    return out;
  }

  async #piece(index: number, signal?: AbortSignal): Promise<Buffer> {
    if (this.#last?.index === index) return this.#last.bytes;
    const { pieces, media } = this.#part;
    const from = pieces.from[index] as number;
    const bytes = this.#samples(await this.#file.read(from, (pieces.to[index] as number) - from, signal), index);
    const wanted = (pieces.first[index + 1] ?? media) - (pieces.first[index] as number);
    if (bytes.length !== wanted)
      throw damagedTs(`${bytes.length} bytes of frames are where there were ${wanted}, at byte ${from}`);
    this.#last = { index, bytes };
    return bytes;
  }

  #samples(bytes: Buffer, index: number): Buffer {
    const keepsSets = this.#part.pieces.keepsSets[index] === 1;
    const lanes = new Map(
      this.#part.lanes.map(({ pid, form, header }) => [
        pid,
        {
          samples: [] as Buffer[],
          read: samplesReader(form, header === undefined ? undefined : Buffer.from(header, 'hex'), keepsSets),
        },
      ]),
    );
    const reader = new UnitReader({
      unit: ({ pid, payload }) => {
        const lane = lanes.get(pid);
        lane?.samples.push(...lane.read(payload));
      },
    });
    for (const { pid } of this.#part.lanes) reader.want(pid, 'whole');
    reader.push(bytes, this.#part.pieces.from[index] as number);
    reader.end();
    return Buffer.concat([...lanes.values()].flatMap(({ samples }) => samples));
  }
}

/** Copies what is in both. @param begin position of `from` @param offset position of `to` */
function place(to: Buffer, offset: number, from: Buffer, begin: number): void {
  const start = Math.max(offset, begin);
  const end = Math.min(offset + to.length, begin + from.length);
  if (start < end) from.copy(to, start - offset, start - begin, end - begin);
}
