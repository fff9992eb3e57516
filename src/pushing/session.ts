import { randomUUID } from 'node:crypto';
import { BitstreamError } from '../codecs/bits.ts';
import { Flow } from '../core/counters.ts';
import type { GopCache } from '../core/gop-cache.ts';
import { KeyGate } from '../core/key-gate.ts';
import type { Link } from '../core/links.ts';
import type { Packet } from '../core/packet.ts';
import { Reader, type ReaderLimits } from '../core/reader.ts';
import type { Session } from '../core/session.ts';
import type { OutputStream } from '../core/output-stream.ts';
import type { Track } from '../core/track.ts';
import type { FaultLog } from '../log/log.ts';
import { preferred, selectTracks, type TrackChoice } from '../tasks/track-selection.ts';
import { PushError } from './error.ts';
import type { Sink } from './sink.ts';

export interface PushSessionOptions {
  readonly output: OutputStream;
  readonly choice: TrackChoice;
  /** Tracks of the previous connection. */
  readonly before: readonly Track[];
  /** Packets of the stream from its last key frame on. */
  readonly start: GopCache | undefined;
  /** Leaves out media that are shown while the publisher is away. */
  readonly skipsStandby?: boolean;
  readonly faults: FaultLog;
  /** Called with the dropped tracks and the reasons each time tracks are chosen. */
  readonly onWarnings: (warnings: readonly string[]) => void;
  /** Called with the reason when it cannot continue. */
  readonly onFail: (error: PushError) => void;
}

/** Limits of a slow destination's queue; beyond them it continues at the next key frame. */
const LIMITS: ReaderLimits = { bytes: 16 * 1024 * 1024, seconds: 15 };
const CHECK_MS = 500;
/** Time after the first dropped packet in which a destination has to catch up, or the connection fails. */
const OVERLOAD_MS = 10_000;

/** A stream on one connection to a destination. It begins with a key frame. */
export class PushSession implements Session {
  readonly kind = 'push';
  readonly id = randomUUID();
  readonly createdTime = Date.now();
  readonly out = new Flow(this.createdTime);
  readonly #sink: Sink;
  readonly #options: PushSessionOptions;
  readonly #reader: Reader;
  readonly #gate = new KeyGate();
  readonly #undo: (() => void)[] = [];
  #tracks: readonly Track[] = [];
  #selected: ReadonlySet<number> = new Set();
  /** The destination has taken the tracks. */
  #taken: Promise<void> | undefined;
  #dropped = 0;
  /** First drop of packets since the queue was last empty; milliseconds of the monotonic clock. */
  #overloadedSince: number | undefined;

