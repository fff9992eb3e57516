import { BitstreamError } from '../../codecs/bits.ts';
import { BOX_HEAD_BYTES } from '../../containers/fmp4/read-box.ts';
import { readInit, readSamples, type FragmentedTrack, type ReadSample } from '../../containers/fmp4/reader.ts';
import { Timeline } from '../../core/timeline.ts';
import { VIDEO_TIMEBASE } from '../../core/timebase.ts';
import type { FaultLog } from '../../log/log.ts';
import { AudioIntake } from '../intake/audio-intake.ts';
import { Intake } from '../intake/intake.ts';
import { streamTrackId } from '../intake/track-id.ts';
import { TrackWriter, type TrackSink } from '../intake/track-writer.ts';
import { VideoIntake } from '../intake/video-intake.ts';
import { PullError } from '../pull/error.ts';

const CLOCK = { timebase: VIDEO_TIMEBASE, bits: 62 };
/** Limit of a box, and of all of a fragment. */
const MAX_BYTES = 64 * 1024 * 1024;
/** Boxes of a fragment. */
const MAX_BOXES = 8;

interface Lane {
  readonly track: FragmentedTrack;
  readonly intake: VideoIntake | AudioIntake;
  /** Track id in the input stream. */
  readonly id: number;
  /** Frames are left out up to a key frame. */
  waits: boolean;
}

export interface Fmp4SourceOptions {
  readonly sink: TrackSink;
  /** Whether times are those of the source; else they begin with 0. */
  readonly keepsTimes: boolean;
  readonly faults: FaultLog;
  /** Called once, when the source sends nothing playable. */
  readonly onFailure: (reason: string) => void;
}

/** Converts segments of fragmented MP4 (RFC 8216 section 3.3) to packets of an input stream. */
export class Fmp4Source {
  readonly #options: Fmp4SourceOptions;
  readonly #writer: TrackWriter;
  readonly #intake: Intake;
  #lanes: readonly Lane[] = [];
  /** Bytes from the beginning of a box on, and how many of them are needed to go on. */
  #chunks: Buffer[] = [];
  #bytes = 0;
  #needed = BOX_HEAD_BYTES;
  /** Boxes from `moof` on. */
  #fragment: Buffer[] = [];

  constructor(options: Fmp4SourceOptions) {
    this.#options = options;
    const { sink, keepsTimes, onFailure } = options;
    this.#writer = new TrackWriter({
      sink,
      clock: CLOCK,
      timeline: new Timeline(CLOCK, !keepsTimes, null),
      onUnsteady: () => this.#intake.fail('the configuration of the stream changes too often'),
    });
    this.#intake = new Intake({
      writer: this.#writer,
      silenceMs: 0,
      tracks: () => this.#lanes.flatMap(({ intake }) => intake.track ?? []),
      onFailure,
    });
  }

  /** Begins to read segments of another initialization. @throws PullError when none of its tracks can be read */
  begin(init: Buffer): void {
    const unsupported: string[] = [];
    try {
      const tracks = readInit(init, ({ message }) => unsupported.push(message));
      const counts = { video: 0, audio: 0 };
      const lanes = tracks.map((track) => this.#open(track, counts[track.description.type]++));
      this.#lanes = lanes;
      if (this.#lanes.length === 0) throw new PullError(`its tracks are not supported: ${unsupported.join(', ')}`);
      this.#intake.announce({ video: numbers(counts.video), audio: numbers(counts.audio) });
    } catch (error) {
      if (!(error instanceof RangeError || error instanceof BitstreamError)) throw error;
      throw new PullError(`its initialization is damaged: ${error.message}`);
    }
  }

  /** @param bytes any portion of a segment; kept @throws PullError when they are no fragmented MP4 */
  push(bytes: Buffer): void {
    this.#chunks.push(bytes);
    this.#bytes += bytes.length;
    while (this.#bytes >= this.#needed) {
      const all = Buffer.concat(this.#chunks);
      this.#chunks = [all];
      this.#needed = all.readUInt32BE(0);
      if (this.#needed < BOX_HEAD_BYTES || this.#needed > MAX_BYTES)
        throw new PullError('its segments are no fragmented MP4');
      if (all.length < this.#needed) return;
      this.#take(all.subarray(0, this.#needed));
      const rest = all.subarray(this.#needed);
      this.#chunks = [rest];
      this.#bytes = rest.length;
      this.#needed = BOX_HEAD_BYTES;
    }
  }

  /** A segment is over. */
  flush(): void {
    this.#chunks = [];
    this.#bytes = 0;
    this.#needed = BOX_HEAD_BYTES;
    this.#fragment = [];
  }

  /** Media is missing here. */
  lost(): void {
    this.flush();
    for (const lane of this.#lanes) lane.waits = lane.intake.kind === 'video';
  }

  close(): void {
    this.#intake.close();
  }

  #take(box: Buffer): void {
    const type = box.toString('latin1', 4, BOX_HEAD_BYTES);
    const bytes = this.#fragment.reduce((sum, { length }) => sum + length, box.length);
    if (type === 'moof') this.#fragment = [box];
    else if (bytes > MAX_BYTES) throw new PullError(`a fragment has more than ${MAX_BYTES} bytes`);
    else if (this.#fragment.length > 0 && this.#fragment.length < MAX_BOXES) this.#fragment.push(box);
    if (type !== 'mdat') return;
    const fragment = Buffer.concat(this.#fragment);
    this.#fragment = [];
    try {
      const samples = readSamples(
        fragment,
        this.#lanes.map(({ track }) => track),
      );
      for (const sample of samples) this.#write(sample);
    } catch (error) {
      if (!(error instanceof RangeError)) throw error;
      this.#options.faults.count('damaged fragments');
      this.lost();
    }
  }

  #write({ track, time, compositionOffset, data }: ReadSample): void {
    const lane = this.#lanes.find((one) => one.track === track);
    if (lane === undefined) return;
    const ticks = CLOCK.timebase.den / track.timescale;
    try {
      const unit = lane.intake.frame(data, time * ticks, compositionOffset * ticks);
      if (unit === undefined) return;
      if (lane.waits && unit.key !== true) return this.#options.faults.count('video frames after a loss were dropped');
      lane.waits = false;
      this.#intake.unit(unit);
    } catch (error) {
      if (!(error instanceof BitstreamError)) throw error;
      this.#options.faults.count(error.message);
    }
  }

  /** @param index among the tracks of its kind */
  #open(track: FragmentedTrack, index: number): Lane {
    const { type, codec, config } = track.description;
    const id = streamTrackId(type, index);
    const known = this.#lanes.find((lane) => lane.id === id && lane.intake.codec === codec)?.intake;
    const intake =
      known ??
      (track.description.type === 'video'
        ? new VideoIntake({ id, codec: track.description.codec })
        : new AudioIntake({ id, codec: track.description.codec }));
    // the frames of Opus say enough
    if (config !== undefined && codec !== 'OPUS') intake.configure(config);
    return { track, intake, id, waits: type === 'video' };
  }
}

function numbers(count: number): number[] {
  return Array.from({ length: count }, (_, index) => index);
}
