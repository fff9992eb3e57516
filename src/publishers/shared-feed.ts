import { delayed } from '../core/delayed-stream.ts';
import { GopCache } from '../core/gop-cache.ts';
import type { OutputStream } from '../core/output-stream.ts';
import type { Packet } from '../core/packet.ts';
import type { QueueKind } from '../core/queue.ts';
import type { Consumer, Reader, ReaderLimits } from '../core/reader.ts';
import { Stream } from '../core/stream.ts';
import type { Track } from '../core/track.ts';
import type { DeliveredFeed } from './feed-delivery.ts';
import { FeedViewers } from './feed-viewers.ts';

export interface SharedFeedOptions {
  readonly kind: QueueKind;
  /** Delay after the output, in milliseconds. */
  readonly delayMs: number;
  /** Packets of the output from its last key frame on. */
  readonly start?: GopCache | undefined;
  /** New viewers start with the last key frame, and not with the next one. */
  readonly keepsStart: boolean;
  readonly onEnd: () => void;
}

/** Limits of what a new viewer gets at once; one of a stream with longer GOPs starts at the next key frame. */
const START_LIMITS: ReaderLimits = { bytes: 8 * 1024 * 1024, seconds: 10 };

/**
 * An output stream in a form that is made once for all viewers who get it: a stream whose packets hold the bytes for them. Closes with
 * its last viewer.
 */
export abstract class SharedFeed implements Consumer, DeliveredFeed {
  readonly #options: SharedFeedOptions;
  /** The output, possibly delayed. */
  readonly #source: Stream;
  readonly #stream: Stream;
  readonly #viewers: FeedViewers;
  readonly #cache: GopCache | undefined;
  #reader: Reader | undefined;

  constructor(output: OutputStream, options: SharedFeedOptions) {
    const { kind, delayMs, keepsStart } = options;
    this.#options = options;
    this.#source = delayed(output, delayMs);
    this.#stream = new Stream(output.name, output.counters);
    this.#cache = keepsStart ? new GopCache(START_LIMITS) : undefined;
    const onLast = (): void => this.close('no viewers are left');
    this.#viewers = new FeedViewers({ output, feed: this.#stream, kind, onLast });
  }

  get tracks(): readonly Track[] {
    return this.#stream.tracks;
  }

  get hasVideo(): boolean {
    return this.#stream.tracks.some(({ type }) => type === 'video');
  }

  /** As `FeedViewers.attach`. */
  attach(viewer: Consumer): { reader: Reader; detach: () => void } {
    return this.#viewers.attach(viewer);
  }

  replay(take: (packet: Packet) => void): void {
    this.#cache?.replay(take);
  }

  abstract packet(packet: Packet): void;

  /** Ends every viewer. Idempotent. */
  close(reason: string): void {
    if (this.#stream.closed) return;
    this.flush();
    this.#reader?.close();
    this.#source.off('tracks', this.#select);
    this.#options.onEnd();
    this.#stream.close(reason);
  }

  /** Chooses among the tracks of the output. @returns the tracks of the feed */
  protected abstract select(tracks: readonly Track[]): readonly Track[];

  /** Writes incomplete groups. */
  protected flush(): void {}

  /** Reads the output. To be called once, at the end of the constructor. */
  protected begin(): void {
    this.#select();
    this.#source.on('tracks', this.#select);
    this.#options.start?.replay((packet) => this.packet(packet));
    this.#reader = this.#source.read(this);
  }

  /** Gives a packet to the viewers. */
  protected share(packet: Packet): void {
    this.#cache?.packet(packet);
    this.#stream.write(packet);
  }

  readonly #select = (): void => this.#stream.setTracks(this.select(this.#source.tracks));
}
