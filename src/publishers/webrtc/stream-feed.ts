import { randomUUID } from 'node:crypto';
import type { WebrtcPublisherConfig } from '../../config/model.ts';
import { delayed, DelayedStream } from '../../core/delayed-stream.ts';
import type { Packet } from '../../core/packet.ts';
import type { Reader } from '../../core/reader.ts';
import type { OutputStream } from '../../core/output-stream.ts';
import type { Stream } from '../../core/stream.ts';
import type { AudioTrack, MediaTrack } from '../../core/track.ts';
import { kilnError } from '../../errors.ts';
import { FaultLog, type Logger } from '../../log/log.ts';
import { codecKey, hasKnownKeys, type RtpCodec } from '../../webrtc/codecs.ts';
import type { LiveProducer, LiveProducers } from '../../webrtc/live-producers.ts';
import { pipe } from '../../webrtc/pipe.ts';
import { playoutDelayExtension } from '../../webrtc/extensions.ts';
import type { MediaWorker } from '../../webrtc/media-worker.ts';
import { EventFeed } from './event-feed.ts';
import { jitterBuffer } from './jitter-buffer.ts';
import { lowestFirst } from './ladder.ts';
import { MediaClock } from '../../protocols/rtp/media-clock.ts';
import { SharedOutlet, type OutletSource } from './shared-outlet.ts';
import { SourceFeed } from '../../webrtc/feed/source-feed.ts';
import { openOutlet, type Outlet } from '../../webrtc/feed/outlet.ts';
import type { FeedOptions } from '../../webrtc/feed/track-feed.ts';
import type { ViewerOutlet } from './viewer-outlet.ts';
import { ViewerAudio } from './viewer-audio.ts';

/** Limit of payload types for which a stream is fed at once, per set of tracks and worker: each costs as much as a stream. */
const MAX_OUTLETS = 12;

type FeedConfig = Pick<WebrtcPublisherConfig, 'playoutDelay' | 'jitterBuffer' | 'delayBufferTimeMs'>;

/**
 * The RTP of one output stream: reads it while outlets need it, and releases everything when the last has gone. Bypassed WebRTC
 * input goes past this process, from the publisher's producer.
 */
export class StreamFeed {
  readonly events: EventFeed;
  readonly #stream: OutputStream;
  /** The stream as it is sent, after delays. */
  readonly #source: Stream;
  readonly #playoutDelay: WebrtcPublisherConfig['playoutDelay'];
  readonly #producers: LiveProducers;
  readonly #faults: FaultLog;
  readonly #cname = randomUUID();
  readonly #clock = new MediaClock();
  /** One for each set of tracks and codec with an outlet. */
  readonly #feeds = new Map<string, SourceFeed>();
  readonly #shared = new Map<string, SharedOutlet>();
  /** With the function that ends each. */
  readonly #viewerAudios = new Map<ViewerAudio, () => void>();
  #reader: Reader | undefined;
  #closed = false;

