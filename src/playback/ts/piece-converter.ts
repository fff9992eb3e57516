import { damagedTs } from './error.ts';
import { isVideo, samplesReader } from './forms.ts';
import type { TsPartLane } from './part.ts';
import { UnitReader } from './unit-reader.ts';

interface Lane {
  readonly read: (payload: Buffer) => readonly Buffer[];
  readonly samples: Buffer[];
}

/** Converts pieces of a part of an MPEG-TS file to samples, in memory that it uses again: that of a piece is some hundred pages. */
export class PieceConverter {
  readonly #lanes = new Map<number, Lane>();
  #reader: UnitReader | undefined;
  #memory: Buffer = Buffer.alloc(0);
  /** Bytes of samples of the first lane, if that is video: they are written where they belong. */
  #used = 0;

  /** @param keepsSets parameter sets of video stay in its samples */
  constructor(lanes: readonly TsPartLane[], keepsSets: boolean) {
    for (const [index, { pid, form, header }] of lanes.entries()) {
      const bytes = header === undefined ? undefined : Buffer.from(header, 'hex');
      const memory = index === 0 && isVideo(form) ? (length: number): Buffer => this.#take(length) : undefined;
      this.#lanes.set(pid, { read: samplesReader(form, bytes, keepsSets, memory), samples: [] });
    }
  }

  /**
   * @param bytes whole PES packets
   * @param position of these in the file
   * @param wanted bytes of their samples
   * @returns samples of one lane after those of another, valid until the next call
   * @throws ClipError if the file is not what it was when its index was made
   */
  convert(bytes: Buffer, position: number, wanted: number): Buffer {
    if (this.#memory.length < wanted) this.#memory = Buffer.allocUnsafeSlow(Math.ceil(wanted * 1.25));
    this.#used = 0;
    for (const { samples } of this.#lanes.values()) samples.length = 0;
    const reader = (this.#reader ??= this.#open());
    // one that has failed may be in the middle of a packet
    this.#reader = undefined;
    reader.push(bytes, position);
    reader.end();
    this.#reader = reader;
    let end = this.#used;
    for (const { samples } of this.#lanes.values()) {
      for (const sample of samples) {
        sample.copy(this.#memory, end);
        end += sample.length;
      }
    }
    if (end !== wanted) throw damagedTs(`${end} bytes of frames are where there were ${wanted}, at byte ${position}`);
    return this.#memory.subarray(0, end);
  }

  #open(): UnitReader {
    const reader = new UnitReader({
      unit: ({ pid, payload }) => {
        const lane = this.#lanes.get(pid);
        const samples = lane?.read(payload) ?? [];
        for (const sample of samples) if (sample.buffer !== this.#memory.buffer) lane?.samples.push(sample);
      },
    });
    for (const pid of this.#lanes.keys()) reader.want(pid, 'whole');
    return reader;
  }

  #take(length: number): Buffer {
    const at = this.#used;
    // more than there should be, of a file that is another one
    if (at + length > this.#memory.length) return Buffer.allocUnsafe(length);
    this.#used = at + length;
    return this.#memory.subarray(at, at + length);
  }
}
