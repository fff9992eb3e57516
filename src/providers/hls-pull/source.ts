import type { Packet } from '../../core/packet.ts';
import { FaultLog } from '../../log/log.ts';
import { Watchdog } from '../../lib/watchdog.ts';
import type { TrackSink } from '../intake/track-writer.ts';
import { VIDEO_WAIT_MS } from '../mpegts-intake/source.ts';
import { PullError } from '../pull/error.ts';
import type { PullSource, SourceOptions, SourceSink } from '../pull/source.ts';
import { trackSink } from '../pull/track-sink.ts';
import { START_TARGETS } from './follower.ts';
import { JoinedIntake } from './joined-intake.ts';
import { Pacer } from './pacer.ts';
import { PlaylistReader, type ChosenPlaylist } from './playlist-reader.ts';
import type { Segment } from './playlist.ts';
import { isWanted } from './segment-reader.ts';
import type { HlsServer } from './server.ts';

/** Room beside the segments with which a live stream begins, in seconds. */
const LEAD_SECONDS = 10;
/** Silence after which the stream ends, in target durations. */
const SILENT_TARGETS = 3;

export interface HlsSourceOptions extends SourceOptions {
  readonly server: HlsServer;
  /** The playlist with the video, and the one with the audio where that is not in the first. */
  readonly playlists: readonly [ChosenPlaylist, ...ChosenPlaylist[]];
  /** Ends all requests of the server. */
  readonly stop: AbortController;
  /** Called with each segment of the first playlist that was read. */
  readonly onSegment: (segment: Segment) => void;
}

interface Media {
  readonly sink: SourceSink;
  readonly pacer: Pacer;
  readonly intake: JoinedIntake;
}

interface Silence {
  readonly chosen: ChosenPlaylist;
  readonly watchdog: Watchdog;
}

/** A stream of HLS, in its own time: the segments come faster, and are held back. */
export class HlsSource implements PullSource {
  readonly #options: HlsSourceOptions;
  readonly #faults: FaultLog;
  #media: Media | undefined;
  #silences: readonly Silence[] = [];
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
    const { clock, playlists } = this.#options;
    this.#silences = playlists.flatMap((chosen) => this.#watch(chosen) ?? []);
    const pacer = new Pacer({
      sink: this.#heard(trackSink(sink, clock)),
      leadSeconds: START_TARGETS * Math.max(...playlists.map(({ playlist }) => playlist.target)) + LEAD_SECONDS,
      isLive: !playlists[0].playlist.isEnded,
    });
    const isFragmented = playlists[0].playlist.segments.some(({ map }) => map !== undefined);
    const intake = new JoinedIntake({
      sink: pacer,
      keepsTimes: clock.keepsTimes,
      // segments of fragmented MP4 begin with key frames
      ...(!isFragmented && { videoWaitMs: VIDEO_WAIT_MS }),
      onFailure: (reason) => this.#end(reason),
    });
    this.#media = { sink, pacer, intake };
    void this.#run(this.#media);
  }

  close(): void {
    if (this.#closed) return;
    this.#closed = true;
    this.#options.stop.abort();
    for (const { watchdog } of this.#silences) watchdog.close();
    this.#media?.pacer.close();
    this.#media?.intake.close();
    this.#faults.close();
  }

  async #run(media: Media): Promise<void> {
    const { playlists, stop } = this.#options;
    const readers = playlists.map((chosen) => this.#reader(chosen, media));
    let reason: string;
    try {
      [reason = ''] = await Promise.all(readers.map((reader) => reader.run()));
    } catch (error) {
      reason = error instanceof PullError ? error.message : 'internal error';
      if (!(error instanceof PullError)) this.#options.log.error({ err: error }, 'receiving a stream over HLS failed');
      // nothing more is read for a part of the stream
      stop.abort();
    }
    // what was read is worth to be seen
    await media.pacer.drained();
    this.#end(reason);
  }

  #reader(chosen: ChosenPlaylist, { sink, pacer, intake }: Media): PlaylistReader {
    const { server, playlists, log, stop, onSegment } = this.#options;
    const isFirst = chosen === playlists[0];
    return new PlaylistReader({
      ...chosen,
      server,
      intake,
      faults: this.#faults,
      log,
      signal: stop.signal,
      room: () => pacer.room(chosen.wanted),
      onBytes: (bytes) => sink.received(bytes),
      onSegment: (segment) => {
        if (isFirst) onSegment(segment);
      },
      onEnd: () => this.#silences.find((silence) => silence.chosen === chosen)?.watchdog.close(),
    });
  }

  #watch(chosen: ChosenPlaylist): Silence | undefined {
    const { silenceMs } = this.#options;
    if (silenceMs === undefined) return undefined;
    const limitMs = Math.max(silenceMs, SILENT_TARGETS * chosen.playlist.target * 1000);
    const what = chosen.wanted ?? 'media';
    return { chosen, watchdog: new Watchdog(limitMs, () => this.#end(`no ${what} for ${limitMs} ms`)) };
  }

  #heard(sink: TrackSink): TrackSink {
    return {
      setTracks: (tracks) => sink.setTracks(tracks),
      write: (packet: Packet) => {
        for (const { chosen, watchdog } of this.#silences)
          if (isWanted(packet.track.type, chosen.wanted)) watchdog.heard();
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
