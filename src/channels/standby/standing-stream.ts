import type { StandbyConfig } from '../../config/model.ts';
import { InputStream } from '../../core/input-stream.ts';
import { KeyGate } from '../../core/key-gate.ts';
import type { Packet } from '../../core/packet.ts';
import type { Source } from '../../core/source.ts';
import { isMedia, type MediaTrack, type Track } from '../../core/track.ts';
import { asJson } from '../../lib/as-json.ts';
import { Watchdog } from '../../lib/watchdog.ts';
import { within } from '../../lib/within.ts';
import type { Logger } from '../../log/log.ts';
import { ChannelWriter } from '../scheduled/channel-writer.ts';
import type { ChannelClock } from '../scheduled/clock.ts';
import type { ItemUnit } from '../scheduled/item-source.ts';
import { FIRST, FORMER, readFormer, writeFormer, type Former } from './former.ts';
import { framesPerSecond, rateOf } from './slate-command.ts';
import { SlateShow } from './slate-show.ts';
import type { Slate, SlateWish } from './slates.ts';

/** Media of a publisher before its frame rate is taken for known, and the slate is encoded. */
const PREPARE_AFTER_MS = 2000;
/** A publisher that leaves earlier: time for the slate to be encoded, in which nothing is shown. */
const READY_WITHIN_MS = 10_000;
/** Time for what was held up on its way to come, when a publisher that was silent goes on. */
const HELD_UP_MS = 300;
/** Pause between looks whether a slate may still be shown. */
const LOOK_MS = 1000;

/**
 * Phase of a stream. Only these transitions exist:
 *
 *     live -> waiting    the publisher is away, and the slate is not open yet (`#leave`)
 *     waiting -> slate   it is (`#show`)
 *     waiting -> live    the publisher is silent, and there is no slate: its next packets are shown (`#giveUp`)
 *     waiting, slate -> live   the first key frame of a publisher (`#return`)
 *     any -> closed      the stream has ended
 */
type Phase = { readonly kind: 'live' | 'waiting' | 'closed' } | { readonly kind: 'slate'; readonly show: SlateShow };

interface Publisher {
  /** Stream that its provider writes into. */
  readonly input: InputStream;
  /** Holds back what cannot be decoded without frames before it. */
  readonly gate: KeyGate;
  tracks: readonly Track[];
  /** Monotonic milliseconds at time 0 of its input; undefined before it was shown. */
  offset: number | undefined;
  /** Set while it is silent, and until it is shown again. */
  silence: Silence | undefined;
}

/** Silence of a publisher that is still connected. */
interface Silence {
  /** Monotonic milliseconds until which its packets are taken for old; undefined while none has come. */
  isOldUntil: number | undefined;
  /** A key frame was asked for. */
  isOver: boolean;
}

/** A slate for the tracks of a publisher, encoded or about to be. */
interface Prepared {
  readonly tracks: readonly MediaTrack[];
  readonly frameMs: number;
  readonly slate: Promise<Slate>;
}

export interface StandingStreamOptions {
  readonly stream: InputStream;
  readonly config: StandbyConfig;
  readonly clock: ChannelClock;
  /** Encodes a slate. @throws MediaError */
  readonly prepare: (wish: SlateWish) => Promise<Slate>;
  /** Whether the stream ends with its publisher at present, as while the node drains. */
  readonly isOff: () => boolean;
  /** Called once, when the stream has ended and no node is to show a slate. */
  readonly onOver?: () => void;
  readonly log: Logger;
}

/** One stream whose publishers come and go: between them it shows a slate, on one timeline. */
export class StandingStream {
  readonly stream: InputStream;
  readonly #options: StandingStreamOptions;
  readonly #writer: ChannelWriter;
  #phase: Phase = { kind: 'live' };
  #publisher: Publisher | undefined;
  #silence: Watchdog | undefined;
  #prepareTimer: NodeJS.Timeout | undefined;
  #endTimer: NodeJS.Timeout | undefined;
  #lookTimer: NodeJS.Timeout | undefined;
  #isOver = false;
  #isStopped = false;
  #prepared: Prepared | undefined;
  /** Publisher that was shown last; before the first one here, that of another node. */
  #last: Publisher | undefined;
  #former: Former | undefined;
  /** Duration of a video frame. */
  #frameMs = 0;