  constructor(stream: OutputStream, config: FeedConfig, producers: LiveProducers, log: Logger) {
    const { playoutDelay, delayBufferTimeMs } = config;
    const steady = config.jitterBuffer ? new DelayedStream(stream, jitterBuffer()) : stream;
    this.#stream = stream;
    this.#source = delayed(steady, delayBufferTimeMs);
    this.events = new EventFeed(stream, this.#source);
    this.#producers = producers;
    this.#playoutDelay = playoutDelay;
    this.#faults = new FaultLog(log);
  }

  /** True if another viewer costs no further feeding. */
  isFedTo(worker: MediaWorker): boolean {
    return [...this.#shared.values()].some((outlet) => outlet.worker === worker);
  }

  get outlets(): number {
    return this.#shared.size + this.#viewerAudios.size;
  }

  /**
   * Gets a producer of `tracks` on `worker` whose consumers use the payload types of `codec`; makes one when there is none.
   * @param tracks one, or several of one codec that can be layers (`webrtc/codecs.ts`, `hasLayers`), in any order
   * @throws mediaUnavailable
   */
  async outlet(tracks: readonly MediaTrack[], worker: MediaWorker, codec: RtpCodec): Promise<ViewerOutlet> {
    const place = `${keyOf(tracks)} ${worker.pid} `;
    const key = place + codecKey(codec);
    const known = this.#shared.get(key);
    if (known !== undefined) return known.use();
    const beside = [...this.#shared.keys()].filter((other) => other.startsWith(place)).length;
    if (this.#closed || beside >= MAX_OUTLETS) throw kilnError('mediaUnavailable');
    const sorted = lowestFirst(this.#stream, tracks);
    const sources = this.#live(sorted);
    const outlet =
      sources === undefined
        ? this.#openFed(key, this.#feed(tracks), worker, codec)
        : this.#open(key, sorted, worker, pipe(sources, worker, codec, this.#cname));
    return outlet.use();
  }

  /**
   * Makes a producer of audio for one viewer alone, who can change among `tracks`.
   * @param tracks of one codec; the first is sent first
   * @throws mediaUnavailable
   */
  async ownOutlet(tracks: readonly AudioTrack[], worker: MediaWorker, codec: RtpCodec): Promise<ViewerOutlet> {
    if (this.#closed) throw kilnError('mediaUnavailable');
    const first = tracks[0] as AudioTrack;
    const audio = new ViewerAudio(first, this.#options(first));
    const outlet = await this.#produce(worker, codec, [audio.ssrc]);
    const release = (): void => {
      outlet.direct.close();
      if (this.#viewerAudios.delete(audio)) this.#stopUnused();
    };
    if (this.#closed || outlet.producer.closed) {
      release();
      throw kilnError('mediaUnavailable');
    }
    outlet.producer.observer.once('close', release);
    this.#viewerAudios.set(audio, release);
    audio.open(outlet);
    this.#read();
    return { producer: outlet.producer, worker, tracks, select: (track) => audio.select(track), release };
  }

  /** Ends all producers, and with them their consumers. Idempotent. */
  close(): void {
    this.#closed = true;
    for (const outlet of [...this.#shared.values()]) outlet.close();
    for (const release of [...this.#viewerAudios.values()]) release();
    this.events.close();
    this.#faults.close();
  }

  #openFed(key: string, feed: SourceFeed, worker: MediaWorker, codec: RtpCodec): SharedOutlet {
    let detach: (() => void) | undefined;
    const opened = this.#produce(worker, codec, feed.ssrcs);
    const outlet = this.#open(
      key,
      feed.tracks,
      worker,
      opened.then((made) => ({
        producer: made.producer,
        beforeKey: feed.tracks.every((track) => hasKnownKeys(track.codec)) ? undefined : (act) => feed.beforeKey(act),
        close: () => {
          detach?.();
          made.direct.close();
        },
      })),
    );
    opened.then(
      (made) => {
        if (outlet.closed || made.producer.closed) return;
        detach = feed.addOutlet(made);
        this.#read();
      },
      () => outlet.close(),
    );
    return outlet;
  }

  #open(key: string, tracks: readonly MediaTrack[], worker: MediaWorker, source: Promise<OutletSource>): SharedOutlet {
    const outlet = new SharedOutlet(tracks, worker, source, () => {
      this.#shared.delete(key);
      this.#stopUnused();
    });
    this.#shared.set(key, outlet);
    return outlet;
  }

  #produce(worker: MediaWorker, codec: RtpCodec, ssrcs: readonly number[]): Promise<Outlet> {
    const extensions = this.#playoutDelay === undefined ? [] : [playoutDelayExtension()];
    return openOutlet(worker, codec, { ssrcs, extensions, cname: this.#cname });
  }

  /** Producers of the tracks, if all can go past this process: without a delay or header extensions of this server. */
  #live(tracks: readonly MediaTrack[]): LiveProducer[] | undefined {
    if (this.#source !== this.#stream) return undefined;
    if (this.#playoutDelay !== undefined && tracks[0]?.type === 'video') return undefined;
    const sources = tracks.flatMap(({ bypass, source }) => {
      return bypass && source !== undefined ? (this.#producers.get(this.#stream.input, source) ?? []) : [];
    });
    const isWhole =
      sources.length === tracks.length && sources.every(({ worker, producer }) => !worker.closed && !producer.closed);
    return isWhole && sources.length > 0 ? sources : undefined;
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
    this.#reader ??= this.#source.read({ packet: (packet) => this.#packet(packet) });
  }

  #packet(packet: Packet): void {
    for (const feed of this.#feeds.values()) feed.take(packet);
    for (const audio of this.#viewerAudios.keys()) audio.take(packet);
  }

  #stopUnused(): void {
    if (this.outlets > 0) return;
    this.#reader?.close();
    this.#reader = undefined;
    for (const feed of this.#feeds.values()) feed.close();
    this.#feeds.clear();
  }
}

/** Makes a key of a set of tracks, whatever their order. */
function keyOf(tracks: readonly MediaTrack[]): string {
  return tracks
    .map(({ id, codec }) => `${id}:${codec}`)
    .sort()
    .join('+');
}
