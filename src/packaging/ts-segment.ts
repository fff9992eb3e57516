import { setImmediate as nextTurn } from 'node:timers/promises';
import type { TsMuxer } from '../containers/mpegts/muxer.ts';
import { writePlanned, type PlannedUnit } from '../containers/mpegts/planned-unit.ts';
import { BitstreamError } from '../codecs/bits.ts';
import type { FaultLog } from '../log/log.ts';
import type { FrameRun } from './frame-run.ts';
import type { Segment } from './segment.ts';
import { eventsOf, unitsOf } from './ts-units.ts';

/** Bytes written in one turn of the event loop: a segment of a high bitrate has forty times as many. */
const TURN_BYTES = 1024 * 1024;

/** Facts of a segment for its playlist. */
export interface TsFacts {
  readonly msn: number;
  readonly discontinuity: boolean;
  /** Milliseconds since the epoch. */
  readonly wallClock: number;
  /** Seconds. */
  readonly duration: number;
}

/**
 * A segment in MPEG-TS. Its packets, and so its length, are planned at construction; the bytes are written on the first
 * request, over several turns of the event loop where they are many.
 */
export class TsSegment implements TsFacts {
  readonly msn: number;
  readonly discontinuity: boolean;
  readonly wallClock: number;
  readonly duration: number;
  readonly bytes: number;
  readonly #runs: readonly FrameRun[];
  #planned: readonly PlannedUnit[];
  #written = 0;
  readonly #body: Buffer[] = [];
  #writing: Promise<void> | undefined;

  /**
   * @param of the segment of each track
   * @param muxer that has those tracks; tracks of events are added to it
   */
  constructor(facts: TsFacts, of: readonly Segment<FrameRun>[], muxer: TsMuxer, faults: FaultLog) {
    this.msn = facts.msn;
    this.discontinuity = facts.discontinuity;
    this.wallClock = facts.wallClock;
    this.duration = facts.duration;
    const tracks = of.map(({ init, parts }) => ({ track: init.track, runs: parts.map(({ data }) => data) }));
    this.#runs = tracks.flatMap(({ runs }) => runs);
    for (const run of this.#runs) run.keep();
    muxer.addTracks(eventsOf(tracks).map(({ track }) => track));
    muxer.repeatTables();
    const planned: PlannedUnit[] = [];
    for (const unit of unitsOf(tracks)) {
      try {
        const place = muxer.plan(unit);
        if (place !== undefined) planned.push(place);
      } catch (error) {
        if (!(error instanceof BitstreamError)) throw error;
        faults.count(`HLS: dropped a frame that cannot be carried in MPEG-TS: ${error.message}`);
      }
    }
    this.#planned = planned;
    this.bytes = planned.reduce((sum, { bytes }) => sum + bytes, 0);
  }

  /** Whether the segment has no media. */
  get gap(): boolean {
    return this.bytes === 0;
  }

  /** Bytes of the segment. Writes at once what `write` has not yet written, then frees the frames. */
  get body(): readonly Buffer[] {
    while (this.#isLeft) this.#writeSome();
    return this.#body;
  }

  /** Writes the bytes over several turns; undefined if nothing is left, or one turn is enough. */
  write(): Promise<void> | undefined {
    if (!this.#isLeft || this.bytes <= TURN_BYTES) return undefined;
    return (this.#writing ??= this.#writeInTurns());
  }

  get #isLeft(): boolean {
    return this.#written < this.#planned.length;
  }

  async #writeInTurns(): Promise<void> {
    while (this.#isLeft) {
      this.#writeSome();
      await nextTurn();
    }
  }

  #writeSome(): void {
    const planned = this.#planned;
    let bytes = 0;
    let end = this.#written;
    while (end < planned.length && bytes < TURN_BYTES) bytes += (planned[end++] as PlannedUnit).bytes;
    // not from the shared pool: a slice would keep the whole pool alive while the segment is listed
    const out = Buffer.allocUnsafeSlow(bytes);
    let at = 0;
    for (const unit of planned.slice(this.#written, end)) at = writePlanned(unit, out, at);
    this.#body.push(out);
    this.#written = end;
    if (this.#isLeft) return;
    this.#planned = [];
    for (const run of this.#runs) run.release();
  }
}