  constructor(options: StandingStreamOptions) {
    const { stream } = options;
    this.stream = stream;
    this.#options = options;
    this.#writer = new ChannelWriter(stream);
    stream.on('keyWanted', () => this.#publisher?.input.wantKey());
    stream.once('close', (reason) => this.#close(reason));
  }

  /** Whether something else than a publisher is shown, or about to be. */
  get standsBy(): boolean {
    return this.#phase.kind === 'waiting' || this.#phase.kind === 'slate';
  }

  /** Whether no node is to show a slate: the stream has ended for good, or the slate was stopped. */
  get isOver(): boolean {
    return this.#isOver || this.#isStopped;
  }

  /** Shows the slate of a stream that has no publisher, in the settings of the last one elsewhere. Called before any other method. */
  stand(): void {
    const { stream } = this;
    this.#former = readFormer(stream.continuity.inherited(FORMER)) ?? FIRST;
    stream.replaceSource(this.#former.source);
    this.#wait('there is no publisher');
  }

  /** Lets a publisher have the stream in place of the one before. @returns the stream that it writes into, and closes when it leaves */
  take(source: Source): InputStream {
    const { stream } = this;
    const input = new InputStream(stream.name, source, stream.counters, {
      continuity: stream.continuity.forPublisher(),
    });
    const publisher: Publisher = { input, gate: new KeyGate(), tracks: [], offset: undefined, silence: undefined };
    if (stream.closed) {
      input.close('the stream has ended');
      return input;
    }
    const former = this.#publisher;
    this.#publisher = publisher;
    former?.input.close('another publisher took over the name');
    if (stream.tracks.length > 0) publisher.gate.silence();
    const uncount = input.counters.source(source.kind);
    stream.replaceSource(source);
    input.on('tracks', (tracks) => this.#retrack(publisher, tracks));
    input.on('trouble', (code, description) => stream.emit('trouble', code, description));
    input.on('handsOver', () => (stream.handsOver = input.handsOver));
    input.read({ packet: (packet) => this.#packet(publisher, packet) });
    input.once('close', (reason) => {
      uncount();
      this.#gone(publisher, reason);
    });
    return input;
  }

  /** From now on the stream ends with its publisher, at once if that is away. */
  stop(): void {
    this.#isStopped = true;
    if (this.standsBy && this.#publisher === undefined) this.#endForGood('the slate was stopped');
  }

  /** Undoes `stop`. */
  resume(): void {
    this.#isStopped = false;
  }

  /** Ends the stream if it has no publisher. */
  endStandby(reason: string): void {
    if (this.standsBy && this.#publisher === undefined) this.stream.close(reason);
  }

  #retrack(publisher: Publisher, tracks: readonly Track[]): void {
    const before = publisher.tracks;
    publisher.tracks = tracks;
    if (publisher.gate.waits || publisher.offset !== undefined) publisher.gate.retrack(tracks, before);
    if (this.#publisher !== publisher || !this.#isShown(publisher)) return;
    const isMissing = before.some(({ id }) => !tracks.some((track) => track.id === id));
    if (isMissing) this.#writer.begin(tracks, publisher.offset as number, this.#writer.end);
    this.#prepareLater();
  }

  #isShown({ offset }: Publisher): boolean {
    return this.#phase.kind === 'live' && offset !== undefined;
  }

  #packet(publisher: Publisher, packet: Packet): void {
    if (this.#publisher !== publisher || this.#phase.kind === 'closed') return;
    this.#silence?.heard();
    if (publisher.silence !== undefined && this.#isOld(publisher.silence, publisher.input)) return;
    if (publisher.gate.waits && !publisher.gate.passes(packet)) return;
    if (!this.#isShown(publisher)) {
      this.#return(publisher, packet);
      // a reader may have ended the stream
      if (this.#publisher !== publisher) return;
    }
    this.#writer.write(packet as ItemUnit);
  }

  /** Whether a packet of a publisher that goes on after a silence was held up on its way. */
  #isOld(silence: Silence, input: InputStream): boolean {
    const now = this.#options.clock.monotonic();
    silence.isOldUntil ??= now + HELD_UP_MS;
    if (now < silence.isOldUntil) return true;
    if (!silence.isOver) input.wantKey();
    silence.isOver = true;
    return false;
  }

  /** Shows a publisher, from a packet on. */
  #return(publisher: Publisher, { pts, track: { timebase } }: Packet): void {
    const { stream } = this;
    const now = this.#options.clock.monotonic();
    const isFirst = stream.tracks.length === 0;
    const from = isFirst ? now : Math.max(now, this.#endOfShown);
    if (this.#phase.kind === 'slate') this.#phase.show.close();
    if (this.standsBy) this.#options.log.info({ event: 'standby.ended' }, 'the publisher is back, and is shown again');
    this.#phase = { kind: 'live' };
    clearTimeout(this.#endTimer);
    clearInterval(this.#lookTimer);
    this.#last = publisher;
    this.#tracksLike();
    publisher.silence = undefined;
    publisher.offset = from - (1000 * pts * timebase.num) / timebase.den;
    stream.isVacant = false;
    this.#watch(publisher);
    stream.standby.end(this.#writer.secondsAt(from));
    this.#writer.begin(publisher.tracks, publisher.offset, from);
    this.#prepareLater();
  }

  /** Monotonic milliseconds where the stream may go on. */
  get #endOfShown(): number {
    const { lastShown, end } = this.#writer;
    return lastShown === -Infinity ? end : lastShown + this.#frameMs;
  }

  #watch(publisher: Publisher): void {
    this.#silence?.close();
    const { silenceTimeoutMs } = this.#options.config;
    if (silenceTimeoutMs === 0) return;
    this.#silence = new Watchdog(silenceTimeoutMs, () => {
      if (this.#publisher === publisher) this.#leave(`no packet for ${silenceTimeoutMs} ms`);
    }).unref();
  }

  #gone(publisher: Publisher, reason: string): void {
    if (this.#publisher !== publisher || this.#phase.kind === 'closed') return;
    this.#publisher = undefined;
    const { type, kind, url } = publisher.input.source;
    this.stream.replaceSource({ type, kind, ...(url !== undefined && { url }) });
    if (!this.standsBy) this.#leave(reason);
  }

  #leave(reason: string): void {
    this.#silence?.close();
    clearTimeout(this.#prepareTimer);
    const { stream } = this;
    const publisher = this.#publisher;
    if (stream.tracks.length === 0 || stream.handsOver || this.#isOff) {
      this.#isOver = stream.tracks.length === 0;
      if (publisher === undefined) stream.close(reason);
      return;
    }
    if (publisher !== undefined) {
      if (publisher.tracks.some(({ type }) => type === 'video')) publisher.gate.silence();
      publisher.offset = undefined;
      publisher.silence = { isOldUntil: undefined, isOver: false };
    }
    this.#wait(reason);
  }

  get #isOff(): boolean {
    return this.#isStopped || this.#options.isOff();
  }

  #wait(reason: string): void {
    this.#phase = { kind: 'waiting' };
    this.stream.isVacant = true;
    clearInterval(this.#lookTimer);
    this.#lookTimer = setInterval(() => {
      if (this.#isOff) this.endStandby('the slate was stopped');
    }, LOOK_MS).unref();
    void this.#show(reason);
  }

  async #show(reason: string): Promise<void> {
    const phase = this.#phase;
    try {
      const prepared = this.#prepared ?? this.#prepare();
      const slate = await within(READY_WITHIN_MS, prepared.slate);
      if (this.#phase !== phase) return;
      if (slate === undefined) throw new Error(`it was not ready within ${READY_WITHIN_MS} ms`);
      const { clock } = this.#options;
      const onFailure = (error: Error): void => this.#giveUp(reason, error);
      const show = await SlateShow.open({ slate, frameMs: prepared.frameMs, clock, onFailure });
      if (this.#phase !== phase) return show.close();
      this.#phase = { kind: 'slate', show };
      this.#options.log.info(
        { event: 'standby.began', reason },
        `the publisher is away, and a slate is shown: ${reason}`,
      );
      this.#endLater();
      const events = this.#last?.tracks.filter((track) => !isMedia(track)) ?? [];
      const from = this.#endOfShown;
      this.stream.standby.begin(this.#writer.secondsAt(from));
      show.start(this.#writer, from, events);
    } catch (error) {
      if (this.#phase === phase) this.#giveUp(reason, error as Error);
    }
  }

  /** Without a slate the stream ends with its publisher. */
  #giveUp(reason: string, error: Error): void {
    this.#prepared = undefined;
    if (this.#phase.kind === 'slate') this.#phase.show.close();
    this.#options.log.warn(
      { event: 'standby.failed', reason: error.message },
      'no slate can be shown: the stream ends with its publisher',
    );
    this.#phase = { kind: 'live' };
    clearInterval(this.#lookTimer);
    this.stream.standby.end(this.#writer.secondsAt(this.#endOfShown));
    this.stream.isVacant = false;
    if (this.#publisher === undefined) this.#endForGood(reason);
  }

  #endForGood(reason: string): void {
    this.#isOver = true;
    this.stream.close(reason);
  }

  #endLater(): void {
    const { maxDuration } = this.#options.config;
    if (maxDuration === 0) return;
    const end = (): void => {
      if (this.#phase.kind === 'slate') this.#endForGood(`no publisher came back within ${maxDuration} s`);
    };
    this.#endTimer = setTimeout(end, maxDuration * 1000).unref();
  }

  #prepareLater(): void {
    clearTimeout(this.#prepareTimer);
    if (this.#prepared !== undefined && isSame(this.#prepared.tracks, this.#media)) return;
    this.#prepared = undefined;
    this.#prepareTimer = setTimeout(() => this.#prepare(), PREPARE_AFTER_MS).unref();
  }

  /** Audio and video of the publisher that was shown last. */
  get #media(): MediaTrack[] {
    return this.#last?.tracks.filter(isMedia) ?? [];
  }

  #prepare(): Prepared {
    const { prepare, config, log } = this.#options;
    const tracks = this.#tracksLike();
    const media = tracks.map(({ track }) => track);
    const video = tracks.find(({ track }) => track.type === 'video');
    this.#frameMs = 1000 / framesPerSecond(rateOf(video?.framerate ?? 0));
    const slate = prepare({ tracks, file: config.file, text: config.text });
    const prepared = { tracks: media, frameMs: this.#frameMs, slate };
    this.#prepared = prepared;
    slate.catch((error: Error) => {
      if (this.#prepared !== prepared) return;
      // what is mended until then is tried again when it is needed
      this.#prepared = undefined;
      if (this.#phase.kind === 'live')
        log.warn({ event: 'standby.failed', reason: error.message }, 'the slate of the stream cannot be encoded');
    });
    return prepared;
  }

  /** Tracks that a slate has to be like, and keeps them for the next node that has the stream. */
  #tracksLike(): Former['tracks'] {
    const last = this.#last?.input;
    if (last === undefined) return (this.#former ?? FIRST).tracks;
    const tracks = this.#media.map((track) => {
      const { framerateAvg = 0, bitrateAvg = 0 } = last.measured(track.id) ?? {};
      return { track, framerate: framerateAvg, bitrate: bitrateAvg };
    });
    if (tracks.length > 0) this.stream.continuity.keep(FORMER, asJson(writeFormer({ source: last.source, tracks })));
    return tracks;
  }

  #close(reason: string): void {
    if (this.#phase.kind === 'slate') this.#phase.show.close();
    this.#phase = { kind: 'closed' };
    this.#silence?.close();
    clearTimeout(this.#prepareTimer);
    clearTimeout(this.#endTimer);
    clearInterval(this.#lookTimer);
    const publisher = this.#publisher;
    this.#publisher = undefined;
    publisher?.input.close(reason);
    const { continuity } = this.stream;
    this.#isOver ||= continuity.over && !continuity.taken;
    if (this.#isOver) this.#options.onOver?.();
  }
}

function isSame(one: readonly MediaTrack[], other: readonly MediaTrack[]): boolean {
  return one.length === other.length && one.every((track, index) => track === other[index]);
}
