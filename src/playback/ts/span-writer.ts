import { finalIndex } from '../../containers/fmp4/final-index.ts';
import { trackBox, type TrackPlace } from '../../containers/fmp4/movie.ts';
import { CLOCK } from '../../containers/mpegts/stream-types.ts';
import type { TsLane, TsSamples } from './lanes.ts';
import { MEDIA_AT, type TsPart, type TsPartLane } from './part.ts';
import { TrackTable } from './track-table.ts';

/** A piece ends at a key frame after this many seconds, at the latest after twice as many, or so many bytes of the file. */
const PIECE_SECONDS = 0.5;
const PIECE_BYTES = 1024 * 1024;

interface Entry {
  readonly lane: TsLane;
  readonly table: TrackTable;
}

/** Writes the index of a part of a file whose formats do not change. */
export class SpanWriter {
  readonly #entries = new Map<TsLane, Entry>();
  readonly #pieces = { from: [] as number[], to: [] as number[], first: [] as number[], keepsSets: [] as number[] };
  #open: { readonly from: number; readonly since: number; readonly keepsSets: boolean } | undefined;
  #media = 0;
  #samples = 0;
  readonly #begin: number;

  /** @param begin seconds from the first frame of the file to that of the part */
  constructor(begin: number) {
    this.#begin = begin;
  }

  /** Samples so far. */
  get samples(): number {
    return this.#samples;
  }

  table(lane: TsLane): TrackTable | undefined {
    return this.#entries.get(lane)?.table;
  }

  /**
   * @param at position of the PES packet in the file
   * @param leads whether a fragment may begin here: at a key frame of the leading track
   */
  add(lane: TsLane, samples: TsSamples, at: number, dts: number, pts: number, leads: boolean): void {
    const open = this.#open;
    const seconds = open === undefined ? 0 : (dts - open.since) / CLOCK.timebase.den;
    const isDue =
      open !== undefined &&
      (seconds >= 2 * PIECE_SECONDS ||
        (leads && seconds >= PIECE_SECONDS) ||
        at - open.from >= PIECE_BYTES ||
        // only video has sets
        (lane.stream.kind === 'video' && open.keepsSets !== samples.keepsSets));
    if (isDue) this.close(at);
    this.#open ??= { from: at, since: dts, keepsSets: samples.keepsSets };
    let entry = this.#entries.get(lane);
    if (entry === undefined) {
      entry = { lane, table: new TrackTable(samples.track, dts, () => this.#origin) };
      this.#entries.set(lane, entry);
    }
    entry.table.add(samples, dts, pts);
    this.#samples += samples.samples.length;
  }

  /** Ends the open piece: what follows in the file is not of this part, or of another piece. */
  close(to: number): void {
    const open = this.#open;
    if (open === undefined) return;
    this.#open = undefined;
    const first = this.#media;
    for (const { table } of this.#entries.values()) {
      const { bytes } = table;
      table.close(MEDIA_AT + this.#media);
      this.#media += bytes;
    }
    if (this.#media === first) return;
    const { from, to: ends, first: firsts, keepsSets } = this.#pieces;
    from.push(open.from);
    ends.push(to);
    firsts.push(first);
    keepsSets.push(open.keepsSets ? 1 : 0);
  }

  /** @param order of streams in the program @param to end of the part in the file @returns undefined for a part without frames */
  end(to: number, order: readonly TsLane[]): TsPart | undefined {
    this.close(to);
    const entries = [...this.#entries.values()];
    for (const { table } of entries) table.end();
    const used = entries.filter(({ table }) => table.table.samples > 0);
    if (used.length === 0) return undefined;
    const place = ({ lane }: Entry): number => (order.includes(lane) ? order.indexOf(lane) : order.length);
    const tracks = [...used]
      .sort((one, other) => place(one) - place(other))
      .map(({ table: { track, table } }, index) => ({
        id: index + 1,
        table,
        trak: (where: TrackPlace) => trackBox(track, where),
      }));
    const end = MEDIA_AT + this.#media;
    const { movie } = finalIndex(tracks, tracks.length + 1, 0, end);
    const lanes = entries.map(({ lane: { stream } }): TsPartLane => {
      const { pid, form, header } = stream;
      return { pid, form, ...(header !== undefined && { header: header.toString('hex') }) };
    });
    const { from, to: ends, first, keepsSets } = this.#pieces;
    const pieces = {
      from: Float64Array.from(from),
      to: Float64Array.from(ends),
      first: Float64Array.from(first),
      keepsSets: Uint8Array.from(keepsSets),
    };
    return { begin: this.#begin, lanes, pieces, media: this.#media, movie };
  }

  get #origin(): number {
    return Math.min(...Array.from(this.#entries.values(), ({ table }) => table.first));
  }
}
