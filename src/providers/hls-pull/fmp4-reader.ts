import { BitstreamError } from '../../codecs/bits.ts';
import { BOX_HEAD_BYTES } from '../../containers/fmp4/read-box.ts';
import { readInit, readSamples, type FragmentedTrack, type ReadSample } from '../../containers/fmp4/reader.ts';
import type { Track } from '../../core/track.ts';
import type { FaultLog } from '../../log/log.ts';
import { AudioIntake } from '../intake/audio-intake.ts';
import { streamTrackId } from '../intake/track-id.ts';
import { VideoIntake } from '../intake/video-intake.ts';
import { PullError } from '../pull/error.ts';
import { CLOCK } from './period-clock.ts';
import { isWanted, type SegmentReader, type SegmentReaderEvents, type Wanted } from './segment-reader.ts';

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

export interface Fmp4ReaderOptions {
  readonly wanted: Wanted;
  readonly faults: FaultLog;
  readonly events: SegmentReaderEvents;
}

/** Reads segments of fragmented MP4 (RFC 8216 section 3.3). */
export class Fmp4Reader implements SegmentReader {
  readonly #options: Fmp4ReaderOptions;
  #lanes: readonly Lane[] = [];
  /** Bytes from the beginning of a box on, and how many of them are needed to go on. */
  #chunks: Buffer[] = [];
  #bytes = 0;
  #needed = BOX_HEAD_BYTES;
  /** Boxes from `moof` on. */
  #fragment: Buffer[] = [];

  constructor(options: Fmp4ReaderOptions) {
    this.#options = options;
  }

  get tracks(): readonly Track[] {
    return this.#lanes.flatMap(({ intake }) => intake.track ?? []);
  }

  /** Begins to read segments of another initialization. @throws PullError when none of its tracks can be read */
  begin(init: Buffer): void {
    const { wanted, events } = this.#options;
    const unsupported: string[] = [];
    try {
      const all = readInit(init, ({ message }) => unsupported.push(message));
      const tracks = all.filter(({ description: { type } }) => isWanted(type, wanted));
      const counts = { video: 0, audio: 0 };
      const lanes = tracks.map((track) => this.#open(track, counts[track.description.type]++));
      this.#lanes = lanes;
      if (lanes.length === 0 && unsupported.length > 0)
        throw new PullError(`its tracks are not supported: ${unsupported.join(', ')}`);
      if (lanes.length === 0) throw new PullError(`its playlist of ${wanted ?? 'segments'} has no such track`);
      const announced = { video: numbers(counts.video), audio: numbers(counts.audio) };
      events.tracks(announced, new Set(lanes.map(({ id }) => id)));
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

  restart(): void {
    this.lost();
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
      this.#options.events.unit(unit);
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
