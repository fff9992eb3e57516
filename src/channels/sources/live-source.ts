import type { GopCache } from '../../core/gop-cache.ts';
import { KeyGate } from '../../core/key-gate.ts';
import type { Packet } from '../../core/packet.ts';
import { DEFAULT_LIMITS, Reader } from '../../core/reader.ts';
import type { OutputStream } from '../../core/stream.ts';
import type { Track } from '../../core/track.ts';

/** Who takes what a live source delivers. */
export interface LiveSink {
  /**
   * The tracks are known, or others. Answers which of them are delivered; all of them where it answers nothing. A track that
   * has changed is another object under the same id.
   */
  tracks(tracks: readonly Track[]): readonly Track[] | void;
  /** As Consumer.packet: answers false when it can take no more until `resume` is called. */
  packet(packet: Packet): boolean | void;
  /** The stream has ended; nothing follows. */
  end(reason: string): void;
}

/**
 * What a channel reads of an output stream of this node, or of the relay of another node's, which goes on with the stream's next
 * owner. It begins with a key frame, and keeps encoders running that run on demand. A sink that is slow goes on at a
 * later key frame.
 */
export class LiveSource {
  readonly output: OutputStream;
  readonly #sink: LiveSink;
  readonly #reader: Reader;
  readonly #undo: (() => void)[] = [];
  readonly #gate = new KeyGate();
  /** Those that are delivered. */
  #tracks: readonly Track[] = [];
  #ids: ReadonlySet<number> = new Set();
  #closed = false;

  /** @param hold begins the use of the stream, and answers its end */
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

  /** Packets that the sink was too slow for. */
  get dropped(): number {
    return this.#reader.dropped;
  }

  /** @param start what the stream brought from its last key frame on */
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

  /** The sink takes packets again. */
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
