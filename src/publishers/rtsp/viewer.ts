import type { SessionGrant } from '../../access/access.ts';
import { Flow } from '../../core/counters.ts';
import type { OutputStream } from '../../core/output-stream.ts';
import type { Session } from '../../core/session.ts';
import type { MediaTrack } from '../../core/track.ts';
import { KilnError, kilnError } from '../../errors.ts';
import { trackPath } from '../../protocols/rtsp/request-url.ts';
import type { RtspFeed } from './feed.ts';
import { RtspPlayback, type PlaybackOptions, type TrackStart } from './playback.ts';
import type { MediaSink } from './sink.ts';

/** Output stream that a player plays. */
export interface Playable {
  readonly output: OutputStream;
  readonly tracks: readonly MediaTrack[];
  /** Delay of playback, in milliseconds. */
  readonly delayMs: number;
}

export interface ViewerOptions {
  readonly grant: SessionGrant<Playable>;
  readonly feed: RtspFeed;
  /** The URL names a playlist. */
  readonly byPlaylist: boolean;
  readonly fromLast: boolean;
  /** The viewer has to leave: its stream has ended, it was kicked, or its time is over. */
  readonly onEnd: (reason: string) => void;
}

/** A player that has described or set up a stream: listed as a session from its first PLAY on, until it leaves. */
export class RtspViewer implements Session {
  readonly kind = 'rtsp';
  readonly byPlaylist: boolean;
  readonly createdTime = Date.now();
  readonly out = new Flow(this.createdTime);
  readonly id: string;
  readonly #options: ViewerOptions;
  readonly #release: () => void;
  #playback: RtspPlayback | undefined;
  #unlist: (() => void) | undefined;
  #hasJoined = false;
  #closed = false;

  constructor(options: ViewerOptions) {
    const { grant, feed } = options;
    this.#options = options;
    this.id = grant.id;
    this.byPlaylist = options.byPlaylist;
    this.#release = feed.hold();
  }

  get output(): OutputStream {
    return this.#options.grant.found.output;
  }

  get feed(): RtspFeed {
    return this.#options.feed;
  }

  get playback(): RtspPlayback | undefined {
    return this.#playback;
  }

  /**
   * Begins to play the tracks that are set up; `playback.flow()` follows.
   * @returns where they start
   * @throws KilnError when it is not admitted after all
   */
  play(sink: MediaSink, tracks: PlaybackOptions['tracks']): Promise<TrackStart[]> {
    if (this.feed.closed) throw kilnError('streamNotFound', this.output.name);
    this.#list();
    const { fromLast, onEnd } = this.#options;
    this.#playback = new RtspPlayback(this.feed, sink, {
      tracks,
      fromLast,
      onSent: (bytes) => this.#sent(bytes),
      onEnd,
    });
    return this.#playback.starts();
  }

  pause(): void {
    this.#playback?.stop();
    this.#playback = undefined;
  }

  kick(): void {
    this.output.input.kicked.add(this.id);
    this.#options.onEnd('the viewer was disconnected by the management API');
  }

  /** Value of `RTP-Info` (RFC 2326 section 12.33). */
  static info(base: string, starts: readonly TrackStart[]): string {
    return starts
      .map(({ index, sequence, rtpTime }) => `url=${base}${trackPath(index)};seq=${sequence};rtptime=${rtpTime}`)
      .join(',');
  }

  /** Idempotent. */
  close(reason: string): void {
    if (this.#closed) return;
    this.#closed = true;
    this.pause();
    this.#unlist?.();
    this.#release();
    this.#options.grant.end(reason);
  }

  #list(): void {
    if (this.#unlist !== undefined) return;
    const { grant, onEnd } = this.#options;
    try {
      grant.enter();
    } catch (error) {
      if (error instanceof KilnError) grant.refuse(error);
      throw error;
    }
    this.#unlist = this.output.addSession(this);
    grant.limit(onEnd);
  }

  #sent(bytes: number): void {
    const now = Date.now();
    this.out.add(bytes, now);
    const { counters } = this.output;
    counters.sentTo('rtsp', bytes, now);
    if (this.#hasJoined) return;
    this.#hasJoined = true;
    counters.viewing.joined('rtsp', Math.max(0, now - this.createdTime) / 1000);
  }
}
