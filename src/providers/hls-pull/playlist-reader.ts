import type { FaultLog, Logger } from '../../log/log.ts';
import { pause } from '../../lib/pause.ts';
import { shownUrl } from '../../protocols/outbound/shown.ts';
import { TsReader } from '../mpegts-intake/reader.ts';
import { PullError } from '../pull/error.ts';
import { follow, type FollowedSegment } from './follower.ts';
import { Fmp4Reader } from './fmp4-reader.ts';
import type { Feed, JoinedIntake } from './joined-intake.ts';
import { beginsPackedAudio, PackedAudioReader } from './packed-audio.ts';
import type { MediaPlaylist, Resource, Segment } from './playlist.ts';
import { isWanted, type SegmentReader, type SegmentReaderEvents, type Wanted } from './segment-reader.ts';
import type { HlsServer } from './server.ts';
import type { Variables } from './variables.ts';

const SEGMENT_TRIES = 3;
const RETRY_MS = 500;
/** Segments in a row that could not be read. */
const MAX_MISSING = 3;
/** First byte of each packet (ISO/IEC 13818-1, 2.4.3.2). */
const SYNC_BYTE = 0x47;

/** A playlist of segments, and where to begin in it. */
export interface ChosenPlaylist {
  readonly uri: URL;
  readonly playlist: MediaPlaylist;
  /** Variables of the multivariant playlist that led to it. */
  readonly variables: Variables | undefined;
  /** Sequence number to begin with. */
  readonly from: number;
  readonly wanted: Wanted;
}

export interface PlaylistReaderOptions extends ChosenPlaylist {
  readonly server: HlsServer;
  readonly intake: JoinedIntake;
  readonly faults: FaultLog;
  readonly log: Logger;
  readonly signal: AbortSignal;
  /** Waits until more is wanted. */
  readonly room: () => Promise<void>;
  readonly onBytes: (bytes: number) => void;
  /** Called with each segment that was read, or given up. */
  readonly onSegment: (segment: Segment) => void;
  /** Called when the playlist has ended. */
  readonly onEnd: () => void;
}

/** Reads one playlist with its segments, and gives their units to the stream. */
export class PlaylistReader {
  readonly #options: PlaylistReaderOptions;
  readonly #feed: Feed;
  #reader: SegmentReader | undefined;
  /** Initialization of the segments. */
  #map: string | undefined;
  /** Segments in a row that could not be read, and why the last one could not. */
  #missing = 0;
  #failure: string | undefined;

  constructor(options: PlaylistReaderOptions) {
    this.#options = options;
    this.#feed = options.intake.feed(() => this.#reader?.tracks ?? []);
  }

  /**
   * Reads until the playlist has ended, or the signal aborts.
   * @returns why it ended
   * @throws PullError when it cannot be read any more
   */
  async run(): Promise<string> {
    const { server, intake, uri, playlist, variables, from, signal, onSegment, onEnd } = this.#options;
    const load = async (): Promise<MediaPlaylist> => {
      const loaded = await server.playlist(uri, variables);
      if (loaded.kind === 'media') return loaded;
      throw new PullError('the playlist has no segments any more');
    };
    for await (const segment of follow(playlist, { load, signal, from })) {
      this.#begin(segment);
      if (!segment.isGap) await this.#take(segment);
      onSegment(segment);
    }
    intake.end(this.#feed);
    if (!signal.aborted) onEnd();
    return this.#failure ?? 'the playlist has ended';
  }

  /** Takes note of what is missing before a segment, and of its period. */
  #begin({ missing, isGap, duration, restarts, discontinuity }: FollowedSegment): void {
    const { faults, playlist } = this.#options;
    const period = `${restarts} ${discontinuity}`;
    const isNew = this.#feed.period !== period && this.#feed.period !== '';
    if (missing > 0) faults.count('segments left the playlist before they were read');
    if (isGap) faults.count('segments are missing at the server');
    if (isNew) this.#reader?.restart();
    else if (missing > 0 || isGap) this.#reader?.lost();
    this.#feed.clock.skip(missing * playlist.target + (isGap ? duration : 0));
    this.#feed.period = period;
  }

  /** @throws PullError when no more segments are to be expected */
  async #take(segment: FollowedSegment): Promise<void> {
    const { faults, playlist, signal } = this.#options;
    for (let tries = 1; ; tries++) {
      const progress = { bytes: 0 };
      try {
        await this.#read(segment, progress);
        this.#missing = 0;
        this.#failure = undefined;
        return;
      } catch (error) {
        if (!(error instanceof PullError) || signal.aborted) throw error;
        if (progress.bytes === 0 && tries < SEGMENT_TRIES) {
          await pause(Math.min(RETRY_MS * tries, playlist.target * 500), signal);
          continue;
        }
        this.#failure = error.message;
        if (++this.#missing === MAX_MISSING) throw error;
        faults.count('segments could not be read');
        this.#reader?.lost();
        this.#feed.clock.skip(segment.duration);
        return;
      }
    }
  }

  async #read(segment: FollowedSegment, progress: { bytes: number }): Promise<void> {
    const { server, intake, signal, room, onBytes } = this.#options;
    const { key, sequence, map, uri, range } = segment;
    if (map === undefined && this.#reader instanceof Fmp4Reader)
      throw new PullError('its segments have no initialization');
    if (map !== undefined) await this.#initialize(map, segment);
    for await (const bytes of server.resource({ uri, range }, key, sequence)) {
      if (signal.aborted) return;
      if (bytes.length === 0) continue;
      if (progress.bytes === 0 && map === undefined) this.#open(uri, bytes);
      progress.bytes += bytes.length;
      onBytes(bytes.length);
      this.#reader?.push(bytes);
      await intake.turn(this.#feed);
      await room();
    }
    // segments end with whole frames (RFC 8216 section 3.2), and counters may begin anew
    this.#reader?.flush();
  }

  /** Chooses the reader of segments without an initialization, by how one begins. */
  #open(uri: URL, bytes: Buffer): void {
    const { faults, log, wanted } = this.#options;
    const events = this.#events;
    if (beginsPackedAudio(bytes)) {
      if (wanted === 'video') throw new PullError(`${shownUrl(uri.href)} has no video`);
      if (!(this.#reader instanceof PackedAudioReader)) this.#reader = new PackedAudioReader({ faults, events });
      return;
    }
    if (bytes[0] !== SYNC_BYTE)
      throw new PullError(`${shownUrl(uri.href)} is no transport stream, and no packed audio with timestamps`);
    if (this.#reader instanceof TsReader) return;
    this.#reader = new TsReader({
      audioMap: [],
      log,
      faults,
      isFile: true,
      wants: (kind) => isWanted(kind, wanted),
      onTracks: events.tracks,
      onUnit: events.unit,
    });
  }

  async #initialize(map: Resource, { key, sequence, restarts, discontinuity }: FollowedSegment): Promise<void> {
    const { server, faults, wanted } = this.#options;
    // what is at a URL may change with the clock
    const name = `${map.uri.href} ${map.range?.offset} ${restarts} ${discontinuity}`;
    if (name === this.#map) return;
    const init = await server.initialization(map, key, sequence);
    const known = this.#reader instanceof Fmp4Reader ? this.#reader : undefined;
    const reader = known ?? new Fmp4Reader({ wanted, faults, events: this.#events });
    this.#reader = reader;
    reader.begin(init);
    this.#map = name;
  }

  get #events(): SegmentReaderEvents {
    const { intake } = this.#options;
    return {
      tracks: (announced, ids) => intake.announce(this.#feed, announced, ids),
      unit: (unit) => intake.unit(this.#feed, unit),
    };
  }
}
