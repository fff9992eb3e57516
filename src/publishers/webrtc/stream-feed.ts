import { randomUUID } from 'node:crypto';
import type { WebrtcPublisherConfig } from '../../config/model.ts';
import type { Packet } from '../../core/packet.ts';
import type { Reader } from '../../core/reader.ts';
import type { OutputStream } from '../../core/stream.ts';
import type { MediaTrack } from '../../core/track.ts';
import { kilnError } from '../../errors.ts';
import { FaultLog, type Logger } from '../../log.ts';
import { codecKey, type RtpCodec } from '../../webrtc/codecs.ts';
import { playoutDelayExtension } from '../../webrtc/extensions.ts';
import type { MediaWorker } from '../../webrtc/media-worker.ts';
import { MediaClock } from './media-clock.ts';
import { FEED_PAYLOAD_TYPE, TrackFeed, type Outlet } from './track-feed.ts';

/** A producer that viewers consume: of one track, on one worker, for one agreed codec. */
export interface SharedOutlet extends Outlet {
  readonly worker: MediaWorker;
  /** Gives up one use. */
  release(): void;
}

interface Entry {
  readonly worker: MediaWorker;
  readonly outlet: Promise<Outlet>;
  users: number;
  linger: NodeJS.Timeout | undefined;
  closed: boolean;
  readonly close: () => void;
}

/** An outlet without viewers is kept so long, for players that reload. */
const LINGER_MS = 3000;
/** Different payload types for which a stream is fed at once, per track and worker: each costs what a stream costs. */
const MAX_OUTLETS = 12;

/** The RTP of one output stream: reads it while there are outlets, and releases everything when the last has gone. */
export class StreamFeed {
  readonly #stream: OutputStream;
  readonly #playoutDelay: WebrtcPublisherConfig['playoutDelay'];
  readonly #faults: FaultLog;
  readonly #cname = randomUUID();
  readonly #clock = new MediaClock();
  /** One for each track and codec that an outlet is there for. */
  #feeds: TrackFeed[] = [];
  readonly #entries = new Map<string, Entry>();
  #reader: Reader | undefined;
  #closed = false;

  constructor(stream: OutputStream, playoutDelay: WebrtcPublisherConfig['playoutDelay'], log: Logger) {
    this.#stream = stream;
    this.#playoutDelay = playoutDelay;
    this.#faults = new FaultLog(log);
  }

  /** True where another viewer costs no further feeding. */
  isFedTo(worker: MediaWorker): boolean {
    for (const entry of this.#entries.values()) if (entry.worker === worker) return true;
    return false;
  }

  get outlets(): number {
    return this.#entries.size;
  }

  /**
   * A producer of `track` on `worker` whose consumers use the payload types of `codec`; made when there is none.
   * @throws mediaUnavailable
   */
  async outlet(track: MediaTrack, worker: MediaWorker, codec: RtpCodec): Promise<SharedOutlet> {
    const place = `${track.id} ${worker.pid} `;
    const key = place + codecKey(codec);
    let entry = this.#entries.get(key);
    if (entry === undefined) {
      const beside = [...this.#entries.keys()].filter((other) => other.startsWith(place)).length;
      if (this.#closed || beside >= MAX_OUTLETS) throw kilnError('mediaUnavailable');
      entry = this.#open(key, track, worker, codec);
    }
    entry.users++;
    clearTimeout(entry.linger);
    let released = false;
    const release = (): void => {
      if (released) return;
      released = true;
      this.#release(entry);
    };
    try {
      return { ...(await entry.outlet), worker, release };
    } catch (error) {
      release();
      throw error;
    }
  }

  /** Ends all producers, and with them their consumers. Idempotent. */
  close(): void {
    this.#closed = true;
    for (const entry of [...this.#entries.values()]) entry.close();
    this.#faults.close();
  }

  #open(key: string, track: MediaTrack, worker: MediaWorker, codec: RtpCodec): Entry {
    const feed = this.#feed(track);
    let detach: (() => void) | undefined;
    const outlet = this.#produce(worker, codec, feed);
    const entry: Entry = {
      worker,
      outlet,
      users: 0,
      linger: undefined,
      closed: false,
      close: () => {
        if (entry.closed) return;
        entry.closed = true;
        clearTimeout(entry.linger);
        detach?.();
        this.#entries.delete(key);
        if (this.#entries.size === 0) this.#stop();
        outlet.then(({ direct }) => direct.close(), () => undefined);
      },
    };
    this.#entries.set(key, entry);
    outlet.then(
      (made) => {
        if (entry.closed) return;
        if (made.producer.closed) {
          entry.close();
          return;
        }
        made.producer.observer.once('close', entry.close);
        detach = feed.addOutlet(made);
        this.#reader ??= this.#stream.read({ packet: (packet) => this.#packet(packet) });
      },
      entry.close,
    );
    return entry;
  }

  async #produce(worker: MediaWorker, codec: RtpCodec, feed: TrackFeed): Promise<Outlet> {
    const direct = await worker.createDirectTransport();
    try {
      const producer = await worker.produce(direct, codec, FEED_PAYLOAD_TYPE, {
        encodings: [{ ssrc: feed.ssrc }],
        headerExtensions: this.#playoutDelay === undefined ? [] : [playoutDelayExtension()],
        rtcp: { cname: this.#cname },
      });
      return { direct, producer };
    } catch (error) {
      direct.close();
      throw error;
    }
  }

  #feed(track: MediaTrack): TrackFeed {
    const known = this.#feeds.find((feed) => feed.carries(track));
    if (known !== undefined) return known;
    const feed = new TrackFeed(track, {
      cname: this.#cname,
      clock: this.#clock,
      playoutDelay: track.type === 'video' ? this.#playoutDelay : undefined,
      onFault: (error) => this.#faults.count(`a frame could not be sent: ${error.message}`),
    });
    this.#feeds.push(feed);
    return feed;
  }

  #packet(packet: Packet): void {
    for (const feed of this.#feeds) if (feed.carries(packet.track)) feed.send(packet);
  }

  #release(entry: Entry): void {
    entry.users--;
    if (entry.users > 0 || entry.closed) return;
    entry.linger = setTimeout(entry.close, LINGER_MS);
  }

  #stop(): void {
    this.#reader?.close();
    this.#reader = undefined;
    this.#feeds = [];
  }
}
