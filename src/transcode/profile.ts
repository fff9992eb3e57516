import type { OutputProfileConfig } from '../config/model.ts';
import type { MediaTrack, Track, VideoTrack } from '../core/track.ts';
import { bypassesAudio, bypassesVideo } from './bypass.ts';
import { decideAudio, decideImage, decideVideo, type Decision } from './decide.ts';
import type { Encoding } from './encoding.ts';

/** Plan of one track of an output stream. */
export interface PlannedTrack {
  readonly from: MediaTrack;
  readonly type: 'video' | 'audio' | 'image';
  readonly variantName: string;
  /** Stable for the same encode and input track. */
  readonly key: string;
  /** Absent for a bypassed track, which has the input's packets, and if there is a problem. */
  readonly encoding?: Encoding;
  /** Reason why the encode can never be made from this input. */
  readonly problem?: string;
}

/** Other input of a plan. */
export interface PlanContext {
  /** Encodings of earlier plans for the output stream, by key: a decision stays even if the source changes. */
  readonly known?: ReadonlyMap<string, Encoding>;
  /** Measured frames per second of an input track, for tracks that declare none; 0 if unknown. */
  readonly measured?: (input: VideoTrack) => number;
}

/**
 * Applies the encodes of a profile to the tracks of an input (docs/compatibility.md#transcoding). An encode that needs the
 * input's size is left out until that is known.
 */
export function planTracks(
  profile: OutputProfileConfig,
  inputs: readonly Track[],
  { known, measured = () => 0 }: PlanContext = {},
): PlannedTrack[] {
  const { videos, audios, images } = profile.encodes;
  const videoInputs = inputs.filter((input) => input.type === 'video');
  const audioInputs = inputs.filter((input) => input.type === 'audio');
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
    for (const input of videoInputs) {
      const bypassedToo = videos.some((other) => bypassesVideo(other, input));
      const decide = () => decideVideo(encode, { input, measured: measured(input), bypassedToo });
      add('video', index, encode.name, input, bypassesVideo(encode, input) ? 'bypass' : decide);
    }
  }
  for (const [index, encode] of audios.entries()) {
    for (const input of audioInputs) {
      const decide = () => decideAudio(encode, input);
      add('audio', index, encode.name, input, bypassesAudio(encode, input) ? 'bypass' : decide);
    }
  }
  for (const [index, encode] of images.entries()) {
    for (const input of videoInputs) add('image', index, encode.name, input, () => decideImage(encode, input));
  }
  return planned;
}
