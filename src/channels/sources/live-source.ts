import type { GopCache } from '../../core/gop-cache.ts';
import { KeyGate } from '../../core/key-gate.ts';
import type { Packet } from '../../core/packet.ts';
import { DEFAULT_LIMITS, Reader } from '../../core/reader.ts';
import type { OutputStream } from '../../core/output-stream.ts';
import type { Track } from '../../core/track.ts';

/** Consumer of a live source. */
export interface LiveSink {
  /**
   * Called with the first tracks and with changed ones. Returns the tracks to deliver; undefined for all. A changed
   * track is another object under the same id.
   */
  tracks(tracks: readonly Track[]): readonly Track[] | void;
  /** As Consumer.packet: returns false when it can take no more until `resume` is called. */
  packet(packet: Packet): boolean | void;
  /** Called last, when the stream has ended. */
  end(reason: string): void;
}

/**
 * Reads an output stream of this node for a channel, or the relay of another node's, which continues with the
 * stream's next owner. It begins with a key frame, and keeps on-demand encoders running. A slow sink continues at a
 * later key frame.
 */
export class LiveSource {
  readonly output: OutputStream;
  readonly #sink: LiveSink;
  readonly #reader: Reader;
  readonly #undo: (() => void)[] = [];
  readonly #gate = new KeyGate();
  /** Delivered tracks. */
  #tracks: readonly Track[] = [];
  #ids: ReadonlySet<number> = new Set();
  #closed = false;

  /** @param hold marks the stream as in use, and returns its undo */
  constructor(output: OutputStream, sink: LiveSink, hold: () => () => void) {
    this.output = output;
    this.#sink = sink;
    const queue = output.queue('channel', { seconds: DEFAULT_LIMITS.seconds / 2 });
    const consumer = { packet: (packet: Packet) => this.#deliver(packet) };
    this.#reader = new Reader(consumer, () => {}, DEFAULT_LIMITS, undefined, queue);
    const onTracks = (): void => this.#select();
    this.#undo.push(hold(), output.addRelay(), () => output.off('tracks', onTracks));
    output.on('tracks', onTracks);
  }

  /** Packets dropped because the sink was too slow. */
  get dropped(): number {
    return this.#reader.dropped;
  }

  /** @param start packets of the stream from its last key frame on */
  play(start: GopCache | undefined): void {
    this.#select();
    if (this.#tracks.some(({ type }) => type === 'video')) this.#gate.silence();
    start?.replay((packet) => this.#push(packet));
    if (this.#closed) return;
    const source = this.output.read({
      packet: (packet) => this.#push(packet),
      close: (reason) => {
        this.close();
        this.#sink.end(reason);
      },
    });
    if (this.#closed) source.close();
    else this.#undo.push(() => source.close());
  }

  /** To be called when the sink takes packets again. */
  resume(): void {
    this.#reader.resume();
  }

  /** Delivers nothing more; the sink's `end` is not called. Idempotent. */
  close(): void {
    if (this.#closed) return;
    this.#closed = true;
    for (const undo of this.#undo.splice(0)) undo();
    this.#reader.close();
  }

  #push(packet: Packet): void {
    if (this.#ids.has(packet.track.id)) this.#reader.push(packet);
  }

  #deliver(packet: Packet): boolean | void {
    if (this.#closed || (this.#gate.waits && !this.#gate.passes(packet))) return true;
    return this.#sink.packet(packet);
  }

  #select(): void {
    if (this.#closed) return;
    const before = this.#tracks;
    const { tracks } = this.output;
    this.#tracks = this.#sink.tracks(tracks) ?? tracks;
    this.#ids = new Set(this.#tracks.map(({ id }) => id));
    if (!this.#gate.retrack(this.#tracks, before)) this.#reader.videoGone();
  }
}
