import { id3WithoutVersion } from '../../containers/id3.ts';
import { id3Of } from '../../containers/mpegts/metadata.ts';
import type { NutStream } from '../../containers/nut/format.ts';
import type { NutFrame } from '../../containers/nut/reader.ts';
import { eventRate, MAX_EVENT_BYTES } from '../../core/event-limits.ts';
import { EVENT_TRACK_NAME } from '../../core/event-tracks.ts';
import { VIDEO_TIMEBASE } from '../../core/timebase.ts';
import type { Timeline, TrackTimeline } from '../../core/timeline.ts';
import type { DataTrack } from '../../core/track.ts';
import { FIRST_DATA_ID, type ItemUnit } from './item-source.ts';
import { OFFSET_SECONDS } from './media-command.ts';

export interface FileEventsOptions {
  /** Index of the stream among those of its type. */
  readonly place: number;
  /** The stream as ffmpeg's NUT describes it. */
  readonly stream: NutStream;
  readonly timeline: Timeline;
  readonly onUnit: (unit: ItemUnit) => void;
}

/** One stream of ID3 tags of a media file, within limits. */
export class FileEvents {
  readonly #options: FileEventsOptions;
  readonly #track: DataTrack;
  readonly #clock: TrackTimeline;
  readonly #rate = eventRate();

  constructor(options: FileEventsOptions) {
    const { place, timeline } = options;
    this.#options = options;
    this.#track = Object.freeze({
      ...{ id: FIRST_DATA_ID + place, name: EVENT_TRACK_NAME, type: 'data', codec: 'ID3v2' },
      ...{ timebase: VIDEO_TIMEBASE, bypass: false },
    } satisfies DataTrack);
    this.#clock = timeline.track(VIDEO_TIMEBASE);
  }

  /** @returns why the frame was dropped; undefined when it was not */
  push({ pts, data }: NutFrame): string | undefined {
    // ffmpeg 5 mistakes the beginning of a tag for the header of a metadata cell
    const tags = id3Of(0, data) ?? id3WithoutVersion(data);
    if (tags === undefined || tags.length > MAX_EVENT_BYTES) return 'unusable timed metadata';
    const { stream, onUnit } = this.#options;
    const source = (pts * stream.timebase.num * VIDEO_TIMEBASE.den) / stream.timebase.den;
    const time = this.#clock.next(source) - OFFSET_SECONDS * VIDEO_TIMEBASE.den;
    const at = (time * 1000) / VIDEO_TIMEBASE.den;
    if (!this.#rate.take(at)) return 'an event: there are too many';
    onUnit({ track: this.#track, dts: time, pts: time, duration: 0, key: true, data: tags, at, shownAt: at });
    return undefined;
  }

  end(): void {}
}
