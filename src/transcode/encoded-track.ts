import { lookOf } from '../codecs/vui.ts';
import { VIDEO_TIMEBASE } from '../core/timebase.ts';
import type { Encoder, ImageTrack, MediaTrack, Track } from '../core/track.ts';
import type { Encoding } from './encoding.ts';
import type { EncodedFormat } from './encode.ts';

/** State of an encoder, as readers of its track see it. */
export class EncoderState implements Encoder {
  module = 'default';
  status: Encoder['status'];
}

/** Id and name of an output track, and its source. */
export interface TrackPlace {
  readonly id: number;
  readonly name: string;
  readonly from: MediaTrack;
}

/**
 * Builds the track of an encoding.
 * @param format reported by the encoder; undefined until then
 */
export function encodedTrack(
  { id, name, from }: TrackPlace,
  encoding: Encoding,
  encoder: Encoder,
  format?: EncodedFormat,
): MediaTrack | ImageTrack {
  const { language, characteristics } = from;
  const common = { id, name, language, characteristics, bypass: false, encoder, config: format?.config };
  if (encoding.type === 'audio') {
    const { codec, bitrate } = encoding;
    const { samplerate = encoding.samplerate, channels = encoding.channels } = format ?? {};
    const timebase = format?.timebase ?? { num: 1, den: samplerate };
    return { ...common, type: 'audio', codec, bitrate, samplerate, channels, timebase };
  }
  const { width = encoding.width, height = encoding.height, timebase = VIDEO_TIMEBASE } = format ?? {};
  const sized = { ...common, width, height, timebase, framerate: encoding.framerate };
  if (encoding.type === 'image') {
    return { ...sized, type: 'image', codec: encoding.codec, bitrate: 0, keyFrameInterval: 0 };
  }
  const { codec, bitrate, keyFrameInterval } = encoding;
  const { inBandSets } = format ?? {};
  const signalled = { ...(format && lookOf(format)), ...(inBandSets && { inBandSets }) };
  return { ...sized, ...signalled, type: 'video', codec, bitrate, keyFrameInterval };
}

/** Copies the current language of the input to a track; returns the same object if nothing changes. */
export function inLanguage<T extends Track>(track: T, { language, characteristics }: MediaTrack): T {
  if (track.language === language && track.characteristics === characteristics) return track;
  return { ...track, language, characteristics };
}

/** Builds the announced track of an encode that can never run. */
export function unmadeTrack({ id, name, from }: TrackPlace): MediaTrack {
  return { ...from, id, name, bypass: false, encoder: { module: 'none', status: 'Failed' } };
}
