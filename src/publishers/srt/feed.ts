import { delayed } from '../../core/delayed-stream.ts';
import type { Packet } from '../../core/packet.ts';
import type { Consumer, Reader } from '../../core/reader.ts';
import type { OutputStream } from '../../core/output-stream.ts';
import { Stream } from '../../core/stream.ts';
import type { Track } from '../../core/track.ts';
import type { FaultLog } from '../../log/log.ts';
import { LiveTs } from '../../packaging/live-ts.ts';
import { FeedViewers } from '../feed-viewers.ts';
import { tracksOf } from './selection.ts';

export interface TsFeedOptions {
  /** File name of the playlist. */
  readonly fileName: string;
  /** Delay after the output, in milliseconds. */
  readonly delayMs: number;
  readonly faults: FaultLog;
  readonly onEnd: () => void;
}

/**
 * MPEG-TS of one playlist of an output stream, muxed once for all its viewers: a stream whose packets hold whole transport
 * packets, with several audio frames in one. Closes with its last viewer.
 */
export class TsFeed implements Consumer {
  readonly #output: OutputStream;
  readonly #options: TsFeedOptions;
  /** The output, possibly delayed. */
  readonly #source: Stream;
  readonly #ts: LiveTs;
  readonly #stream: Stream;
  readonly #viewers: FeedViewers;
  readonly #reader: Reader;
  #selected = new Set<number>();

  constructor(output: OutputStream, options: TsFeedOptions) {
    this.#output = output;
    this.#options = options;
    this.#source = delayed(output, options.delayMs);
    this.#stream = new Stream(output.name, output.counters);
    this.#viewers = new FeedViewers({
      output,
      feed: this.#stream,
      kind: 'srt',
      onLast: () => this.close('no viewers are left'),
    });
    this.#ts = new LiveTs({
      unit: (unit, data) => this.#stream.write({ ...unit, duration: 0, data }),
      leftOut: (reason) => options.faults.count(`not sent over SRT: ${reason}`),
    });
    this.#select();
    this.#source.on('tracks', this.#select);
    this.#reader = this.#source.read(this);
  }

  get tracks(): readonly Track[] {
    return this.#stream.tracks;
  }

  /** As `FeedViewers.attach`. */
  attach(viewer: Consumer): { reader: Reader; detach: () => void } {
    return this.#viewers.attach(viewer);
  }

  packet(packet: Packet): void {
    if (this.#selected.has(packet.track.id)) this.#ts.write(packet);
  }

  /** Ends every viewer. Idempotent. */
  close(reason: string): void {
    if (this.#stream.closed) return;
    this.#ts.flush();
    this.#reader.close();
    this.#source.off('tracks', this.#select);
    this.#options.onEnd();
    this.#stream.close(reason);
  }

  readonly #select = (): void => {
    const playlist = this.#output.playlist(this.#options.fileName);
    this.#ts.setTracks(playlist === undefined ? [] : tracksOf(this.#source.tracks, playlist));
    const { carried } = this.#ts;
    this.#selected = new Set(carried.map(({ id }) => id));
    this.#stream.setTracks(carried);
  };
}
