import { randomUUID } from 'node:crypto';
import type { WebrtcPublisherConfig } from '../../config/model.ts';
import type { Packet } from '../../core/packet.ts';
import type { Reader } from '../../core/reader.ts';
import type { OutputStream } from '../../core/stream.ts';
import type { AudioTrack, MediaTrack } from '../../core/track.ts';
import { kilnError } from '../../errors.ts';
import { FaultLog, type Logger } from '../../log.ts';
import { codecKey, type RtpCodec } from '../../webrtc/codecs.ts';
import { playoutDelayExtension } from '../../webrtc/extensions.ts';
import type { MediaWorker } from '../../webrtc/media-worker.ts';
import { lowestFirst } from './ladder.ts';
import { MediaClock } from './media-clock.ts';
import { SourceFeed } from './source-feed.ts';
import { FEED_PAYLOAD_TYPE, type FeedOptions, type Outlet } from './track-feed.ts';
import { Voice } from './voice.ts';

/** A producer that viewers consume: of one track or of the layers of one picture, on one worker, for one agreed codec. */
export interface ViewerOutlet extends Outlet {
  readonly worker: MediaWorker;
  /** What can be sent. Of video, the layers as consumers number them: lowest first. */
  readonly tracks: readonly MediaTrack[];
  /** Of sound that is one viewer's own: goes on with another of the tracks. */
  readonly select?: (track: AudioTrack) => void;
  /** Gives up one use. */
  readonly release: () => void;
}

interface Entry {
  readonly worker: MediaWorker;
  readonly outlet: Promise<Outlet>;
  readonly tracks: readonly MediaTrack[];
  users: number;
  linger: NodeJS.Timeout | undefined;
  closed: boolean;
  readonly close: () => void;
}

/** An outlet without viewers is kept so long, for players that reload. */
const LINGER_MS = 3000;
/** Different payload types for which a stream is fed at once, per set of tracks and worker: each costs what a stream costs. */
const MAX_OUTLETS = 12;

