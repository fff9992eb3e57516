import type { SubtitlesConfig } from '../config/model.ts';
import { isMedia, type SubtitleTrack, type Track } from './track.ts';

/** Ids of subtitle tracks from here on: between those of media and those of events. */
const FIRST_SUBTITLE_TRACK_ID = 768;
/** Name of every subtitle track: what distinguishes them is their label. */
export const SUBTITLE_TRACK_NAME = 'Subtitle';
const TIMEBASE = Object.freeze({ num: 1, den: 1000 });

/** Subtitle tracks of an input stream, one for each label of its application's Subtitles. They stay as long as the stream. */
export class SubtitleTracks {
  #tracks: readonly SubtitleTrack[];

  constructor(config: SubtitlesConfig | undefined) {
    const { enable = false, defaultLabel, rendition = [] } = config ?? {};
    this.#tracks = enable ? rendition.map((one, index) => trackOf(one, index, defaultLabel)) : [];
  }

  /** @returns the source's tracks, followed by the subtitles where there is media */
  after(tracks: readonly Track[]): readonly Track[] {
    if (this.#tracks.length === 0) return tracks;
    const source = tracks.filter((track) => !this.#tracks.some((own) => own === track));
    if (!source.some(isMedia)) return source;
    const taken = new Set(source.map(({ id }) => id));
    for (const [index, own] of this.#tracks.entries()) {
      if (!taken.has(own.id)) continue;
      const free = Math.max(...taken, ...this.#tracks.map(({ id }) => id)) + 1;
      this.#tracks = this.#tracks.with(index, Object.freeze({ ...own, id: free }));
    }
    return [...source, ...this.#tracks];
  }

  /** The track with a label; undefined where there is none. */
  of(label: string): SubtitleTrack | undefined {
    return this.#tracks.find(({ publicName }) => publicName === label);
  }
}

function trackOf(
  { label, language, autoSelect, forced }: SubtitlesConfig['rendition'][number],
  index: number,
  defaultLabel: string | undefined,
): SubtitleTrack {
  const isDefault = label === defaultLabel;
  return Object.freeze({
    id: FIRST_SUBTITLE_TRACK_ID + index,
    name: SUBTITLE_TRACK_NAME,
    type: 'subtitle',
    codec: 'WebVTT',
    timebase: TIMEBASE,
    bypass: true,
    publicName: label,
    ...(language !== undefined && { language }),
    // a default that players may not choose by themselves would be none (RFC 8216bis, section 4.4.6.1)
    autoSelect: autoSelect || isDefault,
    isDefault,
    forced,
  });
}
