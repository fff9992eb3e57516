import { BitstreamError } from '../../codecs/bits.ts';
import type { RtmpProviderConfig } from '../../config/model.ts';
import { isExtendedAudio, parseAudioTag } from '../../containers/flv/audio.ts';
import { FlvError } from '../../containers/flv/error.ts';
import { isExtendedVideo, parseVideoTag } from '../../containers/flv/video.ts';
import type { InputStream } from '../../core/stream.ts';
import { MILLISECONDS, VIDEO_TIMEBASE } from '../../core/timebase.ts';
import { Timeline, type TrackTimeline } from '../../core/timeline.ts';
import type { AudioTrack, VideoTrack } from '../../core/track.ts';
import type { FaultLog } from '../../log.ts';
import { AudioSource } from './audio-source.ts';
import type { AudioUnit, VideoUnit } from './media-unit.ts';
import type { Declared } from './metadata.ts';
import { SECOND_MEDIUM_WAIT_MS, StartGate } from './start-gate.ts';
import { VideoSource } from './video-source.ts';

const VIDEO_ID = 0;
const AUDIO_ID = 1;
const TICKS_PER_MS = VIDEO_TIMEBASE.den / MILLISECONDS.den;
const DEFAULT_FIRST_MEDIA_WAIT_MS = 10_000;
/** Each change makes every viewer start anew: a source with more of them is broken. */
const MAX_CHANGES = 60;
const CHANGES_WINDOW_MS = 30_000;

export interface IngestOptions {
  readonly config: RtmpProviderConfig;
  /** Tags in the form of Enhanced RTMP are taken. */
  readonly extended: boolean;
  readonly faults: FaultLog;
  /** The source cannot be used or fell silent; called once. */
  readonly onFailure: (reason: string) => void;
}

/**
 * Audio and video messages of one publisher to packets of an input stream. Holds packets back until the tracks
 * are known, then loses none. Owns its timers; does not close the stream.
 */
export class Ingest {
  readonly #input: InputStream;
  readonly #options: IngestOptions;
  readonly #video = new VideoSource(VIDEO_ID);
  readonly #audio = new AudioSource(AUDIO_ID);
  readonly #gate = new StartGate();
  readonly #timeline: Timeline;
  /** Which track of a multitrack source is taken: the first to come. */
  #videoPick: number | undefined;
  #audioPick: number | undefined;
  #videoTrack: VideoTrack | undefined;
  #audioTrack: AudioTrack | undefined;
  #videoTimeline: TrackTimeline | undefined;
  #audioTimeline: TrackTimeline | undefined;
  /** Units held back; undefined once the stream is live. */
  #held: (VideoUnit | AudioUnit)[] | undefined = [];
  #firstMediaTimer: NodeJS.Timeout | undefined;
  #secondMediumTimer: NodeJS.Timeout | undefined;
  #silenceTimer: NodeJS.Timeout | undefined;
  #lastMedia = performance.now();
  #changes = 0;
  #changesSince = 0;
  #closed = false;

  constructor(input: InputStream, options: IngestOptions) {
    this.#input = input;
    this.#options = options;
    const { timestampMode, firstMediaWaitTimeoutMs, packetSilenceTimeoutMs } = options.config;
    this.#timeline = new Timeline({ timebase: MILLISECONDS, bits: 32 }, timestampMode !== 'Original');
    const firstMediaWait = firstMediaWaitTimeoutMs || DEFAULT_FIRST_MEDIA_WAIT_MS;
    this.#firstMediaTimer = setTimeout(() => this.#waitedForMedia(firstMediaWait), firstMediaWait).unref();
    if (packetSilenceTimeoutMs > 0) this.#watchSilence(packetSilenceTimeoutMs, packetSilenceTimeoutMs);
  }

