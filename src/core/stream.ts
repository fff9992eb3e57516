import { EventEmitter } from 'node:events';
import type { Counters } from './counters.ts';
import { TrackMeter, type Measured } from './meter.ts';
import type { Packet } from './packet.ts';
import { Queue, type QueueKind, type QueueThreshold } from './queue.ts';
import { Reader, type Consumer, type ReaderLimits } from './reader.ts';
import type { Session } from './session.ts';
import type { Track } from './track.ts';

interface StreamEvents {
  /** The set of tracks, or the configuration of one, is another. */
  tracks: [tracks: readonly Track[]];
  close: [reason: string];
  /** Output streams: a viewer or a relay came or left. */
  viewers: [count: number];
  /** Output streams: a viewer came or left. */
  joined: [session: Session];
  left: [session: Session];
  /** Input streams: a reader needs a key frame to start or to go on. */
  keyWanted: [];
  /** Input streams: `handsOver` or `isVacant` has changed. */
  handsOver: [];
  /** Input streams: the source does something wrong, for an alert. */
  trouble: [code: string, description: string];
  /** Output streams that rest: a viewer is about to come. */
  wanted: [];
  /** A reader's consumer threw: it is detached, writer and other readers go on. */
  fault: [error: unknown];
}

/**
 * Packets from one writer to many readers. Knows no protocol.
 * The first `setTracks` makes it live; `close` ends every reader.
 */
export class Stream extends EventEmitter<StreamEvents> {
  readonly name: string;
  readonly createdTime = new Date();
  readonly counters: Counters;
  #tracks: readonly Track[] = [];
  readonly #meters = new Map<number, TrackMeter>();
  /** Replaced, never changed: a reader that comes during a write begins with the next packet. */
  #readers: readonly Reader[] = [];
  readonly #queues = new Map<QueueKind, Queue>();
  #closed = false;

  constructor(name: string, counters: Counters) {
    super();
    this.setMaxListeners(0);
    this.name = name;
    this.counters = counters;
  }

  get tracks(): readonly Track[] {
    return this.#tracks;
  }

  get closed(): boolean {
    return this.#closed;
  }

  get readers(): number {
    return this.#readers.length;
  }

  /** Queues of readers that may fall behind. */
  get queues(): Iterable<Queue> {
    return this.#queues.values();
  }

  /** Counts what waits for the readers of a kind, for as long as the stream lives. */
  queue(kind: QueueKind, threshold: QueueThreshold): Queue {
    const queue = this.#queues.get(kind) ?? new Queue(kind, threshold);
    this.#queues.set(kind, queue);
    return queue;
  }

  /** Runtime measurement of a track; undefined for an unknown id. */
  measured(trackId: number): Measured | undefined {
    return this.#meters.get(trackId)?.read();
  }

  /**
   * Sets or replaces the tracks. Another track object under a known id counts as a change of its configuration
   * when its format is another.
   */
  setTracks(tracks: readonly Track[]): void {
    if (this.#closed) return;
    for (const track of tracks) {
      const known = this.#tracks.find(({ id }) => id === track.id);
      if (known === undefined) this.#meters.set(track.id, new TrackMeter(track));
      else if (known !== track) this.#meters.get(track.id)?.replaced(track);
    }
    for (const { id } of this.#tracks) {
      if (!tracks.some((track) => track.id === id)) this.#meters.delete(id);
    }
    this.#tracks = Object.freeze([...tracks]);
    if (!tracks.some(({ type }) => type === 'video')) for (const reader of this.#readers) reader.videoGone();
    this.emit('tracks', this.#tracks);
  }

  /** Hands a packet of one of the current tracks to every reader, in this turn. */
  write(packet: Packet): void {
    if (this.#closed) return;
    this.#meters.get(packet.track.id)?.add(packet);
    for (const reader of this.#readers) {
      try {
        reader.push(packet);
      } catch (error) {
        this.#end(reader, 'it failed on a packet');
        this.emit('fault', error);
      }
    }
  }

  /**
   * Attaches a consumer, from the next packet on. On a closed stream its `close` is called at once.
   * @param queue counts what waits for it; undefined for a consumer that takes every packet at once
   */
  read(consumer: Consumer, limits?: ReaderLimits, queue?: Queue): Reader {
    const reader = new Reader(consumer, (gone) => this.#detach(gone), limits, this.counters, queue);
    if (this.#closed) {
      reader.end('the stream has ended');
      return reader;
    }
    this.#readers = [...this.#readers, reader];
    this.wantKey();
    return reader;
  }

  /** A key frame is needed before the next one is due: a source that can be asked for one is. Every new reader needs one. */
  wantKey(): void {}

  /** Ends what hangs on the stream and every reader. Idempotent. */
  close(reason: string): void {
    if (this.#closed) return;
    this.#closed = true;
    this.closeChildren(reason);
    for (const reader of this.#readers) this.#end(reader, reason);
    this.emit('close', reason);
    this.removeAllListeners();
  }

  /** Called once, when the stream counts as closed already. */
  protected closeChildren(_reason: string): void {}

  #end(reader: Reader, reason: string): void {
    try {
      reader.end(reason);
    } catch (error) {
      this.emit('fault', error);
    }
  }

  #detach(gone: Reader): void {
    this.#readers = this.#readers.filter((reader) => reader !== gone);
  }
}
