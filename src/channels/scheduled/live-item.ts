import type { Packet } from '../../core/packet.ts';
import { isMedia, type DataTrack, type MediaTrack, type Track } from '../../core/track.ts';
import type { LiveSource } from '../sources/live-source.ts';
import type { LiveSources, ReadBy } from '../sources/live-sources.ts';
import type { StreamUrl } from '../sources/stream-url.ts';
import {
  FIRST_AUDIO_ID,
  FIRST_DATA_ID,
  VIDEO_ID,
  type ItemSource,
  type ItemUnit,
  type TrackWishes,
} from './item-source.ts';
import { UnitQueue } from './unit-queue.ts';

/** Most media that may wait until it is due: a stream whose clock runs away is joined again. */
const MAX_WAITING_MS = 30_000;
const MAX_WAITING_BYTES = 64 * 1024 * 1024;
/** Lead that audio may have over video, whatever the channel tolerates. */
const VIDEO_WITHIN_MS = 1000;
/** A longer time between two frames of video is not considered usual. */
const LONGEST_STEP_MS = 10_000;
/** A greater step between audio frames is a jump of the stream's clock, or lost audio. */
const AUDIO_STEP_MS = 200;

export interface LiveItemOptions {
  readonly sources: LiveSources;
  readonly url: StreamUrl;
  readonly by: ReadBy;
  readonly wishes: TrackWishes;
  readonly forwardData: boolean;
  /** The item fails without video for this long, though its audio continues. */
  readonly toleranceMs: number;
  /** As in FileSource. */
  readonly onChange: () => void;
}

/** A stream of the cluster as an item of a channel. */
export class LiveItem implements ItemSource {
  readonly queue = new UnitQueue();
  readonly isLive = true;
  readonly #options: LiveItemOptions;
  readonly #stop = new AbortController();
  #source: LiveSource | undefined;
  /** Tracks of the channel by tracks of the stream. */
  #tracks: ReadonlyMap<Track, MediaTrack | DataTrack> = new Map();
  #hasVideo = false;
  /**
   * Milliseconds of audio since the last video frame, and the most between two; undefined before the first video
   * frame.
   */
  #audioMs: number | undefined;
  #mostAudioMs = 0;
  /** Decode time of the last audio frame, in milliseconds of the stream. */
  #audioAt = 0;
  #isWaiting = true;
  #state: ItemSource['state'] = 'opening';
  #failure: string | undefined;

  constructor(options: LiveItemOptions) {
    this.#options = options;
    void this.#open();
  }

  get state(): ItemSource['state'] {
    return this.#state;
  }

  get failure(): string | undefined {
    return this.#failure;
  }

  taken(): void {
    this.#isWaiting = false;
  }

  close(): void {
    this.#stop.abort();
    this.#source?.close();
    this.queue.clear();
  }

  async #open(): Promise<void> {
    const { sources, url, by } = this.#options;
    try {
      const sink = {
        tracks: (tracks: readonly Track[]) => this.#select(tracks),
        packet: (packet: Packet) => this.#packet(packet),
        end: (reason: string) => this.#end(`the stream has ended: ${reason}`),
      };
      const source = await sources.open(url, by, sink, this.#stop.signal);
      if (this.#stop.signal.aborted) source?.close();
      else this.#source = source;
    } catch (error) {
      this.#end((error as Error).message);
    }
  }

  #select(tracks: readonly Track[]): readonly Track[] {
    const { wishes, forwardData } = this.#options;
    const chosen = new Map<Track, MediaTrack | DataTrack>();
    const counts = { audio: 0, data: 0 };
    this.#hasVideo = false;
    for (const track of tracks) {
      const known = this.#tracks.get(track);
      if (track.type === 'video' && wishes.video && !this.#hasVideo) {
        this.#hasVideo = true;
        chosen.set(track, known ?? own({ ...track, id: VIDEO_ID, name: 'Video' }));
      } else if (track.type === 'audio' && counts.audio < wishes.audio.length) {
        const wish = wishes.audio[counts.audio];
        const id = FIRST_AUDIO_ID + counts.audio++;
        chosen.set(track, known ?? own({ ...track, ...wish, id }));
      } else if (track.type === 'data' && forwardData) {
        chosen.set(track, known ?? own({ ...track, id: FIRST_DATA_ID + counts.data++ }));
      }
    }
    this.#tracks = chosen;
    if (!this.#hasVideo) this.#audioMs = undefined;
    if (![...chosen.keys()].some(isMedia)) this.#end('the stream has no track that the channel plays');
    return [...chosen.keys()];
  }

  #packet(packet: Packet): void {
    const track = this.#tracks.get(packet.track);
    if (track === undefined || this.#state === 'ended') return;
    const { dts, pts, duration, key, data } = packet;
    const ms = (1000 * track.timebase.num) / track.timebase.den;
    const at = dts * ms;
    const shownAt = isMedia(track) ? pts * ms : at;
    const unit = { track, dts, pts, duration, key, data, at, shownAt };
    const { queue } = this;
    const wasEmpty = queue.next === undefined;
    queue.push(unit);
    const begins = track.type === 'video' ? key : !this.#hasVideo && track.type === 'audio';
    // until it plays, only the start is kept
    if (this.#isWaiting && begins) queue.beginWith(unit);
    if (queue.span > MAX_WAITING_MS || queue.bytes > MAX_WAITING_BYTES)
      return this.#end('the clock of the stream is not steady');
    if (this.#isVideoGone(unit)) return this.#end('its video has stopped while its audio goes on');
    const wasOpening = this.#state === 'opening';
    if (wasOpening && begins) this.#state = 'playing';
    if (wasEmpty || wasOpening) this.#options.onChange();
  }

  /** Measured by the audio since the last video: where timestamps jump, one track leads the other for a moment. */
  #isVideoGone({ track: { id }, at }: ItemUnit): boolean {
    if (id === VIDEO_ID) {
      this.#mostAudioMs = Math.min(LONGEST_STEP_MS, Math.max(this.#mostAudioMs, this.#audioMs ?? 0));
      this.#audioMs = 0;
      return false;
    }
    if (id !== FIRST_AUDIO_ID) return false;
    const step = at - this.#audioAt;
    this.#audioAt = at;
    if (this.#audioMs === undefined) return false;
    if (step > 0 && step <= AUDIO_STEP_MS) this.#audioMs += step;
    const most = Math.max(VIDEO_WITHIN_MS, this.#options.toleranceMs, 2 * this.#mostAudioMs);
    return this.#mostAudioMs > 0 && this.#audioMs > most;
  }

  #end(failure: string): void {
    if (this.#state === 'ended' || this.#stop.signal.aborted) return;
    this.#state = 'ended';
    this.#failure = failure;
    this.#options.onChange();
  }
}

/** Copies a track without fields that describe its encoder. */
function own(track: MediaTrack | DataTrack): MediaTrack | DataTrack {
  const { encoder: _, source: __, ...rest } = track;
  return Object.freeze({ ...rest, bypass: false });
}
