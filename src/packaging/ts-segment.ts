import { setImmediate as nextTurn } from 'node:timers/promises';
import type { TsMuxer } from '../containers/mpegts/muxer.ts';
import { writePlanned, type PlannedUnit } from '../containers/mpegts/planned-unit.ts';
import { BitstreamError } from '../codecs/bits.ts';
import type { FaultLog } from '../log/log.ts';
import type { Run } from './run.ts';
import type { Segment } from './segment.ts';
import { eventsOf, unitsOf } from './ts-units.ts';

/** What is written in one turn: a segment of a stream that is rich has forty times as much. */
const TURN_BYTES = 1024 * 1024;

/** Facts of a segment that a playlist tells. */
export interface TsFacts {
  readonly msn: number;
  readonly discontinuity: boolean;
  /** Milliseconds since the epoch. */
  readonly wallClock: number;
  /** Seconds. */
  readonly duration: number;
}

/**
 * A segment in MPEG-TS. Its place in the stream, and so its length, is decided when it is made; the bytes are written when
 * they are first asked for, with turns of others in between where they are many.
 */
export class TsSegment implements TsFacts {
  readonly msn: number;
  readonly discontinuity: boolean;
  readonly wallClock: number;
  readonly duration: number;
  readonly bytes: number;
  readonly #runs: readonly Run[];
  #planned: readonly PlannedUnit[];
  /** Units that are written. */
  #written = 0;
  readonly #body: Buffer[] = [];
  #writing: Promise<void> | undefined;

  /**
   * @param of what of each track is in it
   * @param muxer that has those tracks; it is given the tracks of events that it does not have
   */
  constructor(facts: TsFacts, of: readonly Segment<Run>[], muxer: TsMuxer, faults: FaultLog) {
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

  /** Nothing came in its time. */
  get gap(): boolean {
    return this.bytes === 0;
  }

  /** Written once; the frames are let go of then. What `write` has not come to is written at once. */
  get body(): readonly Buffer[] {
    while (this.#isLeft) this.#writeSome();
    return this.#body;
  }

  /** Writes it in several turns; undefined when there is nothing left that would take more than one. */
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
    // its own memory: a slice of the shared pool would keep the whole pool as long as the window lasts
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