  metadata(declared: Declared): void {
    this.#video.declared = declared;
    this.#audio.declared = declared;
    if (this.#held === undefined) return;
    this.#gate.announce(declared.announced);
    this.#startIfKnown();
  }

  /** Takes the body of a video message. */
  video(payload: Buffer, timestamp: number): void {
    if (this.#closed || payload.length === 0) return;
    this.#lastMedia = performance.now();
    if (isExtendedVideo(payload) && !this.#options.extended) return this.#refuseExtended();
    try {
      const tag = parseVideoTag(payload, this.#videoPick);
      if (tag === undefined) return;
      this.#videoPick = tag.trackId;
      const unit = this.#video.accept(tag, timestamp);
      if (this.#held !== undefined) this.#hold(unit);
      else if (unit !== undefined) this.#writeVideo(unit);
      if (unit !== undefined || tag.packet !== 'frame') return;
      this.#options.faults.count('video frame that cannot be decoded');
    } catch (error) {
      this.#fault('video', error);
    }
  }

  /** Takes the body of an audio message. */
  audio(payload: Buffer, timestamp: number): void {
    if (this.#closed || payload.length === 0) return;
    this.#lastMedia = performance.now();
    if (isExtendedAudio(payload) && !this.#options.extended) return this.#refuseExtended();
    try {
      const tag = parseAudioTag(payload, this.#audioPick);
      if (tag === undefined) return;
      this.#audioPick = tag.trackId;
      const unit = this.#audio.accept(tag, timestamp);
      if (this.#held !== undefined) this.#hold(unit);
      else if (unit !== undefined) this.#writeAudio(unit);
    } catch (error) {
      this.#fault('audio', error);
    }
  }

  /** Idempotent. */
  close(): void {
    this.#closed = true;
    this.#held = undefined;
    clearTimeout(this.#firstMediaTimer);
    clearTimeout(this.#secondMediumTimer);
    clearTimeout(this.#silenceTimer);
  }

  #hold(unit: VideoUnit | AudioUnit | undefined): void {
    if (unit !== undefined) {
      this.#held?.push(unit);
      this.#gate.held(unit.data.length);
    }
    if (this.#video.track !== undefined) this.#gate.known('video');
    if (this.#audio.track !== undefined) this.#gate.known('audio');
    this.#startIfKnown();
  }

  #startIfKnown(): void {
    if (this.#gate.open) {
      this.#start();
    } else if (this.#gate.anyKnown) {
      this.#secondMediumTimer ??= setTimeout(() => {
        this.#gate.waited();
        this.#startIfKnown();
      }, SECOND_MEDIUM_WAIT_MS).unref();
    }
  }

  #start(): void {
    const held = this.#held ?? [];
    this.#held = undefined;
    clearTimeout(this.#firstMediaTimer);
    clearTimeout(this.#secondMediumTimer);
    // Each medium begins with the configuration of its first unit; a later one shows when its turn comes.
    this.#videoTrack = held.find(isVideo)?.track ?? this.#video.track;
    this.#audioTrack = held.find(isAudio)?.track ?? this.#audio.track;
    let first = held[0]?.time;
    for (const { time } of held) if (first !== undefined && isBefore(time, first)) first = time;
    if (first !== undefined) this.#timeline.start(first);
    this.#announce();
    for (const unit of held) {
      if (isVideo(unit)) this.#writeVideo(unit);
      else this.#writeAudio(unit);
    }
  }

  #writeVideo({ track, data, key, time, compositionTime }: VideoUnit): void {
    if (track !== this.#videoTrack) {
      this.#videoTrack = track;
      this.#announce();
    }
    this.#videoTimeline ??= this.#timeline.track(VIDEO_TIMEBASE);
    const dts = this.#videoTimeline.next(time);
    const pts = Math.max(dts, dts + compositionTime * TICKS_PER_MS);
    this.#input.write({ track, dts, pts, duration: 0, key, data });
  }

  #writeAudio({ track, data, time, duration }: AudioUnit): void {
    this.#audioTimeline ??= this.#timeline.track(track.timebase);
    if (track !== this.#audioTrack) {
      this.#audioTrack = track;
      this.#audioTimeline.setTimebase(track.timebase);
      this.#announce();
    }
    const dts = this.#audioTimeline.nextFrame(time, duration);
    this.#input.write({ track, dts, pts: dts, duration, key: true, data });
  }

  #announce(): void {
    if (this.#lastMedia - this.#changesSince > CHANGES_WINDOW_MS) {
      this.#changesSince = this.#lastMedia;
      this.#changes = 0;
    }
    if (++this.#changes > MAX_CHANGES) this.#fail('the configuration of the stream changes too often');
    this.#input.setTracks([this.#videoTrack, this.#audioTrack].filter((track) => track !== undefined));
  }

  #waitedForMedia(waitMs: number): void {
    this.#gate.waited();
    this.#startIfKnown();
    if (this.#held !== undefined) this.#fail(`no playable audio or video within ${waitMs} ms`);
  }

  #watchSilence(timeoutMs: number, delayMs: number): void {
    this.#silenceTimer = setTimeout(() => {
      const silentMs = performance.now() - this.#lastMedia;
      if (silentMs >= timeoutMs) this.#fail(`no packet for ${timeoutMs} ms`);
      else this.#watchSilence(timeoutMs, timeoutMs - silentMs);
    }, delayMs).unref();
  }

  #fault(kind: 'video' | 'audio', error: unknown): void {
    if (!(error instanceof FlvError) && !(error instanceof BitstreamError)) throw error;
    this.#options.faults.count(error.message);
    if (this.#held === undefined || error instanceof BitstreamError) return;
    this.#gate.unusable(kind);
    this.#startIfKnown();
  }

  #refuseExtended(): void {
    this.#fail('the source sends Enhanced RTMP, which is off (Modules/ERTMP)');
  }

  #fail(reason: string): void {
    if (this.#closed) return;
    this.close();
    this.#options.onFailure(reason);
  }
}

function isVideo(unit: VideoUnit | AudioUnit): unit is VideoUnit {
  return unit.track.type === 'video';
}

function isAudio(unit: VideoUnit | AudioUnit): unit is AudioUnit {
  return unit.track.type === 'audio';
}

/** Order of two timestamps of 32 bits that may have wrapped in between. */
function isBefore(a: number, b: number): boolean {
  const distance = (a - b + 2 ** 32) % 2 ** 32;
  return distance > 2 ** 31;
}
