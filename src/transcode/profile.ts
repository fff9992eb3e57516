import type { OutputProfileConfig } from '../config/model.ts';
import type { MediaTrack, Track, VideoTrack } from '../core/track.ts';
import { bypassesAudio, bypassesVideo } from './bypass.ts';
import { decideAudio, decideImage, decideVideo, type Decision } from './decide.ts';
import type { Encoding } from './encoding.ts';

/** One track of an output stream: which input track it is made of, how, and under which variant name. */
export interface PlannedTrack {
  readonly from: MediaTrack;
  readonly type: 'video' | 'audio' | 'image';
  readonly variantName: string;
  /** Stable for the same encode and input track, whatever else comes or goes. */
  readonly key: string;
  /** Absent on a bypassed track, whose packets are those of the input, and where there is a problem. */
  readonly encoding?: Encoding;
  /** Why the encode can make nothing of this input, ever. */
  readonly problem?: string;
}

/** What a plan depends on besides the profile and the tracks. */
export interface PlanContext {
  /** Encodings of earlier plans for the same output stream, by key: what was decided stays, whatever the source does. */
  readonly known?: ReadonlyMap<string, Encoding>;
  /** Frames per second measured on an input track; 0 where nothing is. Asked where the track declares none. */
  readonly measured?: (input: VideoTrack) => number;
}

/**
 * Applies the encodes of a profile to the tracks of an input, by the rules of docs/compatibility.md#transcoding. An encode that
 * takes the size of an input, while that is not known, is left out.
 */
export function planTracks(
  profile: OutputProfileConfig,
  inputs: readonly Track[],
  { known, measured = () => 0 }: PlanContext = {},
): PlannedTrack[] {
  const { videos, audios, images } = profile.encodes;
  const pictures = inputs.filter((input) => input.type === 'video');
  const sounds = inputs.filter((input) => input.type === 'audio');
  const planned: PlannedTrack[] = [];
  const add = (
    type: PlannedTrack['type'],
    index: number,
    variantName: string,
    from: MediaTrack,
    decide: 'bypass' | (() => Decision<Encoding> | undefined),
  ) => {
    const key = `${type}/${index}/${from.id}`;
    const encoding = known?.get(key);
    const decision = decide === 'bypass' ? {} : encoding === undefined ? decide() : { encoding };
    if (decision !== undefined) planned.push({ from, type, variantName, key, ...decision });
  };
  for (const [index, encode] of videos.entries()) {
    for (const input of pictures) {
      const bypassedToo = videos.some((other) => bypassesVideo(other, input));
      const decide = () => decideVideo(encode, { input, measured: measured(input), bypassedToo });
      add('video', index, encode.name, input, bypassesVideo(encode, input) ? 'bypass' : decide);
    }
  }
  for (const [index, encode] of audios.entries()) {
    for (const input of sounds) {
      const decide = () => decideAudio(encode, input);
      add('audio', index, encode.name, input, bypassesAudio(encode, input) ? 'bypass' : decide);
    }
  }
  for (const [index, encode] of images.entries()) {
    for (const input of pictures) add('image', index, encode.name, input, () => decideImage(encode, input));
  }
  return planned;
}
