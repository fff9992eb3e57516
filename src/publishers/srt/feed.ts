import { delayed } from '../../core/delayed-stream.ts';
import type { Packet } from '../../core/packet.ts';
import type { Consumer, Reader, ReaderLimits } from '../../core/reader.ts';
import type { OutputStream } from '../../core/output-stream.ts';
import { Stream } from '../../core/stream.ts';
import type { Track } from '../../core/track.ts';
import type { FaultLog } from '../../log/log.ts';
import { LiveTs } from '../../packaging/live-ts.ts';
import { tracksOf } from './selection.ts';

/** Limits of a slow viewer's queue; above them it resumes at the next key frame. */
const LIMITS: ReaderLimits = { bytes: 8 * 1024 * 1024, seconds: 3 };

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
  readonly #reader: Reader;
  #selected = new Set<number>();
  #viewers = 0;

  constructor(output: OutputStream, options: TsFeedOptions) {
    this.#output = output;
    this.#options = options;
    this.#source = delayed(output, options.delayMs);
    this.#stream = new Stream(output.name, output.counters);
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

  /** Adds a viewer. The caller calls `detach` once, when the viewer leaves. */
  attach(viewer: Consumer): { reader: Reader; detach: () => void } {
    this.#viewers++;
    const queue = this.#output.queue('srt', { seconds: LIMITS.seconds / 2 });
    const reader = this.#stream.read(viewer, LIMITS, queue);
    this.#output.wantKey();
    const detach = (): void => {
      reader.close();
      if (--this.#viewers === 0) this.close('no viewers are left');
    };
    return { reader, detach };
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
