import type { AudioEncodeConfig, VideoEncodeConfig } from '../config/model.ts';
import type { AudioTrack, VideoTrack } from '../core/track.ts';
import { audioCodec, videoCodec } from './codec-name.ts';

/** Whether a video encode bypasses an input track (docs/compatibility.md#transcoding). */
export function bypassesVideo(encode: VideoEncodeConfig, input: VideoTrack): boolean {
  if (encode.bypass) return true;
  const rules = encode.bypassIfMatch;
  if (rules === undefined) return false;
  return allHold([
    [rules.codec, () => input.codec === videoCodec(encode.codec ?? '')?.codec],
    [rules.width, () => compare(rules.width, input.width, encode.width)],
    [rules.height, () => compare(rules.height, input.height, encode.height)],
    [rules.framerate, () => compare(rules.framerate, input.framerate, encode.framerate)],
    [rules.sar, () => input.width * encode.height === input.height * encode.width],
  ]);
}

/** Whether an audio encode bypasses an input track, by the same rules. */
export function bypassesAudio(encode: AudioEncodeConfig, input: AudioTrack): boolean {
  if (encode.bypass) return true;
  const rules = encode.bypassIfMatch;
  if (rules === undefined) return false;
  return allHold([
    [rules.codec, () => input.codec === audioCodec(encode.codec ?? '')?.codec],
    [rules.samplerate, () => compare(rules.samplerate, input.samplerate, encode.samplerate)],
    [rules.channel, () => compare(rules.channel, input.channels, encode.channel)],
  ]);
}

function allHold(conditions: ReadonlyArray<readonly [rule: string | undefined, holds: () => boolean]>): boolean {
  const listed = conditions.filter(([rule]) => rule !== undefined);
  return listed.length > 0 && listed.every(([, holds]) => holds());
}

function compare(rule: string | undefined, input: number, profile: number): boolean {
  if (rule === 'eq') return input === profile;
  if (rule === 'lte') return input <= profile;
  if (rule === 'gte') return input >= profile;
  return true;
}