/** The RTP of one output stream: reads it while there are outlets, and releases everything when the last has gone. */
export class StreamFeed {
  readonly #stream: OutputStream;
  readonly #playoutDelay: WebrtcPublisherConfig['playoutDelay'];
  readonly #faults: FaultLog;
  readonly #cname = randomUUID();
  readonly #clock = new MediaClock();
  /** One for each set of tracks and codec that an outlet is there for. */
  readonly #feeds = new Map<string, SourceFeed>();
  readonly #entries = new Map<string, Entry>();
  /** With what ends them. */
  readonly #voices = new Map<Voice, () => void>();
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
    return this.#entries.size + this.#voices.size;
  }

  /**
   * A producer of `tracks` on `worker` whose consumers use the payload types of `codec`; made when there is none.
   * @param tracks one, or several of one codec that can be layers (`webrtc/codecs.ts`, `hasLayers`), in any order
   * @throws mediaUnavailable
   */
  async outlet(tracks: readonly MediaTrack[], worker: MediaWorker, codec: RtpCodec): Promise<ViewerOutlet> {
    const place = `${keyOf(tracks)} ${worker.pid} `;
    const key = place + codecKey(codec);
    let entry = this.#entries.get(key);
    if (entry === undefined) {
      const beside = [...this.#entries.keys()].filter((other) => other.startsWith(place)).length;
      if (this.#closed || beside >= MAX_OUTLETS) throw kilnError('mediaUnavailable');
      entry = this.#open(key, this.#feed(tracks), worker, codec);
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
      return { ...(await entry.outlet), worker, tracks: entry.tracks, release };
    } catch (error) {
      release();
      throw error;
    }
  }

  /**
   * A producer of sound for one viewer alone, who can change among `tracks`.
   * @param tracks of one codec; the first is what it begins with
   * @throws mediaUnavailable
   */
  async ownOutlet(tracks: readonly AudioTrack[], worker: MediaWorker, codec: RtpCodec): Promise<ViewerOutlet> {
    if (this.#closed) throw kilnError('mediaUnavailable');
    const first = tracks[0] as AudioTrack;
    const voice = new Voice(first, this.#options(first));
    const outlet = await this.#produce(worker, codec, [voice.ssrc]);
    const release = (): void => {
      outlet.direct.close();
      if (this.#voices.delete(voice)) this.#stopUnused();
    };
    if (this.#closed || outlet.producer.closed) {
      release();
      throw kilnError('mediaUnavailable');
    }
    outlet.producer.observer.once('close', release);
    this.#voices.set(voice, release);
    voice.open(outlet);
    this.#read();
    return { ...outlet, worker, tracks, select: (track) => voice.select(track), release };
  }

  /** Ends all producers, and with them their consumers. Idempotent. */
  close(): void {
    this.#closed = true;
    for (const entry of [...this.#entries.values()]) entry.close();
    for (const release of [...this.#voices.values()]) release();
    this.#faults.close();
  }

  #open(key: string, feed: SourceFeed, worker: MediaWorker, codec: RtpCodec): Entry {
    let detach: (() => void) | undefined;
    const outlet = this.#produce(worker, codec, feed.ssrcs);
    const entry: Entry = {
      worker,
      outlet,
      tracks: feed.tracks,
      users: 0,
      linger: undefined,
      closed: false,
      close: () => {
        if (entry.closed) return;
        entry.closed = true;
        clearTimeout(entry.linger);
        detach?.();
        this.#entries.delete(key);
        this.#stopUnused();
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
        this.#read();
      },
      entry.close,
    );
    return entry;
  }

  async #produce(worker: MediaWorker, codec: RtpCodec, ssrcs: readonly number[]): Promise<Outlet> {
    const direct = await worker.createDirectTransport();
    try {
      const producer = await worker.produce(direct, codec, FEED_PAYLOAD_TYPE, {
        encodings: ssrcs.map((ssrc) => ({ ssrc })),
        headerExtensions: this.#playoutDelay === undefined ? [] : [playoutDelayExtension()],
        rtcp: { cname: this.#cname },
      });
      return { direct, producer };
    } catch (error) {
      direct.close();
      throw error;
    }
  }

  #feed(tracks: readonly MediaTrack[]): SourceFeed {
    const key = keyOf(tracks);
    const known = this.#feeds.get(key);
    if (known !== undefined) return known;
    const feed = new SourceFeed(lowestFirst(this.#stream, tracks), this.#options(tracks[0] as MediaTrack));
    this.#feeds.set(key, feed);
    return feed;
  }

  #options({ type }: MediaTrack): FeedOptions {
    return {
      cname: this.#cname,
      clock: this.#clock,
      playoutDelay: type === 'video' ? this.#playoutDelay : undefined,
      onFault: (error) => this.#faults.count(`a frame could not be sent: ${error.message}`),
    };
  }

  #read(): void {
    this.#reader ??= this.#stream.read({ packet: (packet) => this.#packet(packet) });
  }

  #packet(packet: Packet): void {
    for (const feed of this.#feeds.values()) feed.take(packet);
    for (const voice of this.#voices.keys()) voice.take(packet);
  }

  #release(entry: Entry): void {
    entry.users--;
    if (entry.users > 0 || entry.closed) return;
    entry.linger = setTimeout(entry.close, LINGER_MS);
  }

  #stopUnused(): void {
    if (this.outlets > 0) return;
    this.#reader?.close();
    this.#reader = undefined;
    for (const feed of this.#feeds.values()) feed.close();
    this.#feeds.clear();
  }
}

/** Names a set of tracks, in whatever order they are. */
function keyOf(tracks: readonly MediaTrack[]): string {
  return tracks.map(({ id, codec }) => `${id}:${codec}`).sort().join('+');
}
