import { randomUUID } from 'node:crypto';
import { BitstreamError } from '../../codecs/bits.ts';
import { Flow } from '../../core/counters.ts';
import type { GopCache } from '../../core/gop-cache.ts';
import { KeyGate } from '../../core/key-gate.ts';
import type { Packet } from '../../core/packet.ts';
import { Reader, type ReaderLimits } from '../../core/reader.ts';
import type { Session } from '../../core/session.ts';
import type { OutputStream } from '../../core/stream.ts';
import type { Track } from '../../core/track.ts';
import type { FaultLog, Logger } from '../../log.ts';
import { selectTracks, type TrackChoice } from '../track-selection.ts';
import { PushError } from './error.ts';
import type { Sink } from './sink.ts';

export interface PushSessionOptions {
  readonly output: OutputStream;
  readonly choice: TrackChoice;
  /** What the stream brought from its last key frame on. */
  readonly start: GopCache | undefined;
  readonly log: Logger;
  readonly faults: FaultLog;
  /** Called with why it cannot go on. */
  readonly onFail: (error: PushError) => void;
}

/** What a slow destination may be behind; then it goes on at the next key frame. */
const LIMITS: ReaderLimits = { bytes: 16 * 1024 * 1024, seconds: 15 };
const CHECK_MS = 500;
/** A destination that packets are dropped for as long as this is overloaded. */
const OVERLOAD_MS = 10_000;
/** Packets are dropped again and again: it has not recovered in between. */
const RECOVERED_MS = 5000;

/** A stream on one connection to a destination. It begins with a key frame. */
export class PushSession implements Session {
  readonly kind = 'push';
  readonly id = randomUUID();
  readonly createdTime = Date.now();
  readonly out = new Flow(this.createdTime);
  readonly #sink: Sink;
  readonly #options: PushSessionOptions;
  readonly #reader = new Reader({ packet: (packet) => this.#packet(packet) }, () => {}, LIMITS);
  readonly #gate = new KeyGate();
  readonly #undo: (() => void)[] = [];
  #selected: ReadonlySet<number> = new Set();
  #warnings: readonly string[] = [];
  #dropped = 0;
  /** Since when packets are dropped, and when the last one was; milliseconds of the monotonic clock. */
  #overload: { readonly since: number; readonly last: number } | undefined;

  constructor(sink: Sink, options: PushSessionOptions) {
    this.#sink = sink;
    this.#options = options;
  }

  /** @throws PushError when the stream has no track that the destination takes */
  start(): void {
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
  }

  /** The destination takes more. */
  resume(): void {
    this.#reader.resume();
  }

  /** The management API disconnects it: a new connection is made, as only `:stopPush` ends a push. */
  kick(): void {
    this.#options.onFail(new PushError('it was disconnected by the management API'));
  }

  /** Sends nothing more. Idempotent. */
  close(): void {
    for (const undo of this.#undo.splice(0)) undo();
    this.#reader.close();
  }

  #push(packet: Packet): void {
    if (this.#selected.has(packet.track.id)) this.#reader.push(packet);
  }

  #packet(packet: Packet): boolean {
    if (this.#gate.waits && !this.#gate.passes(packet)) return true;
    const { length } = packet.data;
    this.out.add(length, Date.now());
    this.#options.output.counters.sent(length);
    try {
      return this.#sink.write(packet);
    } catch (error) {
      if (!(error instanceof BitstreamError)) throw error;
      this.#options.faults.count(`not pushed: ${error.message}`);
      return true;
    }
  }

  #reselect(): void {
    try {
      const tracks = this.#select();
      if (tracks.every(({ type }) => type !== 'video')) this.#reader.videoGone();
    } catch (error) {
      if (!(error instanceof PushError)) throw error;
      this.#options.onFail(error);
    }
  }

  /** @throws PushError when there is no track */
  #select(): readonly Track[] {
    const { output, choice, log } = this.#options;
    const selection = selectTracks(output.tracks, choice, (track) => this.#sink.objection(track));
    const { tracks, surplus } = this.#sink.isSingle ? firstOfEach(selection.tracks) : { ...selection, surplus: [] };
    const warnings = [
      ...selection.warnings,
      ...surplus.map(({ id, name, type }) => `track ${id} (${name}) is left out: there is another ${type} track`),
    ];
    for (const warning of warnings) if (!this.#warnings.includes(warning)) log.warn(warning);
    this.#warnings = warnings;
    if (!tracks.some(({ type }) => type === 'video' || type === 'audio'))
      throw new PushError('the stream has no track that can be pushed there');
    this.#selected = new Set(tracks.map(({ id }) => id));
    this.#sink.setTracks(tracks);
    return tracks;
  }

  #check(now: number): void {
    const { dropped } = this.#reader;
    if (dropped > this.#dropped) this.#overload = { since: this.#overload?.since ?? now, last: now };
    this.#dropped = dropped;
    if (this.#overload === undefined) return;
    const { since, last } = this.#overload;
    if (now - last > RECOVERED_MS) this.#overload = undefined;
    else if (now - since >= OVERLOAD_MS)
      this.#options.onFail(new PushError(`the destination has been too slow for ${OVERLOAD_MS / 1000} s`));
  }
}

function firstOfEach(tracks: readonly Track[]): { readonly tracks: readonly Track[]; readonly surplus: Track[] } {
  const first = new Map<Track['type'], Track>();
  const surplus: Track[] = [];
  for (const track of tracks) {
    if (first.has(track.type)) surplus.push(track);
    else first.set(track.type, track);
  }
  return { tracks: [...first.values()], surplus };
}
