import { FaultLog } from '../../log/log.ts';
import { pause } from '../../lib/pause.ts';
import { Watchdog } from '../../lib/watchdog.ts';
import type { TrackSink } from '../intake/track-writer.ts';
import { TsSource } from '../mpegts-intake/source.ts';
import { tsConfig } from '../mpegts-intake/ts-config.ts';
import { shownUrl } from '../../protocols/outbound/shown.ts';
import { PullError } from '../pull/error.ts';
import type { PullSource, SourceOptions, SourceSink } from '../pull/source.ts';
import { trackSink } from '../pull/track-sink.ts';
import { follow, START_TARGETS } from './follower.ts';
import { Fmp4Source } from './fmp4-source.ts';
import { Pacer } from './pacer.ts';
import type { MediaPlaylist, Resource, Segment, SegmentKey } from './playlist.ts';
import type { HlsServer } from './server.ts';

/** Room beside the segments with which a live stream begins, in seconds. */
const LEAD_SECONDS = 10;
/** Silence after which the stream ends, in target durations. */
const SILENT_TARGETS = 3;
const SEGMENT_TRIES = 3;
const RETRY_MS = 500;
/** Segments in a row that could not be read. */
const MAX_MISSING = 3;
/** First byte of each packet (ISO/IEC 13818-1, 2.4.3.2). */
const SYNC_BYTE = 0x47;

type Source = TsSource | Fmp4Source;

export interface HlsSourceOptions extends SourceOptions {
  readonly server: HlsServer;
  /** URL of the playlist with the segments. */
  readonly uri: URL;
  readonly playlist: MediaPlaylist;
  /** Last segment that the stream has got before. */
  readonly after: Segment | undefined;
  /** Ends all requests of the server. */
  readonly stop: AbortController;
  /** Called with each segment that was read. */
  readonly onSegment: (segment: Segment) => void;
}

/** A stream of HLS, in its own time: the segments come faster, and are held back. */
export class HlsSource implements PullSource {
  readonly #options: HlsSourceOptions;
  readonly #faults: FaultLog;
  #media: { readonly sink: SourceSink; readonly pacer: Pacer; readonly source: Source } | undefined;
  /** Initialization of the segments. */
  #map: string | undefined;
  #silence: Watchdog | undefined;
  /** Segments in a row that could not be read, and why the last one could not. */
  #missing = 0;
  #failure: string | undefined;
  #closed = false;

  constructor(options: HlsSourceOptions) {
    this.#options = options;
    this.#faults = new FaultLog(options.log);
  }

  get connection() {
    return this.#options.server.connection;
  }

  get trouble(): string | undefined {
    return this.#faults.latest;
  }

  async play(sink: SourceSink): Promise<void> {
    const { clock, log, silenceMs, playlist } = this.#options;
    const targetMs = playlist.target * 1000;
    if (silenceMs !== undefined) {
      const limitMs = Math.max(silenceMs, SILENT_TARGETS * targetMs);
      this.#silence = new Watchdog(limitMs, () => this.#end(`no media for ${limitMs} ms`));
    }
    const pacer = new Pacer({
      sink: this.#heard(trackSink(sink, clock)),
      leadSeconds: START_TARGETS * playlist.target + LEAD_SECONDS,
      isLive: !playlist.isEnded,
    });
    const common = { sink: pacer, faults: this.#faults, onFailure: (reason: string) => this.#end(reason) };
    const source = playlist.segments.some(({ map }) => map !== undefined)
      ? new Fmp4Source({ ...common, keepsTimes: clock.keepsTimes })
      : new TsSource({ ...common, config: tsConfig(clock, 0), isFile: true, log });
    this.#media = { sink, pacer, source };
    void this.#run();
  }

  close(): void {
    if (this.#closed) return;
    this.#closed = true;
    this.#options.stop.abort();
    this.#silence?.close();
    this.#media?.pacer.close();
    this.#media?.source.close();
    this.#faults.close();
  }

  async #run(): Promise<void> {
    const { server, uri, playlist, after, stop, onSegment } = this.#options;
    const load = async (): Promise<MediaPlaylist> => {
      const loaded = await server.playlist(uri);
      if (loaded.kind === 'media') return loaded;
      throw new PullError('the playlist has no segments any more');
    };
    let reason: string | undefined;
    try {
      for await (const segment of follow(playlist, { load, signal: stop.signal, after })) {
        if (segment.isBehindGap) this.#faults.count('segments left the playlist before they were read');
        if (segment.isGap) this.#faults.count('segments are missing at the server');
        if (segment.isBehindGap || segment.isGap) this.#media?.source.lost();
        if (!segment.isGap) await this.#take(segment);
        onSegment(segment);
      }
    } catch (error) {
      if (!(error instanceof PullError)) throw error;
      reason = error.message;
    }
    // what was read is worth to be seen
    await this.#media?.pacer.drained();
    this.#end(reason ?? this.#failure ?? 'the playlist has ended');
  }

  /** @throws PullError when no more segments are to be expected */
  async #take(segment: Segment): Promise<void> {
    const { stop, playlist } = this.#options;
    for (let tries = 1; ; tries++) {
      const progress = { bytes: 0 };
      try {
        await this.#read(segment, progress);
        this.#missing = 0;
        this.#failure = undefined;
        return;
      } catch (error) {
        if (!(error instanceof PullError) || this.#closed) throw error;
        if (progress.bytes === 0 && tries < SEGMENT_TRIES) {
          await pause(Math.min(RETRY_MS * tries, playlist.target * 500), stop.signal);
          continue;
        }
        this.#failure = error.message;
        if (++this.#missing === MAX_MISSING) throw error;
        this.#faults.count('segments could not be read');
        this.#media?.source.lost();
        return;
      }
    }
  }

  async #read({ key, sequence, map, ...resource }: Segment, progress: { bytes: number }): Promise<void> {
    const { server } = this.#options;
    const source = this.#media?.source;
    if (map === undefined && source instanceof Fmp4Source) throw new PullError('its segments have no initialization');
    if (map !== undefined) await this.#initialize(map, key, sequence);
    for await (const bytes of server.resource(resource, key, sequence)) {
      if (this.#media === undefined || this.#closed) return;
      const { sink, source, pacer } = this.#media;
      if (source instanceof TsSource && progress.bytes === 0 && bytes.length > 0 && bytes[0] !== SYNC_BYTE)
        throw new PullError(`${shownUrl(resource.uri.href)} is no transport stream`);
      progress.bytes += bytes.length;
      sink.received(bytes.length);
      source.push(bytes);
      await pacer.room();
    }
    // segments end with whole frames (RFC 8216 section 3.2), and counters may begin anew
    this.#media?.source.flush();
  }

  async #initialize(map: Resource, key: SegmentKey | undefined, sequence: number): Promise<void> {
    const source = this.#media?.source;
    if (!(source instanceof Fmp4Source)) throw new PullError('its segments become fragmented MP4');
    const name = `${map.uri.href} ${map.range?.offset}`;
    if (name === this.#map) return;
    source.begin(await this.#options.server.initialization(map, key, sequence));
    this.#map = name;
  }

  #heard(sink: TrackSink): TrackSink {
    return {
      setTracks: (tracks) => sink.setTracks(tracks),
      write: (packet) => {
        this.#silence?.heard();
        sink.write(packet);
      },
    };
  }

  #end(reason: string): void {
    if (this.#closed) return;
    this.close();
    this.#media?.sink.end(reason);
  }
}
