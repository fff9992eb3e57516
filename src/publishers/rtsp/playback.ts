import type { Packet } from '../../core/packet.ts';
import { KeyGate } from '../../core/key-gate.ts';
import type { Reader } from '../../core/reader.ts';
import { toSeconds } from '../../core/timebase.ts';
import { Watchdog } from '../../lib/watchdog.ts';
import { writeBye } from '../../protocols/rtp/rtcp.ts';
import type { RtspFeed, FeedPlayer } from './feed.ts';
import { firstSequence, type SentTrack } from '../../protocols/rtsp/sent-track.ts';
import type { MediaSink } from './sink.ts';

/** Time for the first frame, after which PLAY is answered all the same. */
const FIRST_FRAME_MS = 5000;

export interface PlaybackOptions {
  /** Indexes of the feed's tracks that the player has set up. */
  readonly tracks: ReadonlySet<number>;
  /** Whether it starts with the last key frame, and not with the next one. */
  readonly fromLast: boolean;
  readonly onSent: (bytes: number) => void;
  readonly onEnd: (reason: string) => void;
}

/** Where a track of a player starts. */
export interface TrackStart {
  readonly index: number;
  readonly sequence: number;
  readonly rtpTime: number;
}

/** Sends a feed to one player, from a key frame on. */
export class RtspPlayback implements FeedPlayer {
  readonly #feed: RtspFeed;
  readonly #sink: MediaSink;
  readonly #options: PlaybackOptions;
  readonly #gate = new KeyGate();
  readonly #reader: Reader;
  readonly #detach: () => void;
  readonly #reported = new Set<SentTrack>();
  /** Frames in front of those of the reader. */
  #pending: Packet[] = [];
  /** PLAY was answered. */
  #flows = false;
  #onFirst: (() => void) | undefined;
  #stalledSince: number | undefined;
  #closed = false;

  constructor(feed: RtspFeed, sink: MediaSink, options: PlaybackOptions) {
    this.#feed = feed;
    this.#sink = sink;
    this.#options = options;
    const { reader, detach } = feed.attach(
      this,
      options.fromLast ? (packet) => void (this.#isWanted(packet) && this.#pending.push(packet)) : undefined,
    );
    this.#reader = reader;
    this.#detach = detach;
    const hasVideo = feed.tracks.some(({ track }, index) => track.type === 'video' && options.tracks.has(index));
    if (hasVideo && this.#pending.length === 0) this.#gate.silence();
    sink.writable = () => this.#resume();
  }

  /** Time since the client stopped receiving, in milliseconds; 0 while it does. */
  get stalledMs(): number {
    return this.#stalledSince === undefined ? 0 : performance.now() - this.#stalledSince;
  }

  get dropped(): number {
    return this.#reader.dropped;
  }

  /** Waits for the first frame. @returns where each track starts; none when there is no frame in time */
  async starts(): Promise<TrackStart[]> {
    if (this.#pending.length === 0 && !this.#closed) await this.#first();
    const firsts = new Map<SentTrack | undefined, Packet>();
    for (const packet of this.#pending) {
      const track = this.#feed.trackOf(packet);
      if (!firsts.has(track)) firsts.set(track, packet);
    }
    const [earliest] = [...firsts.values()].sort((one, other) => secondsOf(one) - secondsOf(other));
    if (earliest === undefined) return [];
    const {
      pts,
      track: { timebase },
    } = earliest;
    return [...this.#options.tracks].flatMap((index) => {
      const track = this.#feed.tracks[index];
      if (track === undefined) return [];
      const first = firsts.get(track);
      const sequence = first === undefined ? track.nextSequence : firstSequence(first.data);
      return [{ index, sequence, rtpTime: track.rtpTime(pts, timebase) }];
    });
  }

  /** Begins to send. */
  flow(): void {
    this.#flows = true;
    this.#resume();
  }

  packet(packet: Packet): boolean {
    if (!this.#isWanted(packet) || (this.#gate.waits && !this.#gate.passes(packet))) return true;
    if (!this.#flows) {
      this.#pending.push(packet);
      this.#onFirst?.();
      return false;
    }
    return this.#send(packet);
  }

  report(): void {
    if (!this.#flows) return;
    for (const [index, track] of this.#feed.tracks.entries())
      if (this.#options.tracks.has(index)) this.#report(index, track);
  }

  /** The stream has ended: says so for every track. */
  close(reason: string): void {
    if (this.#flows)
      for (const [index, { ssrc }] of this.#feed.tracks.entries())
        if (this.#options.tracks.has(index)) this.#sink.report(index, writeBye(ssrc));
    this.stop();
    this.#options.onEnd(reason);
  }

  /** Idempotent. */
  stop(): void {
    if (this.#closed) return;
    this.#closed = true;
    this.#pending = [];
    this.#sink.writable = () => {};
    this.#onFirst?.();
    this.#detach();
  }

  #first(): Promise<void> {
    return new Promise((resolve) => {
      const late = new Watchdog(FIRST_FRAME_MS, () => resolve());
      this.#onFirst = () => {
        late.close();
        resolve();
      };
    });
  }

  #isWanted(packet: Packet): boolean {
    const track = this.#feed.trackOf(packet);
    return track !== undefined && this.#options.tracks.has(track.channel / 2);
  }

  #resume(): void {
    this.#stalledSince = undefined;
    if (!this.#flows) return;
    while (this.#pending.length > 0) {
      const [packet] = this.#pending.splice(0, 1);
      if (packet !== undefined && !this.#send(packet)) return;
    }
    this.#reader.resume();
  }

  #send(packet: Packet): boolean {
    const track = this.#feed.trackOf(packet) as SentTrack;
    const index = track.channel / 2;
    if (!this.#reported.has(track)) this.#report(index, track);
    this.#options.onSent(packet.data.length);
    const keepsUp = this.#sink.send(index, packet.data);
    if (!keepsUp) this.#stalledSince ??= performance.now();
    return keepsUp;
  }

  #report(index: number, track: SentTrack): void {
    const report = this.#feed.reportOf(track);
    if (report === undefined) return;
    this.#reported.add(track);
    this.#sink.report(index, report);
  }
}

function secondsOf({ pts, track: { timebase } }: Packet): number {
  return toSeconds(pts, timebase);
}
