import { randomUUID } from 'node:crypto';
import { delayed } from '../../core/delayed-stream.ts';
import { GopCache } from '../../core/gop-cache.ts';
import type { OutputStream } from '../../core/output-stream.ts';
import type { Packet } from '../../core/packet.ts';
import type { Consumer, Reader, ReaderLimits } from '../../core/reader.ts';
import { Stream } from '../../core/stream.ts';
import type { MediaTrack } from '../../core/track.ts';
import type { FaultLog } from '../../log/log.ts';
import { MediaClock } from '../../protocols/rtp/media-clock.ts';
import { payloadFormat } from '../../protocols/rtp/payload-format.ts';
import { FeedViewers } from '../feed-viewers.ts';
import { REPORT_MS, SentTrack } from '../../protocols/rtsp/sent-track.ts';

/** Limits of what a new player starts with; of longer GOPs it starts with the next key frame. */
const START_LIMITS: ReaderLimits = { bytes: 8 * 1024 * 1024, seconds: 10 };
const CHANGED = 'the format of a track has changed';

export interface FeedOptions {
  /** Delay after the output, in milliseconds. */
  readonly delayMs: number;
  readonly faults: FaultLog;
  readonly onEnd: () => void;
}

/** A player of a feed. */
export interface FeedPlayer extends Consumer {
  /** Sender reports are due. */
  report(): void;
}

/**
 * RTP of some tracks of an output stream, packetized once for all its players: a stream whose packets hold the interleaved RTP
 * packets of a frame. Closes with its last user, and when a track changes in a way that its description does not cover.
 */
export class RtspFeed implements Consumer {
  readonly tracks: readonly SentTrack[];
  readonly #cname = randomUUID();
  readonly #options: FeedOptions;
  /** The output, possibly delayed. */
  readonly #source: Stream;
  readonly #stream: Stream;
  readonly #clock = new MediaClock();
  readonly #start = new GopCache(START_LIMITS);
  readonly #byId: ReadonlyMap<number, SentTrack>;
  readonly #players = new Set<FeedPlayer>();
  readonly #timer: NodeJS.Timeout;
  readonly #reader: Reader;
  readonly #viewers: FeedViewers;

  /** @param tracks that have a payload format */
  constructor(output: OutputStream, tracks: readonly MediaTrack[], options: FeedOptions) {
    this.#options = options;
    this.#source = delayed(output, options.delayMs);
    this.tracks = tracks.flatMap((track, index) => {
      const format = payloadFormat(track);
      return format === undefined ? [] : [new SentTrack(track, format, index)];
    });
    this.#byId = new Map(this.tracks.map((one) => [one.track.id, one]));
    this.#stream = new Stream(output.name, output.counters);
    this.#viewers = new FeedViewers({
      output,
      feed: this.#stream,
      kind: 'rtsp',
      onLast: () => this.close('no players are left'),
    });
    this.#stream.setTracks(this.tracks.map(({ track }) => track));
    this.#stream.on('fault', (error) => output.emit('fault', error));
    this.#stream.read(this.#start);
    this.#source.on('tracks', this.#onTracks);
    this.#reader = this.#source.read(this);
    this.#timer = setInterval(() => {
      for (const player of this.#players) player.report();
    }, REPORT_MS).unref();
  }

  get closed(): boolean {
    return this.#stream.closed;
  }

  /** Keeps the feed, so that it has a start when a player comes. @returns ends that, to be called once */
  hold(): () => void {
    return this.#viewers.hold();
  }

  /** Adds a player. The caller calls `detach` once, when it leaves. @param start takes what the player can start with */
  attach(player: FeedPlayer, start?: (packet: Packet) => void): { reader: Reader; detach: () => void } {
    if (start !== undefined) this.#start.replay(start);
    const { reader, detach } = this.#viewers.attach(player);
    this.#players.add(player);
    return {
      reader,
      detach: () => {
        this.#players.delete(player);
        detach();
      },
    };
  }

  trackOf({ track: { id } }: Packet): SentTrack | undefined {
    return this.#byId.get(id);
  }

  /** Sender report of a track for the present; undefined when nothing is being sent. */
  reportOf(track: SentTrack): Buffer | undefined {
    return track.report(Date.now(), this.#cname);
  }

  packet(packet: Packet): void {
    const track = this.#byId.get(packet.track.id);
    if (track === undefined) return;
    if (packet.track !== track.track && !track.covers(packet.track)) return this.close(CHANGED);
    let data: Buffer;
    try {
      data = track.packetize(packet, this.#clock, Date.now());
    } catch (error) {
      return this.#options.faults.count(`a frame could not be sent over RTSP: ${(error as Error).message}`);
    }
    if (data.length > 0) this.#stream.write({ ...packet, data });
  }

  /** Ends every player. Idempotent. */
  close(reason: string): void {
    if (this.#stream.closed) return;
    clearInterval(this.#timer);
    this.#reader.close();
    this.#source.off('tracks', this.#onTracks);
    this.#options.onEnd();
    this.#stream.close(reason);
  }

  readonly #onTracks = (): void => {
    for (const known of this.tracks) {
      const track = this.#source.tracks.find(({ id }) => id === known.track.id);
      if (track === undefined) return this.close('a track of the stream has ended');
      if (track === known.track) continue;
      if (!known.covers(track)) return this.close(CHANGED);
      const format = payloadFormat(track);
      if (format === undefined) return this.close(CHANGED);
      known.reconfigure(track, format);
    }
    this.#stream.setTracks(this.tracks.map(({ track }) => track));
  };
}