  constructor(sink: Sink, options: PushSessionOptions) {
    this.#sink = sink;
    this.#options = options;
    const { output } = options;
    const queue = output.queue('push', { seconds: LIMITS.seconds / 2 });
    const consumer = { packet: (packet: Packet) => this.#packet(packet) };
    this.#reader = new Reader(consumer, () => {}, LIMITS, output.counters, queue);
  }

  /**
   * Begins to send.
   * @returns where the destination is asked: resolves when it takes the tracks, rejects with PushError
   * @throws PushError when the stream has no track that the destination takes
   */
  start(): Promise<void> | undefined {
    const { output, start } = this.#options;
    const select = (): void => this.#reselect();
    if (this.#select().some(({ type }) => type === 'video')) this.#gate.silence();
    output.on('tracks', select);
    this.#undo.push(output.addSession(this), () => output.off('tracks', select));
    if (this.#sink.takesBursts) start?.replay((packet) => this.#push(packet));
    const source = output.read({ packet: (packet) => this.#push(packet) });
    const timer = setInterval(() => this.#check(performance.now()), CHECK_MS).unref();
    this.#undo.push(
      () => source.close(),
      () => clearInterval(timer),
    );
    return this.#taken;
  }

  get link(): Link | undefined {
    return this.#sink.link;
  }

  get tracks(): readonly Track[] {
    return this.#tracks;
  }

  /** To be called when the destination accepts more. */
  resume(): void {
    this.#reader.resume();
  }

  /** Fails the connection for the management API: a new one is made, as only `:stopPush` ends a push. */
  kick(): void {
    this.#options.onFail(new PushError('it was disconnected by the management API'));
  }

  /** Stops sending. Idempotent. */
  close(): void {
    for (const undo of this.#undo.splice(0)) undo();
    this.#reader.close();
  }

  #push(packet: Packet): void {
    if (this.#selected.has(packet.track.id)) this.#reader.push(packet);
  }

  #packet(packet: Packet): boolean {
    const { skipsStandby, output } = this.#options;
    if (skipsStandby === true && output.input.standby.has(packet)) return this.#skip();
    if (this.#gate.waits && !this.#gate.passes(packet)) return true;
    const { length } = packet.data;
    this.out.add(length, Date.now());
    this.#options.output.counters.sentTo('push', length);
    try {
      return this.#sink.write(packet);
    } catch (error) {
      if (!(error instanceof BitstreamError)) throw error;
      this.#options.faults.count(`not pushed: ${error.message}`);
      return true;
    }
  }

  /** Continues with a key frame. */
  #skip(): true {
    if (this.#tracks.some(({ type }) => type === 'video')) this.#gate.silence();
    return true;
  }

  #reselect(): void {
    const before = this.#tracks;
    try {
      if (!this.#gate.retrack(this.#select(), before)) this.#reader.videoGone();
    } catch (error) {
      if (!(error instanceof PushError)) throw error;
      this.#options.onFail(error);
    }
  }

  /** @throws PushError when there is no track, or the configuration of one is malformed */
  #select(): readonly Track[] {
    const { output, choice, onWarnings } = this.#options;
    const before = this.#tracks.length > 0 ? this.#tracks : this.#options.before;
    const selection = selectTracks(output.tracks, choice, (track) => this.#sink.objection(track), before);
    const tracks = this.#sink.isSingle ? oneOfEach(selection.tracks, before) : selection.tracks;
    const surplus = selection.tracks.filter((track) => !tracks.includes(track));
    onWarnings([
      ...selection.warnings,
      ...surplus.map(({ id, name, type }) => `track ${id} (${name}) is left out: there is another ${type} track`),
    ]);
    if (!tracks.some(({ type }) => type === 'video' || type === 'audio'))
      throw new PushError('the stream has no track that can be pushed there');
    const isSame = tracks.length === this.#tracks.length && tracks.every((track, i) => track === this.#tracks[i]);
    if (isSame) return tracks;
    this.#tracks = tracks;
    this.#selected = new Set(tracks.map(({ id }) => id));
    try {
      this.#taken = this.#sink.setTracks(tracks) ?? undefined;
      this.#taken?.catch((error: unknown) => this.#options.onFail(error as PushError));
    } catch (error) {
      if (!(error instanceof BitstreamError)) throw error;
      throw new PushError(`the configuration of a track cannot be sent: ${error.message}`);
    }
    return tracks;
  }

  #check(now: number): void {
    const { dropped, queuedBytes } = this.#reader;
    if (queuedBytes === 0) this.#overloadedSince = undefined;
    else if (dropped > this.#dropped) this.#overloadedSince ??= now;
    this.#dropped = dropped;
    if (this.#overloadedSince !== undefined && now - this.#overloadedSince >= OVERLOAD_MS)
      this.#options.onFail(new PushError(`the destination has been too slow for ${OVERLOAD_MS / 1000} s`));
  }
}

function oneOfEach(tracks: readonly Track[], before: readonly Track[]): readonly Track[] {
  const types = new Set(tracks.map(({ type }) => type));
  return [...types].flatMap(
    (type) =>
      preferred(
        tracks.filter((track) => track.type === type),
        before,
      ) ?? [],
  );
}
